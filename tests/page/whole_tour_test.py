"""Every page of the whole tour, as one would show it: whole_tour_test.py FOVEA FOLDER runs `FOVEA tour --out FOLDER`, minutes, and reads what it wrote.

With - for FOVEA the folder holds a tour already. Exits 77 (skipped) without Chromium.
"""

import os
import re
import subprocess
import sys
import unittest

import fits
import paper
from browser import Browser, opened_pages, skip_without_chromium

FOVEA = FOLDER = ""
HEAVIEST = 400_000  # bytes of a page without its pictures' data
AT_ONCE = 500  # ms to the first picture


def setUpModule():
    if FOVEA != "-":
        subprocess.run([FOVEA, "tour", "--quiet", "--out", FOLDER], check=True, stdout=subprocess.DEVNULL)


def pages():
    return sorted(name.removesuffix(".html") for name in os.listdir(FOLDER) if name.endswith(".html"))


def systems():
    return [name for name in pages() if name not in ("index", "lectures")]


class WholeTour(unittest.TestCase):
    def opened(self, browser, name, anchor=""):
        browser.errors.clear()
        browser.call("Page.navigate", url="about:blank")
        browser.call("Page.navigate", url=f"file://{os.path.abspath(os.path.join(FOLDER, name + '.html'))}{anchor}")
        browser.wait("document.body && document.body.dataset.ready === 'yes'", seconds=60)
        return browser

    def browser(self, dark=False):
        browser = Browser(1280, 900, dark)
        self.addCleanup(browser.close)
        return browser

    def test_all_systems_have_a_page(self):
        self.assertGreaterEqual(len(systems()), 40)

    def test_nothing_is_cut_or_pale_and_no_page_is_tall(self):
        for browser, page in opened_pages(FOLDER):
            with self.subTest(page=page):
                self.assertEqual(fits.too_tall(browser) + fits.faults(browser), [])
                self.assertEqual(browser.errors, [])
                self.assertEqual([url for url in browser.requests if not url.startswith("file://")], [], "it needs no network")

    def test_the_first_picture_shows_the_point(self):
        browser = self.opened(self.browser(), "beam-search")
        said = browser.run("[...document.querySelector('.panel:not([hidden])').querySelectorAll('.outcome')].map((line) => line.textContent)")
        self.assertRegex(said[1], r"^beam of 4: .* \(right\)$")
        self.assertRegex(said[2], r"^✗ greedy search: .* \(wrong\)$")
        self.assertGreater(browser.run("document.querySelectorAll('.panel:not([hidden]) .node.greedy').length"), 0)
        verdict = self.opened(browser, "alignment").run("document.querySelector('.panel:not([hidden]) .verdict').textContent")
        found, words = map(int, re.search(r"for (\d+) of (\d+)", verdict).groups())
        self.assertGreaterEqual(found / words, 0.75, verdict)
        self.assertIn("positive", self.opened(browser, "mil").run("document.querySelector('.bag-strip h5').textContent").split(":")[0])

    def test_pages_without_their_data_are_light(self):
        for name in pages():
            with self.subTest(page=name), open(os.path.join(FOLDER, name + ".html"), encoding="utf-8") as file:
                page = re.sub(r'(<script type="application/json"[^>]*>).*?</script>', r"\1</script>", file.read(), flags=re.DOTALL)
                self.assertLess(len(page.encode()), HEAVIEST)

    def test_the_first_picture_is_on_the_first_screen_and_drawn_at_once(self):
        browser = self.browser()
        for name in systems():
            with self.subTest(page=name):
                times = [self.opened(browser, name).run("performance.getEntriesByName('picture')[0].startTime") for _ in range(3)]
                self.assertLess(min(times), AT_ONCE)
                self.assertLess(browser.run("document.querySelector('figure.explanation .picture').getBoundingClientRect().top"), 900)

    def test_a_link_to_any_picture_lands_on_it(self):
        browser = self.browser()
        for name in systems():
            count = self.opened(browser, name).run("document.querySelectorAll('.panel').length")
            for number in range(2, count + 1):
                with self.subTest(page=name, picture=number):
                    self.opened(browser, name, f"#{name}-picture-{number}")
                    hidden, top = browser.run(f"(() => {{ const p = document.getElementById('{name}-picture-{number}'); return [p.hidden, p.getBoundingClientRect().top]; }})()")
                    self.assertFalse(hidden)
                    self.assertTrue(-1 <= top < 900, top)

    def test_paper_has_every_figure_and_colour(self):
        browser = self.browser(dark=True)
        for name in systems():
            with self.subTest(page=name):
                self.assertEqual(paper.lost(self.opened(browser, name)), [])

    def test_every_file_of_a_figure_is_one(self):
        browser = self.browser()
        for name in systems():
            with self.subTest(page=name):
                broken = self.opened(browser, name).run("""(async () => {
                    const out = [], create = URL.createObjectURL;
                    HTMLAnchorElement.prototype.click = () => {};
                    for (const t of [null, ...document.querySelectorAll('.tabs button')]) {
                      t?.click();
                      for (const button of [...document.querySelectorAll('figure .buttons button')].filter((b) => b.checkVisibility())) {
                        let blob = null;
                        URL.createObjectURL = (b) => { blob = b; return create(b); };
                        button.click();
                        for (let i = 0; i < 500 && !blob; ++i) await new Promise((r) => setTimeout(r, 20));
                        const text = blob?.type === 'image/svg+xml' ? await blob.text() : '';
                        const parsed = text && new DOMParser().parseFromString(text, 'image/svg+xml');
                        if (!blob || blob.size < 1500 || parsed && (parsed.querySelector('parsererror') || /NaN|undefined/.test(text.replace(/base64,[^"]*/g, ''))))
                          out.push([t?.textContent, button.textContent, blob?.type, blob?.size]);
                      }
                    }
                    URL.createObjectURL = create;
                    return out; })()""")
                self.assertEqual(broken, [])
                self.assertEqual(browser.errors, [])


if __name__ == "__main__":
    skip_without_chromium()
    FOVEA, FOLDER = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main(verbosity=2)
