"""The page of `fovea serve` in a real browser: live_test.py FOVEA FOLDER trains two small runs there, serves them and types.

Exits 77 (skipped) without Chromium.
"""

import re
import shutil
import subprocess
import sys
import unittest

from browser import Browser, skip_without_chromium

FOVEA = FOLDER = ""


class Live(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        for system, more in (("word-sum", ["--epochs", "2"]), ("multi-head", ["--epochs", "1"])):
            subprocess.run([FOVEA, "train", system, "--quiet", "--out", f"{FOLDER}/{system}", *more], check=True, stdout=subprocess.DEVNULL)
        cls.start()

    @classmethod
    def start(cls):
        cls.server = subprocess.Popen([FOVEA, "serve", f"{FOLDER}/word-sum", f"{FOLDER}/multi-head", "--port", "0"], text=True, stdout=subprocess.PIPE)
        cls.address = re.search(r"http://\S+", cls.server.stdout.readline())[0]

    @classmethod
    def stop(cls):
        cls.server.terminate()
        cls.server.wait(timeout=30)
        cls.server.stdout.close()

    @classmethod
    def tearDownClass(cls):
        cls.stop()

    def setUp(self):
        self.browser = Browser()
        self.addCleanup(self.browser.close)

    def type(self, text):
        before = self.browser.run("document.body.dataset.answered || ''")
        self.browser.run("document.getElementById('live-input').focus()")
        self.browser.call("Input.insertText", text=text)
        self.browser.wait(f"(document.body.dataset.answered || '') !== '{before}'", seconds=30)
        self.browser.settle()

    def words(self):
        return self.browser.run("document.querySelector('.pictures .panel:not([hidden]) .stage').textContent")

    def test_what_is_typed_is_answered_and_drawn(self):
        self.browser.open(self.address + "word-sum/")
        self.type("a great film")
        self.assertTrue(self.browser.run("document.querySelector('.live-text').textContent.length > 0"))
        self.assertIn("great", self.words())
        self.type(" indeed")
        self.assertIn("indeed", self.words())
        bars = self.browser.run("document.querySelectorAll('.live-track').length")
        self.assertGreaterEqual(bars, 2, "a bar for each class")
        self.assertEqual(self.browser.errors, [])
        self.assertTrue(all(url.startswith(self.address) for url in self.browser.requests), self.browser.requests)

    def test_the_example_is_one_press_away(self):
        self.browser.open(self.address + "word-sum/")
        self.browser.run("document.querySelector('.live-tools button').click()")
        self.browser.wait("document.body.dataset.answered", seconds=30)
        self.assertIn("really", self.words())

    def test_the_head_that_was_chosen_stays_chosen(self):
        self.browser.open(self.address + "multi-head/")
        self.type("cat-o fox-a sees")
        state = "document.querySelector('.panel:not([hidden]) figure').frame.state.head"
        self.browser.run("document.querySelector('.panel:not([hidden]) figure').frame.pick({ head: 1 })")
        self.type(" today")
        self.assertEqual(self.browser.run(state), 1)

    def test_nothing_typed_becomes_markup_and_errors_are_words(self):
        self.browser.open(self.address + "word-sum/")
        self.type("<img src=x onerror=alert(1)> </script><b>bold</b>")
        self.assertEqual(self.browser.run("document.querySelectorAll('img[src=x], #live-answer b').length"), 0)
        self.stop()
        self.addCleanup(self.start)  # for the tests after this one
        self.browser.run("document.getElementById('live-input').focus()")
        self.browser.call("Input.insertText", text="more")
        self.browser.wait("document.querySelector('.live-error')", seconds=30)
        self.assertIn("does not answer", self.browser.run("document.querySelector('.live-error').textContent"))

    def test_it_fits_a_phone_in_both_themes(self):
        for dark in (False, True):
            self.browser.theme("dark" if dark else "light")
            self.browser.resize(390)
            self.browser.open(self.address + "word-sum/")
            self.type("not really great")
            self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), 390)


if __name__ == "__main__":
    skip_without_chromium()
    FOVEA, FOLDER = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
