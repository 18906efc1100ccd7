"""The source tree is as docs/architecture.md describes it: sizes of folders and files, layers, paths that pages name, facts written once."""

import collections
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(os.environ.get("FOVEA_SOURCE_DIR", Path(__file__).resolve().parents[2]))
SOURCES = (".cc", ".h", ".cu", ".cuh", ".py", ".pyi", ".js")
MOST_FILES, MOST_LINES, MOST_BYTES = 25, 500, 1 << 20
SYSTEM_LINES = 500  # of a folder of systems/, without tests and page

# A fact, the regular expression that finds the place where it is written, and these places. The reference shares no code with
# the engine on purpose, so what it computes is written there a second time.
FACTS = [
    ("which normalisers have a log-sum-exp", r"^bool has_lse\(", ["engine/call/facts.h"]),
    ("the scale of a dot product", r"scale\.value_or\(1 /", ["engine/call/facts.h", "engine/reference/score.cc"]),
    ("the scale of a dot product, in Python", r"shape\[-1\] \*\* -0\.5", ["python/fovea/_functions.py"]),
    ("the type of a C++ type", r"DType dtype_of<float>", ["engine/call/view.h"]),
    ("the size of a type", r"case DType::kBool:\s+return 1;", ["engine/call/view.cc"]),
    ("the name of a type", r'return "bfloat16";', ["engine/call/view.cc"]),
    ("the type of arithmetic", r"== at::kDouble \? at::kDouble : at::kFloat", ["torch/engine_call.h"]),
    ("the layout of scratch memory", r"^class Layout \{", ["engine/runtime/scratch.h"]),
    ("writing a file whole", r"O_CREAT \| O_EXCL", ["io/write.cc"]),
    ("reading a normaliser from its name", r"Normaliser<Array> parse_normaliser\(", ["torch/choice_text.h"]),
    ("an option that names a normaliser", r"Normaliser normaliser_named\(", ["systems/normaliser_option.h"]),
    ("splitting items by shares", r"^Splits split\(int64_t items, const SplitRequest& request\) \{", ["data/split.cc"]),
    ("how many items a generator draws", r"= 4000, [a-z_A-Z.]+ = 500, [a-z_A-Z.]+ = 1000", ["data/split.h"]),
    ("the section of a system in a report", r"return \{\.id = info\.name", ["systems/pages/lecture.cc"]),
]


