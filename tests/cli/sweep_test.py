"""`train --sweep`: a RUN for each value, a table at the end; and the forms that `explain --out` and `predict --json` take."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

COMMAND = Path(os.environ["FOVEA_COMMAND"])
CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)


class InAFolder(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="fovea-sweep-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def fovea(self, *arguments, **more):
        return subprocess.run([COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, cwd=self.folder,
                              **{"text": True, **more})

    def done(self, *arguments, **more):
        done = self.fovea(*arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class Sweep(InAFolder):
    def sweep(self, *more):
        return self.fovea("train", "nadaraya-watson", "--threads", 1, "--quiet", "--out", "swept", *more)

    def test_each_value_is_a_run_and_the_table_has_the_figures_of_evaluate(self):
        table = self.sweep("--sweep", "kernel=gaussian,box").stdout.splitlines()
        for line, kernel in zip(table[1:], ("gaussian", "box"), strict=False):
            report = json.loads(self.done("evaluate", f"swept/kernel={kernel}", "--json"))
            self.assertTrue(line.startswith(f"kernel={kernel} "), table)
            for figure in report["metrics"].values():
                self.assertIn(f"{figure:.6g}", line)
        self.assertEqual(table[-1], "runs: swept")

    def test_two_sweeps_are_a_grid_and_two_jobs_give_the_same_figures(self):
        asked = ("--sweep", "kernel=gaussian,box", "--sweep", "h=1,2", "--json")
        one = json.loads(self.sweep(*asked).stdout)
        two = json.loads(self.sweep(*asked, "--jobs", 2, "--overwrite").stdout)
        self.assertEqual([report["run"] for report in one],
                         [f"swept/kernel={kernel},h={width}" for kernel in ("gaussian", "box") for width in (1, 2)])
        self.assertEqual([report["metrics"] for report in one], [report["metrics"] for report in two])

    def test_seeds_are_repeated_within_each_value(self):
        rows = json.loads(self.fovea("train", "general", "--sweep", "memories=20,30", "--seeds", 2, "--epochs", 1, "--threads", 1, "--jobs", 2, "--quiet",
                                     "--json", "--out", "swept").stdout)
        self.assertEqual([len(row["runs"]) for row in rows], [2, 2])
        self.assertIn("spread", rows[0])

    def test_a_sweep_is_continued_without_training_again_what_is_done(self):
        self.sweep("--sweep", "kernel=gaussian,box")
        first = self.folder / "swept/kernel=gaussian/config.json"
        before = first.stat().st_mtime_ns
        again = self.sweep("--sweep", "kernel=gaussian,box")
        self.assertEqual(again.returncode, 2)
        self.assertIn("--resume continues the sweep", again.stderr)
        shutil.rmtree(self.folder / "swept/kernel=box")
        table = self.sweep("--sweep", "kernel=gaussian,box", "--resume").stdout
        self.assertIn("kernel=box", table)
        self.assertEqual(first.stat().st_mtime_ns, before)

    def test_what_cannot_be_meant_is_refused_before_anything_is_trained(self):
        for sweep, words in (("kernel=gaussian,round", "round"), ("kernels=a,b", "kernels"), ("kernel", "name=value"), ("kernel=", "name=value"),
                             ("kernel=a,,b", "name=value"), ("kernel=box,box", "twice")):
            with self.subTest(sweep=sweep):
                refused = self.sweep("--sweep", sweep)
                self.assertEqual(refused.returncode, 2, refused.stderr)
                self.assertIn(words, refused.stderr)
                self.assertFalse((self.folder / "swept").exists())
        self.assertIn("also given by --set", self.sweep("--set", "kernel=box", "--sweep", "kernel=gaussian,tricube").stderr)


class Forms(InAFolder):
    def setUp(self):
        super().setUp()
        self.done("train", "nadaraya-watson", "--threads", 1, "--quiet", "--out", "run")

    def test_the_page_goes_to_standard_output(self):
        self.done("explain", "run", "--out", "page.html")
        self.assertEqual(self.done("explain", "run", "--out", "-"), (self.folder / "page.html").read_text())

    def test_a_picture_is_one_svg_file_and_another_one_on_request(self):
        self.done("train", "gat", "--epochs", 0, "--set", "nodes=60", "--threads", 1, "--quiet", "--out", "layers")  # a picture for each layer
        self.done("explain", "layers", "--out", "one.svg")
        self.done("explain", "layers", "--out", "two.svg", "--picture", 2)
        titles = ["".join(ElementTree.parse(self.folder / name).getroot().itertext()) for name in ("one.svg", "two.svg")]
        self.assertNotEqual(*titles)
        beyond = self.fovea("explain", "run", "--out", "x.svg", "--picture", 99)
        self.assertEqual(beyond.returncode, 2)
        self.assertIn("--picture 99: there is 1, expected 1 to 1", beyond.stderr)

    def test_another_ending_is_refused_with_those_there_are(self):
        refused = self.fovea("explain", "run", "--out", "x.pdf")
        self.assertEqual(refused.returncode, 2)
        self.assertIn(".html, .json, .svg or .png", refused.stderr)

    def test_without_chromium_a_png_says_what_is_missing(self):
        refused = self.fovea("explain", "run", "--out", "x.png", env={"PATH": "/nowhere"})
        self.assertEqual(refused.returncode, 1)
        self.assertIn("Chromium", refused.stderr)
        self.assertIn("FOVEA_CHROMIUM", refused.stderr)
        self.assertFalse((self.folder / "x.png").exists())

    @unittest.skipUnless(CHROMIUM, "no Chromium")
    def test_a_png_is_twice_the_size_of_the_svg(self):
        self.done("explain", "run", "--out", "x.svg")
        self.done("explain", "run", "--out", "x.png")
        data = (self.folder / "x.png").read_bytes()
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        root = ElementTree.parse(self.folder / "x.svg").getroot()
        self.assertEqual([int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")],
                         [2 * int(root.get(side)) for side in ("width", "height")])

    def test_predictions_in_json_name_the_inputs_and_are_those_of_the_table(self):
        rows = self.done("predict", "run", input="times\n10\n20\n").splitlines()[1:]
        objects = [json.loads(line) for line in self.done("predict", "run", "--json", input="times\n10\n20\n").splitlines()]
        self.assertEqual([(one["line"], one["inputs"]) for one in objects], [(2, {"times": 10.0}), (3, {"times": 20.0})])
        for row, one in zip(rows, objects):
            self.assertAlmostEqual(float(row.split(",")[1]), one["answer"], places=3)


if __name__ == "__main__":
    unittest.main()
