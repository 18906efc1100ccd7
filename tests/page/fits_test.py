"""No text is cut, hidden behind the page's edge or hard to read: the samples of every view, and a tour.

fits_test.py SAMPLES; SAMPLES is a folder that write_samples wrote. Exits 77 (skipped) without Chromium.
"""

import os
import sys
import unittest

import fits
from browser import Browser, skip_without_chromium

SAMPLES = ""
# Each fault once, planted in a page that has none.
PLANTED = {
    "equation wider": "<div class='equation' style='width: 60px; flex-wrap: nowrap'><math style='min-width: 200px'><mi>x</mi></math></div>",
    "past the page": "<div style='position: absolute; left: 380px; width: 90px'>long</div>",
    "cut by its picture": "<svg width='40' height='20' style='overflow: hidden'><text x='20' y='12'>a long name</text></svg>",
    "contrast": "<p style='color: #999; background: #fff'>pale</p>",
}


class Fits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser(1280, 900)
        cls.addClassCleanup(cls.browser.close)

    def looked_at(self, width, theme):
        self.browser.resize(width)
        self.browser.theme(theme)
        self.browser.open(os.path.join(SAMPLES, "samples.html"))
        return fits.faults(self.browser)

    def test_wide_and_light(self):
        self.assertEqual(self.looked_at(1280, "light"), [])

    def test_wide_and_dark(self):
        self.assertEqual(self.looked_at(1280, "dark"), [])

    def test_narrow_and_light(self):
        self.assertEqual(self.looked_at(390, "light"), [])

    def test_narrow_and_dark(self):
        self.assertEqual(self.looked_at(390, "dark"), [])

    def test_each_fault_is_found(self):
        self.browser.resize(390)
        self.browser.theme("light")
        for kind, planted in PLANTED.items():
            self.browser.open(os.path.join(SAMPLES, "samples.html"))
            self.browser.run(f"document.querySelector('main').innerHTML = {planted!r}")
            found = fits.faults(self.browser)
            self.assertTrue(any(fault.startswith(kind) for fault in found), (kind, found))

    def test_a_tall_page_is_found(self):
        self.browser.resize(390)
        for height, found in ((3000, 0), (4001, 1)):
            self.browser.open(os.path.join(SAMPLES, "samples.html"))
            self.browser.run("document.body.innerHTML = '<div style=height:%dpx></div>'" % height)
            self.assertEqual(len(fits.too_tall(self.browser)), found, height)


if __name__ == "__main__":
    skip_without_chromium()
    SAMPLES = sys.argv.pop(1)
    unittest.main(verbosity=2)
