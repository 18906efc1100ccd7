"""The tour's page in a real browser: tour_test.py FOVEA FOLDER runs `FOVEA tour --out FOLDER` and reads what it wrote.

Exits 77 (skipped) without Chromium.
"""

import json
import os
import shutil
import subprocess
import sys
import unittest

import page_test
from browser import Browser, find_chromium

FOVEA = FOLDER = ""
QUICK = ["pooling", "gradient-masking"]  # seconds; `fovea tour` alone runs all


class Tour(page_test.Page):
    file = "index.html"

    @classmethod
    def setUpClass(cls):
        cls.ran = subprocess.run([FOVEA, "tour", "--quiet", "--out", FOLDER, "--only", *QUICK], capture_output=True, text=True, check=False)
        page_test.SAMPLES = FOLDER
        super().setUpClass()

    def test_three_lines_say_what_ran_what_was_found_and_where_the_page_is(self):
        self.assertEqual(self.ran.returncode, 0, self.ran.stderr)
        lines = self.ran.stdout.splitlines()
        self.assertEqual(len(lines), 3, self.ran.stdout)
        self.assertRegex(lines[0], r"^ran 2 systems on generated data in .+: pooling, gradient-masking$")
        self.assertTrue(lines[1].startswith("attention on the right item: "))
        self.assertEqual(lines[2], f"open {os.path.join(FOLDER, 'index.html')}")

    def test_every_part_has_idea_equation_code_picture_and_figures(self):
        parts = self.run_js("""[...document.querySelectorAll('section.part')].map((s) => [s.id, s.querySelector('.prose p')?.textContent.length > 80,
            Boolean(s.querySelector('math mi')), s.querySelector('pre code')?.textContent.includes('fovea::'),
            s.querySelectorAll('figure.explanation').length > 0, s.querySelectorAll('.figures tbody tr').length > 0])""")
        self.assertEqual(parts, [[name, True, True, True, True, True] for name in QUICK])

    def test_runs_are_complete(self):
        self.assertEqual(sorted(os.listdir(FOLDER)), sorted(QUICK + ["index.html"]))
        for name in QUICK:
            with open(os.path.join(FOLDER, name, "config.json"), encoding="utf-8") as file:
                self.assertEqual(json.load(file)["system"], name)

    def test_every_weight_is_labelled(self):
        page_test.EveryView.test_every_picture_of_weights_says_normaliser_layer_head_and_scale(self)

    def test_everything_that_acts_has_a_name(self):
        page_test.EveryView.test_everything_that_acts_has_a_name(self)

    def test_pickers_draw_without_error(self):
        # Each radio button and the ends of each slider, in turn; errors are collected by the base.
        clicked = self.run_js("""(() => { let n = 0;
            for (const i of document.querySelectorAll('figure input[type=radio]')) { i.click(); ++n; }
            for (const i of document.querySelectorAll('figure input[type=range]')) for (const v of [i.max, i.min]) { i.value = v; i.dispatchEvent(new Event('input')); ++n; }
            return n; })()""")
        self.assertGreater(clicked, 10)
        self.assertEqual(self.run_js("[...document.querySelectorAll('figure')].filter((f) => f.textContent.includes('NaN')).length"), 0)

    def test_narrow_and_dark(self):
        browser = Browser(390, 900, dark=True)
        try:
            browser.open(os.path.join(FOLDER, self.file))
            self.assertEqual(browser.run("document.documentElement.scrollWidth"), 390)
            self.assertEqual(browser.errors, [])
        finally:
            browser.close()

    def test_a_name_that_is_not_there_is_helped(self):
        wrong = subprocess.run([FOVEA, "tour", "--out", FOLDER + "-wrong", "--only", "poling"], capture_output=True, text=True, check=False)
        self.assertEqual(wrong.returncode, 2)
        self.assertRegex(wrong.stderr, "did you mean .pooling")
        self.assertEqual(len(wrong.stderr.strip().splitlines()), 1)
        self.assertFalse(os.path.exists(FOLDER + "-wrong"))

    def test_a_folder_that_is_no_run_is_left_alone(self):
        shutil.rmtree(FOLDER + "-mine", ignore_errors=True)
        os.makedirs(os.path.join(FOLDER + "-mine", "pooling"))
        notes = os.path.join(FOLDER + "-mine", "pooling", "notes.txt")
        with open(notes, "w", encoding="utf-8") as file:
            file.write("mine")
        refused = subprocess.run([FOVEA, "tour", "--out", FOLDER + "-mine", "--only", "pooling"], capture_output=True, text=True, check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("is no RUN", refused.stderr)
        self.assertEqual(os.listdir(os.path.dirname(notes)), ["notes.txt"])


if __name__ == "__main__":
    if not find_chromium():
        print("skipped: no Chromium (FOVEA_CHROMIUM names one)")
        sys.exit(77)
    FOVEA, FOLDER = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main(verbosity=2)
