"""Views that follow each other, on a page of Nadaraya–Watson: the slider moves the matrix, the eye on the curve points at its weights."""

import os
import shutil
import subprocess
import tempfile
import unittest

from browser import Browser, skip_without_chromium

FOVEA = os.environ["FOVEA_COMMAND"]
FOLDER = tempfile.mkdtemp(prefix="fovea-linked-")
FIGURE = "document.querySelector('figure.explanation')"


def fovea(*arguments):
    subprocess.run([FOVEA, *arguments], check=True, capture_output=True, cwd=FOLDER, env={**os.environ, "OMP_NUM_THREADS": "1"})


class Linked(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(shutil.rmtree, FOLDER)
        fovea("train", "nadaraya-watson", "--out", "curve")
        fovea("explain", "curve", "--out", "curve.html")
        rows = "".join(f"{i % 9},{i // 9},{(i % 9) ** 2 + 3 * (i // 9)}\n" for i in range(81))
        with open(os.path.join(FOLDER, "two.csv"), "w", encoding="utf-8") as file:
            file.write("east,north,height\n" + rows)
        fovea("train", "nadaraya-watson", "--data", "two.csv", "--out", "map")
        fovea("explain", "map", "--out", "map.html")

    def opened(self, name, width=1280):
        browser = Browser(width, 900)
        self.addCleanup(browser.close)
        browser.open(os.path.join(FOLDER, name))
        browser.settle()
        return browser

    def test_the_slider_moves_the_matrix(self):
        browser = self.opened("curve.html")
        drawn = FIGURE + ".querySelector('.matrix-box canvas').toDataURL()"
        before = browser.run(drawn)
        browser.run("(() => { const s = %s.querySelector('.plot .slider input'); s.value = s.max; s.dispatchEvent(new Event('input', { bubbles: true })); })()" % FIGURE)
        browser.settle()
        self.assertNotEqual(browser.run(drawn), before)
        label = browser.run(FIGURE + ".querySelector('[data-label=\"bandwidth h\"] dd').textContent")
        shown = float(browser.run(FIGURE + ".querySelector('.plot .slider output').textContent"))
        self.assertLess(abs(float(label) - shown), 0.001 * shown, "to three digits")
        self.assertEqual(browser.errors, [])

    def test_the_eye_on_the_curve_points_at_its_weights(self):
        browser = self.opened("curve.html")
        hot = FIGURE + ".querySelectorAll('.matrix-box .cursor').length"
        self.assertEqual(browser.run(hot), 0)
        places = []
        for share in (0.3, 0.8):
            browser.run("""(() => { const s = %s.querySelector('.plot svg'), b = s.getBoundingClientRect();
                s.dispatchEvent(new PointerEvent('pointermove', { clientX: b.left + %g * b.width, clientY: b.top + 50, bubbles: true })); })()""" % (FIGURE, share))
            browser.settle()
            self.assertEqual(browser.run(hot), 1)
            places.append(browser.run(FIGURE + ".querySelector('.matrix-box .cursor').getAttribute('y')"))
        self.assertLess(float(places[0]), float(places[1]), "further to the right is further down")

    def test_the_lectures_kernels_and_shares_are_curves_beside_the_flat_mean(self):
        browser = self.opened("curve.html")
        plots = browser.run("%s.frame.model.plots.map((p) => [p.title, p.x_label, p.curves])" % FIGURE)
        by_title = {title: (label, curves) for title, label, curves in plots}
        self.assertEqual(browser.run(FIGURE + ".querySelector('h4').textContent"), "A motorcycle crash: acceleration of the head, g")
        self.assertEqual(by_title["Data and curve"][0], "milliseconds after the impact")
        mean = next(curve for curve in by_title["Data and curve"][1] if curve.get("label") == "mean of all")
        self.assertEqual(len(set(mean["y"])), 1, "flat")
        kernels, shares = by_title["Kernels of some observations"][1], by_title["Their shares of the answer"][1]
        self.assertEqual(len(kernels), 7)
        self.assertEqual([curve["label"] for curve in kernels], [curve["label"] for curve in shares])
        for at in range(len(shares[0]["x"])):
            total = sum(curve["y"][at] for curve in shares)
            self.assertTrue(0 <= total <= 1 + 1e-6, total)
        for curve in kernels:  # each has its top where its observation is
            top = curve["x"][max(range(len(curve["y"])), key=curve["y"].__getitem__)]
            self.assertLess(abs(top - float(curve["label"].split()[-1])), 0.5)

    def test_a_contour_is_one_line(self):
        browser = self.opened("map.html")
        pieces = browser.run("[...%s.querySelectorAll('path.line')].slice(0, 7).map((p) => (p.getAttribute('d').match(/M/g) || []).length)" % FIGURE)
        self.assertEqual(len(pieces), 7)
        self.assertTrue(all(1 <= n <= 3 for n in pieces), pieces)

    def test_two_inputs_are_a_map_with_contours(self):
        browser = self.opened("map.html")
        shown = browser.run("[...%s.querySelectorAll('.plot h5')].map((h) => h.textContent)" % FIGURE)
        self.assertIn("height over east and north", shown)
        lines = browser.run("""[...%s.querySelectorAll('.plot')].filter((p) => p.querySelector('h5').textContent.includes(' over '))
            .map((p) => [p.querySelectorAll('path.line').length, p.querySelectorAll('.points circle').length])""" % FIGURE)
        self.assertEqual(lines, [[7, 81]])
        self.assertEqual(browser.errors, [])

    def test_narrow_pages_are_not_cut(self):
        for name in ("curve.html", "map.html"):
            browser = self.opened(name, 390)
            self.assertEqual(browser.run("document.documentElement.scrollWidth"), 390)
            cut = browser.run("""[...document.querySelectorAll('.plot svg')].flatMap((s) => { const b = s.getBoundingClientRect();
                return [...s.querySelectorAll('.axis-label')].filter((t) => { const r = t.getBoundingClientRect();
                  return r.left < b.left - 1 || r.right > b.right + 1 || r.top < b.top - 1 || r.bottom > b.bottom + 1; }).map((t) => t.textContent); })""")
            self.assertEqual(cut, [], name)


if __name__ == "__main__":
    skip_without_chromium()
    unittest.main(verbosity=2)