def tracked():
    """Files of the working tree that git tracks, and new ones that it does not ignore."""
    if not (ROOT / ".git").exists():
        print("skipped: no git here, so there is no list of files")
        sys.exit(0)
    listed = subprocess.run(["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return sorted({Path(name) for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()})


FILES = tracked()
CODE = [path for path in FILES if path.suffix in SOURCES]
TEXT = {path: (ROOT / path).read_text(encoding="utf-8") for path in CODE}
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


def lines(path):
    return TEXT[path].count("\n")


class Structure(unittest.TestCase):
    def test_a_folder_has_at_most_25_sources(self):
        counts = collections.Counter(path.parent for path in CODE if path.parts[0] != "docs")
        self.assertEqual({str(folder): n for folder, n in counts.items() if n > MOST_FILES}, {})

    def test_a_source_has_at_most_500_lines(self):
        self.assertEqual({str(path): lines(path) for path in CODE if lines(path) > MOST_LINES}, {})

    def test_no_file_is_larger_than_a_mebibyte(self):
        self.assertEqual([str(path) for path in FILES if (ROOT / path).stat().st_size > MOST_BYTES], [])

    def test_a_folder_uses_those_below_it_in_the_list(self):
        order = re.findall(r"^├── ([a-z]+)/", ARCHITECTURE, re.MULTILINE)
        order = order[: order.index("include")]
        layers = {name: i for i, name in enumerate(order)}
        self.assertIn("engine", layers)
        upwards = []
        for path, text in TEXT.items():
            if path.parts[0] not in layers or path.suffix not in (".cc", ".h"):
                continue
            for used in re.findall(r'^#include "([a-z_]+)/', text, re.MULTILINE):
                # The command starts the benchmarks, which are no layer.
                if used in layers and layers[used] < layers[path.parts[0]]:
                    upwards.append(f"{path} uses {used}/")
        self.assertEqual(upwards, [])

    def test_paths_that_pages_name_exist(self):
        folders = {str(parent) for path in FILES for parent in path.parents}
        names = {str(path) for path in FILES}
        missing = []
        for page in [path for path in FILES if path.suffix == ".md" and path.name != "CHANGELOG.md"]:
            for named in re.findall(r"`((?:[a-z_0-9]+/)+[a-z_0-9.*-]+\.(?:cc|h|py|js|md|txt|cu|map))`", (ROOT / page).read_text(encoding="utf-8")):
                top = named.split("/")[0]
                found = named in names or any(Path(name).match(named) for name in names)
                if (ROOT / top).is_dir() and top in folders and not found:
                    missing.append(f"{page}: {named}")
        self.assertEqual(missing, [])

    def test_pages_of_systems_judge_by_what_a_reader_can_see(self):
        # A figure stands beside the paper's, a control or another setting. What somebody once asked for is on no page.
        found = {}
        for page in (ROOT / "docs/systems").glob("*.md"):
            found[page.name] = re.findall(r"[^.|(]*\bwanted\b[^.|)]*", page.read_text(encoding="utf-8"))
        self.assertGreater(len(found), 30)
        self.assertEqual({name: words for name, words in found.items() if words}, {})

    def test_functions_of_the_journeys_exist(self):
        """Each `name()` of a step is in one of the files that the step names."""
        part = ARCHITECTURE[ARCHITECTURE.index("## Two journeys") : ARCHITECTURE.index("## Three libraries")]
        steps = re.findall(r"^\d+\. .*?(?=^\d+\. |^\*\*|\Z)", part, re.MULTILINE | re.DOTALL)
        self.assertGreater(len(steps), 30)
        missing, functions = [], 0
        for step in steps:
            text = "".join(TEXT[Path(name)] for name in re.findall(r"`([a-z_0-9/-]+\.(?:cc|h|py))`", step) if Path(name) in TEXT)
            for function in re.findall(r"`([a-z_]+)\(\)`", step):
                functions += 1
                if not re.search(rf"\b{function}(<[a-z]+>)?\(", text):
                    missing.append(f"{function}(): {step[:60]}")
        self.assertEqual(missing, [])
        self.assertGreater(functions, 30)

    def test_every_stage_has_a_small_test(self):
        """Beside the sweep over the table of cases, which meets them all."""
        parts = {"scores/additive_backward", "scores/additive_scores", "structures/range"}  # of stages, tested with these
        expressions = {"structures/any_of", "structures/complement", "structures/first"}
        self.assertIn(Path("tests/engine/structures/expressions_test.cc"), TEXT)
        stages = {f"{path.parts[1]}/{path.stem}" for path in CODE if path.suffix == ".cc" and path.parent in
                  {Path("engine") / kind for kind in ("scores", "modifiers", "normalisers", "structures")}}  # fmt: skip
        self.assertGreater(len(stages), 30)
        self.assertEqual([stage for stage in sorted(stages - parts - expressions) if Path(f"tests/engine/{stage}_test.cc") not in TEXT], [])

    def test_tests_have_the_folders_of_the_engine_and_of_the_benchmarks(self):
        folders = {path.parent for path in CODE if path.parts[0] in ("engine", "bench") and path.suffix == ".cc"}
        folders.remove(Path("bench/peers"))  # other libraries
        self.assertGreater(len(folders), 15)
        tested = {path.parent for path in CODE if path.name.endswith("_test.cc")}
        self.assertEqual([str(folder) for folder in sorted(folders) if "tests" / folder not in tested], [])

    def test_every_path_has_a_small_test(self):
        paths = re.findall(r"^\| `([a-z_]+)` \| `(?:paths|graph|tiles)/", ARCHITECTURE, re.MULTILINE)
        self.assertGreaterEqual(len(paths), 8)
        tests = "".join(text for path, text in TEXT.items() if str(path).startswith(("tests/engine/paths", "tests/engine/tiles", "tests/engine/dispatch")))
        self.assertEqual([path for path in paths if f'"{path}"' not in tests], [])

    def test_a_larger_system_is_explained(self):
        """Systems over the size that one with a task of its own should have, against the table of docs/architecture.md."""
        sizes = collections.Counter()
        for path in CODE:
            if path.parts[0] == "systems" and len(path.parts) == 3:
                sizes[path.parts[1]] += lines(path)
        table = re.findall(r"^\| `([a-z_0-9]+)` \| (\d+) \|", ARCHITECTURE, re.MULTILINE)
        shown = {name: int(count) for name, count in table}
        systems = {name for name in sizes if (ROOT / "systems" / name / "system.cc").exists()}
        large = {name: sizes[name] for name in systems if sizes[name] > SYSTEM_LINES}
        self.assertEqual(sorted(shown), sorted(large))
        examples = re.findall(r"under (\d+) lines \(`([a-z_]+)`\)", ARCHITECTURE)
        self.assertEqual(len(examples), 2)
        for most, name in examples:
            self.assertLess(sizes[name], int(most), name)
        for name, count in large.items():  # about: a table that had to follow every line would be noise
            self.assertLess(abs(count - shown[name]), 0.15 * count, f"{name}: {count} lines, the table says {shown[name]}")

    def test_a_further_file_of_a_system_is_named(self):
        """A system's folder has system, model, task and view; docs/architecture.md names every other file."""
        part = ARCHITECTURE[ARCHITECTURE.index("## A system's folder") : ARCHITECTURE.index("## Two journeys")]
        named = {"system", "model", "task", "view"} | set(re.findall(r"`([a-z_0-9]+)(?:\.[a-z*]+)?`", part))
        systems = {path.parent for path in CODE if path.parts[0] == "systems" and path.name == "system.cc"}
        self.assertGreater(len(systems), 30)
        self.assertEqual([str(path) for path in CODE if path.parent in systems and path.stem not in named], [])

    def test_numbers_of_the_engine_are_compared_within_derived_bounds(self):
        """tests/engine/bounds.h says where each bound comes from; a tolerance that is tried out says nothing."""
        guessed = [str(path) for path, text in TEXT.items() if path.parts[:2] == ("tests", "engine") and re.search(r"(EXPECT|ASSERT)_NEAR", text)]
        self.assertEqual(guessed, [])

    def test_subjects_of_commits_have_at_most_72_characters(self):
        """Those made since the last that was longer; a shallow clone may not have it."""
        log = subprocess.run(["git", "log", "--format=%s", "c4124fa519d6..HEAD"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if log.returncode != 0:
            self.skipTest("the history of this clone does not go back to c4124fa519d6")
        self.assertEqual([subject for subject in log.stdout.decode().splitlines() if len(subject) > 72], [])

    def test_a_fact_is_written_once(self):
        for fact, pattern, places in FACTS:
            with self.subTest(fact):
                found = [str(path) for path, text in TEXT.items() if path.parts[0] != "tests"
                         for _ in re.findall(pattern, text, re.MULTILINE)]  # fmt: skip
                self.assertEqual(sorted(found), sorted(places), fact)


if __name__ == "__main__":
    unittest.main()
