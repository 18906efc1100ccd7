"""`fovea bench --device cuda` without one; `fovea cuda warm`: lists of combinations, and the cache that they are compiled into. No device is needed; what compiles needs NVRTC."""

import os
import re
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

COMMAND = os.environ["FOVEA_COMMAND"]
WINDOW = "dot|soft_cap:cap=20;softmax;causal&window:left=512;bfloat16 64"


def warm(lines, *options, cache=None):
    environment = {**os.environ, **({"FOVEA_CACHE": str(cache)} if cache else {})}
    return subprocess.run([COMMAND, "cuda", "warm", "-", *options], input=lines, env=environment, text=True, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class Lists(unittest.TestCase):
    def names(self, lines):
        outcome = warm(lines, "--names")
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        return outcome.stdout.splitlines()

    def test_a_line_is_a_combination_and_the_rest_a_comment(self):
        names = self.names(f"# what we train\n\n{WINDOW}  # every day\n additive:weight=@;entmax:alpha=1.5;graph:row_offsets=@,columns=@;float32 8 16 forward\n")
        self.assertEqual(len(names), 3, names)  # forward and backward, then forward alone
        self.assertTrue(all("dot+soft_cap, softmax, causal & window" in name for name in names[:2]), names)
        self.assertIn("additive, entmax, graph", names[2])

    def test_a_bias_has_a_gradient_of_its_own(self):
        self.assertEqual(len(self.names("dot|bias:bias=@;softmax;dense;bfloat16 64\n")), 3)

    def test_every_kind_of_choice_can_be_listed(self):
        for score in ("dot", "bilinear:weight=@", "additive:weight=@", "gated_additive:weight=@", "kernel:name=gaussian,bandwidth=@",
                      "kernel:name=cauchy,bandwidth=@,metric=@", "cosine:beta=@", "rank_one", "location", "constant", "dot|relative:key_table=@,clip=4",
                      "dot|alibi:slopes=@"):
            self.assertGreaterEqual(len(self.names(f"{score};softmax;dense;float32 8\n")), 2, score)
        for normaliser in ("softmax:sink=@", "sparsemax", "entmax:alpha_tensor=@", "top_k:k=4", "hard", "sigmoid", "uniform"):
            self.assertEqual(len(self.names(f"dot;{normaliser};causal;float64 8\n")), 2, normaliser)
        for structure in ("window:left=3", "prefix:length=2", "documents:query_ids=@,key_ids=@", "blocks:mask=@,size=16", "keep:mask=@",
                          "ragged:query_offsets=@,key_offsets=@", "strided:stride=3", "fixed:stride=4,summary=1", "causal&(window:left=3|first:count=1)", "~dense"):
            self.assertEqual(len(self.names(f"dot;softmax;{structure};float32 8\n")), 2, structure)

    def test_a_mistake_is_named_with_its_line(self):
        for line, said in (
            ("dot;softmax;dense", "expected SCORE;NORMALISER;STRUCTURE;TYPE WIDTH"),
            ("dot;softmax;dense;float31 8", "type 'float31', expected float32"),
            ("dot;softmax;dense;float32", "no width after the type"),
            ("dot;softmax;dense;float32 none", "width 'none'"),
            ("dot;softmax;dense;float32 8 8 8", "'8', expected a width of values, step"),
            ("dot;softmax;dense;float32 -8", "width '-8'"),
            ("dot|bias:bias=b.npy;softmax;dense;float32 8", "bias=b.npy, expected @"),
            ("dt;softmax;dense;float32 8", "dt"),
            ("dot|custom:handle=0;softmax;dense;float32 8", "custom"),
        ):
            outcome = warm(f"{WINDOW}\n{line}\n", "--names")
            self.assertNotEqual(outcome.returncode, 0, line)
            self.assertIn(said, outcome.stderr, line)
            self.assertEqual(len(outcome.stderr.splitlines()), 1, outcome.stderr)

    def test_a_list_without_lines_or_without_a_file_is_refused(self):
        self.assertIn("no line with a combination", warm("# nothing\n", "--names").stderr)
        outcome = subprocess.run([COMMAND, "cuda", "warm", "/nowhere/list", "--names"], text=True, stderr=subprocess.PIPE)
        self.assertIn("/nowhere/list", outcome.stderr)
        self.assertEqual(outcome.returncode, 1)

    def test_a_list_is_read_within_the_limits(self):
        outcome = subprocess.run([COMMAND, "cuda", "warm", "-", "--names"], input="x" * 200, text=True, stderr=subprocess.PIPE,
                                 env={**os.environ, "FOVEA_LIMITS": "line=100"})
        self.assertEqual(outcome.returncode, 1)
        self.assertIn("standard input:1: ", outcome.stderr)
        self.assertIn("line=", outcome.stderr)


class Compiled(unittest.TestCase):
    """For a machine that is not this one."""

    THERE = ("--architecture", "sm_80", "--driver", "13.0")

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fovea-cuda-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def compiled(self, lines, *options):
        outcome = warm(lines, *(options or self.THERE), cache=self.folder / "cache")
        if "no libnvrtc" in outcome.stderr:
            self.skipTest(outcome.stderr.strip())
        return outcome

    def counts(self, outcome):
        found = re.search(r"(\d+) programs compiled, (\d+) were there, (\d+) lines failed", outcome.stdout)
        self.assertTrue(found, outcome.stdout + outcome.stderr)
        return tuple(int(n) for n in found.groups())

    def test_a_program_is_compiled_once_for_each_machine(self):
        self.assertEqual(self.counts(self.compiled(WINDOW + "\n")), (2, 0, 0))
        other_numbers = WINDOW.replace("512", "64").replace("20", "30")
        self.assertEqual(self.counts(self.compiled(other_numbers + "\n")), (0, 2, 0))
        self.assertEqual(self.counts(self.compiled(WINDOW + " forward\n", "--architecture", "sm_80", "--driver", "12.8")), (1, 0, 0))
        self.assertEqual(len(list((self.folder / "cache").glob("*.cubin"))), 3)

    def test_several_processes_at_once(self):
        with ThreadPoolExecutor(3) as pool:
            outcomes = list(pool.map(lambda _: self.compiled(WINDOW + " forward\n"), range(3)))
        for outcome in outcomes:
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
        self.assertEqual([path.suffix for path in (self.folder / "cache").iterdir()], [".cubin"])

    def test_what_the_kernels_do_not_serve_is_said_and_the_rest_compiled(self):
        wide = "dot;softmax;graph:row_offsets=@,columns=@;float32 2048"
        outcome = self.compiled(f"{wide}\n{WINDOW} forward\n")
        self.assertEqual((self.counts(outcome), outcome.returncode), ((1, 0, 1), 1))
        self.assertIn(f"{wide}: kernels: a graph with rows wider than 1024", outcome.stderr)

    def test_a_folder_that_cannot_be_written_is_an_error_here(self):
        (self.folder / "cache").write_text("a file where the folder would be")
        outcome = self.compiled(WINDOW + " forward\n")
        self.assertEqual(outcome.returncode, 1)
        self.assertIn("cache: cannot be written, expected a folder to keep programs in (FOVEA_CACHE names another)", outcome.stderr)

    def test_without_a_device_the_machine_must_be_given(self):
        if Path("/proc/driver/nvidia").exists():
            self.skipTest("a device is here")
        outcome = self.compiled(WINDOW + "\n", "--architecture", "sm_80")
        self.assertEqual(outcome.returncode, 1)
        self.assertIn("no driver", outcome.stderr)
        self.assertIn("give --architecture (sm_80, sm_90a) and --driver", outcome.stderr)
        for wrong in ("13", "13.", "x.0", "13.0.1", "-1.0"):
            outcome = self.compiled(WINDOW + "\n", "--architecture", "sm_80", f"--driver={wrong}")
            self.assertEqual(outcome.returncode, 2, wrong)
            self.assertIn(f"--driver: '{wrong}', expected a version of CUDA", outcome.stderr)


class Bench(unittest.TestCase):
    def refused(self, *options):
        outcome = subprocess.run([COMMAND, "bench", *options], text=True, timeout=60, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if "unknown verb 'bench'" in outcome.stderr:
            self.skipTest("this build is without bench")
        self.assertEqual((outcome.returncode, outcome.stdout, len(outcome.stderr.splitlines())), (2, "", 1), outcome)
        return outcome.stderr

    def test_without_a_device_it_is_refused(self):
        if Path("/proc/driver/nvidia").exists():
            self.skipTest("a device is here")
        for device in ("cuda", "cuda:1"):
            self.assertIn(f"--device {device}: this libtorch sees no CUDA device", self.refused("--device", device))

    def test_options_of_the_processor_are_refused_on_a_device(self):
        for option in (["--quick"], ["--cold"], ["--list"], ["--no-memory"], ["--html", "x"], ["--target", "AVX2"], ["--threads", "1"]):
            self.assertIn(f"{option[0]}: is for --device cpu", self.refused("--device", "cuda", *option))

    def test_a_device_that_is_none_is_named(self):
        self.assertIn("--device gpu: expected cpu, cuda or cuda:N", self.refused("--device", "gpu"))


if __name__ == "__main__":
    unittest.main()
