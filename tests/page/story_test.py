"""One screen tells the story: further examples fold, equations and names fit the page, also a narrow one.

story_test.py SAMPLES; SAMPLES is a folder that write_samples wrote. Exits 77 (skipped) without Chromium.
"""

import os
import re
import sys
import tempfile
import unittest

from browser import Browser, skip_without_chromium

SAMPLES = ""
LONG = (r"<math display='block'><mrow><mi>f</mi><mo>=</mo>" + "<mi>abcdef</mi><mo>+</mo>" * 5 + "<mi>z</mi></mrow></math>")


class Story(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(SAMPLES, "samples.html"), encoding="utf-8") as file:
            cls.page = file.read()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.browser = Browser(1280, 900)
        cls.addClassCleanup(cls.browser.close)

    def written(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def opened(self, path, width=1280):
        browser = self.browser
        browser.errors.clear()
        browser.resize(width)
        browser.call("Page.navigate", url="about:blank")
        browser.open(path)
        browser.settle()
        self.assertEqual(browser.errors, [])
        return browser

    def many(self, count):
        """The page of samples with one part, which has `count` pictures."""
        parts = re.findall(r'<div class="pictures">.*?</div>\n', self.page, flags=re.DOTALL)
        script = re.search(r'<script type="application/json" class="explanation" id="[^"]*">.*?</script>', parts[0], flags=re.DOTALL)[0]
        scripts = "\n".join(re.sub(r'id="[^"]*"', f'id="story-picture-{i + 1}"', script, count=1) for i in range(count))
        start, end = self.page.index('<section class="part"'), self.page.rindex("</section>") + len("</section>")
        return self.page[:start] + f'<section class="part" id="story"><div class="pictures">\n{scripts}</div></section>' + self.page[end:]

    shown = "[...document.querySelectorAll('.tabs button')].filter((b) => b.offsetHeight > 0).length"

    def test_further_examples_fold_and_open(self):
        browser = self.opened(self.written("nine.html", self.many(9)))
        self.assertEqual(browser.run(self.shown), 4)
        more = "document.querySelector('.more-tabs')"
        self.assertEqual(browser.run(more + ".textContent"), "5 more pictures")
        self.assertEqual(browser.run(more + ".getAttribute('aria-expanded')"), "false")
        browser.run(more + ".click()")
        self.assertEqual(browser.run(self.shown), 9)
        self.assertEqual(browser.run(more + ".getAttribute('aria-expanded')"), "true")

    def test_few_pictures_do_not_fold(self):
        browser = self.opened(self.written("five.html", self.many(5)))
        self.assertEqual(browser.run(self.shown), 5)
        self.assertTrue(browser.run("document.querySelector('.more-tabs') === null"))

    def test_arrows_and_addresses_reach_what_is_folded(self):
        path = self.written("nine.html", self.many(9))
        browser = self.opened(path)
        browser.run("(() => { const t = document.querySelectorAll('.tabs button')[3]; t.click(); t.focus(); })()")
        browser.press("ArrowRight")
        self.assertEqual(browser.run("[...document.querySelectorAll('.panel')].findIndex((p) => !p.hidden)"), 4)
        self.assertEqual(browser.run(self.shown), 9)
        browser.call("Page.navigate", url="about:blank")
        browser.call("Page.navigate", url=f"file://{path}#story-picture-8")
        browser.wait("document.body && document.body.dataset.ready === 'yes'", seconds=60)
        self.assertEqual(browser.run("[...document.querySelectorAll('.panel')].findIndex((p) => !p.hidden)"), 7)

    def test_paper_has_every_picture_and_no_tabs(self):
        browser = self.opened(self.written("nine.html", self.many(9)))
        seen = browser.run("""(() => { dispatchEvent(new Event('beforeprint'));
            const s = [[...document.querySelectorAll('.panel')].filter((p) => !p.hidden).length, document.querySelector('.more-tabs').offsetHeight];
            dispatchEvent(new Event('afterprint')); return s; })()""")
        self.assertEqual(seen, [9, 0])

    def test_a_wrong_answer_is_marked(self):
        first = '"outcome":"'
        for said, wrong in (("wrong: bad, p = 0.6", True), ("0101 (wrong: one bit)", True), ("der Hund (wrong; right: die Katze)", True), ("hall; right: garden", True), ("hall (right: garden)", True),
                            ("right: good, p = 0.9", False), ("0101 (right)", False), ("garden, which is right", False), ("wrong way, p = 0.9", False)):
            start = self.page.index(first) + len(first)
            page = self.page[:start] + said + self.page[self.page.index('"', start):]
            browser = self.opened(self.written("wrong.html", page))
            marked = browser.run("[...document.querySelectorAll('.outcome')].filter((p) => p.lastChild.data === %r).map((p) => [p.classList.contains('wrong'), p.textContent.startsWith('✗ ')])" % said)
            self.assertEqual(marked, [[wrong, wrong]], said)

    def test_a_tall_picture_opens_on_demand_and_is_whole_on_paper_and_in_files(self):
        for width, tallest in ((1280, 2050), (390, 1200)):
            browser = self.opened(self.written("tall.html", self.many(1)), width)
            self.tall_picture(browser, tallest)

    def tall_picture(self, browser, tallest):
        frame = "document.querySelector('figure.explanation').frame"
        browser.run(f"(() => {{ const f = {frame}, d = document.createElement('div'); d.style.height = '3000px'; f.stage.after(d); f.draw(); }})()")
        picture = f"{frame}.picture.getBoundingClientRect().height"
        opener = f"{frame}.figure.querySelector('.opener')"
        self.assertEqual(browser.run(picture), tallest)
        self.assertGreater(browser.run(f"{frame}.whole(() => {picture})"), 3000)
        self.assertEqual(browser.run(picture), tallest)
        self.assertEqual(browser.run(f"[{opener}.textContent, {opener}.getAttribute('aria-expanded')]"), ["Show the whole picture", "false"])
        browser.run(f"{opener}.click()")
        self.assertGreater(browser.run(picture), 3000)
        self.assertEqual(browser.run(f"{opener}.getAttribute('aria-expanded')"), "true")
        browser.run(f"{opener}.click()")
        self.assertEqual(browser.run(picture), tallest)
        self.assertGreater(browser.run(f"(() => {{ dispatchEvent(new Event('beforeprint')); const h = {picture}; dispatchEvent(new Event('afterprint')); return h; }})()"), 3000)

    def test_a_long_equation_is_set_to_fit(self):
        page = self.page.replace("<main", f'<main><div class="equation">{LONG}</div></main><main', 1)
        for width in (1280, 390):
            browser = self.opened(self.written("long.html", page), width)
            over = browser.run("""[...document.querySelectorAll('.equation')].map((e) => [e.scrollWidth - e.clientWidth,
                parseFloat(getComputedStyle(e.querySelector('math')).fontSize)])""")
            for cut, size in over:
                self.assertLessEqual(cut, 1, f"cut at {width}")
                self.assertGreater(size, 10, "and still read")

    def test_names_above_the_lines_are_not_cut(self):
        browser = self.opened(os.path.join(SAMPLES, "samples.html"), 390)
        cut = browser.run("""[...document.querySelectorAll('svg .side')].filter((t) => { const b = t.closest('svg').getBoundingClientRect(), r = t.getBoundingClientRect();
            return r.left < b.left - 1 || r.right > b.right + 1; }).map((t) => t.textContent)""")
        self.assertEqual(cut, [])


if __name__ == "__main__":
    skip_without_chromium()
    SAMPLES = sys.argv.pop(1)
    unittest.main(verbosity=2)
