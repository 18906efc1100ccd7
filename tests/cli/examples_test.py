"""Every verb's --help shows an example that works: all of them, run in the order of --help, in one empty folder.
The README's shell likewise. The trainings of the systems' pages are too long to run: what they name must exist."""

import json
import math
import os
import re
import shlex
import shutil
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

COMMAND = Path(os.environ["FOVEA_COMMAND"])


def fovea(*arguments):
    return subprocess.run([COMMAND, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)


def verbs():
    """The names under Subcommands in `fovea --help`."""
    text = fovea("--help").stdout
    return re.findall(r"^  (\w+) ", text.partition("Subcommands:")[2].partition("\n\n")[0], re.MULTILINE)


def readme():
    """The README's lines of shell."""
    text = (Path(os.environ["FOVEA_SOURCE_DIR"]) / "README.md").read_text()
    return re.search(r"```sh\n(.*?)```", text, re.DOTALL).group(1).splitlines()


def trainings():
    """(page, words) of every `fovea train …` in the systems' pages, in a table, a sentence or a block."""
    for page in sorted((Path(os.environ["FOVEA_SOURCE_DIR"]) / "docs" / "systems").glob("*.md")):
        text = page.read_text().replace("\\\n", " ")
        for command in re.findall(r"(?<=`)fovea train [^`]*|^fovea train .*", text, re.MULTILINE):
            yield page.name, shlex.split(command, comments=True)[2:]


def examples(verb):
    text = fovea(verb, "--help").stdout
    return [line.strip() for line in text.partition("Example:\n")[2].splitlines() if line.strip()]


def write_npy(path, *shape):
    """An array of float32 in NumPy's format, without NumPy: the examples of `attend` read one."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    values = [((7 * i) % 11) / 11 - 0.5 for i in range(math.prod(shape))]
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}f", *values))


class Examples(unittest.TestCase):
    def test_the_limits_of_the_help_are_those_of_the_page(self):
        page = (Path(os.environ["FOVEA_SOURCE_DIR"]) / "docs" / "data.md").read_text()
        told = dict(re.findall(r"^\| `(\w+)` \| ([\d,]+(?: [KMG]iB)?)", page.partition("## Limits")[2], re.MULTILINE))
        text = fovea("--help").stdout.partition("FOVEA_LIMITS")[2]
        kept = dict(re.findall(r"^  (\w+) +(\d+(?: [KMG]iB)?),", text, re.MULTILINE))
        self.assertEqual(set(told), set(kept))
        for name in set(told) - {"file", "weights"}:  # which follow the machine's memory too
            self.assertEqual(told[name].replace(",", ""), kept[name], name)

    def test_there_are_verbs(self):
        self.assertIn("train", verbs())
        self.assertEqual(fovea("tarin").stderr, "fovea: unknown verb 'tarin': did you mean 'train'?\n")

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="fovea-examples-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def works(self, line):
        environment = {**os.environ, "PATH": f"{COMMAND.parent}:{os.environ['PATH']}"}
        # A server is done when it is stopped; timeout's own status says that it was still there.
        command, expected = (f"timeout 5 {line}", 124) if line.startswith("fovea serve") else (line, 0)
        with self.subTest(example=line):
            outcome = subprocess.run(command, shell=True, cwd=self.folder, env=environment, text=True, timeout=300,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(outcome.returncode, expected, f"{line}\n{outcome.stdout}")

    def test_every_example_works(self):
        for name in ("q", "k", "v"):
            write_npy(self.folder / f"{name}.npy", 1, 2, 16, 8)
        write_npy(self.folder / "w.npy", 8)
        for verb in verbs():
            lines = examples(verb)
            self.assertTrue(lines, f"{verb}: no example")
            for line in lines:
                self.works(line)

    def test_the_pages_trainings_are_whole(self):
        options = {s["name"]: {o["name"] for o in s["options"]} for s in json.loads(fovea("list", "--json").stdout)["systems"]}
        count = 0
        for page, words in trainings():
            count += 1
            with self.subTest(page=page, command=" ".join(words)):
                self.assertIn(words[0], options)
                self.assertIn("--out", words)
                self.assertNotIn("…", words)
                for flag, value in zip(words, words[1:]):
                    if flag == "--set":
                        self.assertIn(value.partition("=")[0], options[words[0]])
        self.assertGreater(count, len(options))

    def test_the_readmes_shell_works(self):
        for line in readme():
            self.works(line)


if __name__ == "__main__":
    unittest.main()
