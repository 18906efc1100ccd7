"""A PDF of the page has every figure, in its colours, though a printer is told to save ink and the page was dark.

paper_test.py SAMPLES; SAMPLES is a folder that write_samples wrote. Exits 77 (skipped) without Chromium.
"""

import os
import sys
import unittest

import paper
from browser import Browser, skip_without_chromium

SAMPLES = ""


class OnPaper(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser(1280, 900)
        cls.addClassCleanup(cls.browser.close)

    def opened(self, theme, width=1280):
        self.browser.resize(width)
        self.browser.theme(theme)
        self.browser.open(os.path.join(SAMPLES, "samples.html"))
        return self.browser

    def test_every_figure_and_colour_from_every_theme_and_width(self):
        for theme, width in (("light", 1280), ("dark", 1280), ("dark", 390)):
            with self.subTest(theme=theme, width=width):
                browser = self.opened(theme, width)
                self.assertGreater(browser.run("document.querySelectorAll('figure.explanation').length"), 15)
                self.assertEqual(paper.lost(browser), [])

    def test_a_page_that_leaves_colours_to_the_printer_is_found(self):
        browser = self.opened("light")
        browser.run("document.head.insertAdjacentHTML('beforeend', '<style>@media print { * { print-color-adjust: economy !important; -webkit-print-color-adjust: economy !important } }</style>')")
        lost = paper.lost(browser)
        self.assertTrue(any(one.startswith("One sentence, two aspects: no colour") for one in lost), lost)

    def test_a_figure_that_is_not_printed_is_found(self):
        browser = self.opened("light")
        browser.run("document.head.insertAdjacentHTML('beforeend', '<style>@media print { figure[data-system=bahdanau] { display: none } }</style>')")
        lost = paper.lost(browser)
        self.assertIn("no figure 'The house is small, word by word'", lost)
        self.assertRegex(lost[-1], r"^\d+ pictures of pixels, expected \d+$")


if __name__ == "__main__":
    skip_without_chromium()
    SAMPLES = sys.argv.pop(1)
    unittest.main(verbosity=2)
