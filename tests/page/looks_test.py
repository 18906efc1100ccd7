"""Words, numbers and names as readers see them: nothing is cut, covered or written in powers of ten, and what is wrong is marked.

looks_test.py SAMPLES; SAMPLES is a folder that write_samples wrote. Exits 77 (skipped) without Chromium.
"""

import base64
import json
import os
import re
import sys
import tempfile
import unittest

from browser import Browser, skip_without_chromium

SAMPLES = ""
FIGURE = "document.querySelector('figure.explanation')"


def explanation(view, **fields):
    return {"format": "fovea-explanation", "version": 1, "system": "looks", "title": "A picture", "view": view, "score": "dot", "normaliser": "softmax",
            "scale": "1", "layers": {"label": "layer", "names": ["1"]}, "heads": {"label": "head", "names": ["1"]}, **fields}


def items(*texts):
    return [{"text": text} for text in texts]


def curve(*curves, **fields):
    return explanation("curve", normaliser="none", plots=[{"x_label": "x", "y_label": "y", "curves": list(curves), **fields}])


def overlap(boxes):
    """JavaScript: how many of some boxes lie on others."""
    return f"(() => {{ const b = {boxes}; return b.filter((p, i) => b.some((q, j) => j < i && p.left < q.right - 1 && q.left < p.right - 1 && p.top + 2 < q.bottom && q.top + 2 < p.bottom)).length; }})()"


class Looks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(SAMPLES, "samples.html"), encoding="utf-8") as file:
            cls.page = file.read()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = os.path.join(folder.name, "looks.html")
        cls.browser = Browser(1280, 900)
        cls.addClassCleanup(cls.browser.close)

    def drawn(self, picture, width=1280, prose=""):
        """The page of samples with one part, which has this picture."""
        start, end = self.page.index('<section class="part"'), self.page.rindex("</section>") + len("</section>")
        script = json.dumps(picture).replace("<", "\\u003c")
        part = (f'<section class="part" id="looks">{prose}<div class="pictures"><script type="application/json" class="explanation" id="looks-picture-1">{script}'
                '</script></div></section>')
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(self.page[:start] + part + self.page[end:])
        self.browser.errors.clear()
        self.browser.resize(width)
        self.browser.call("Page.navigate", url="about:blank")
        self.browser.open(self.path)
        self.browser.settle()
        self.assertEqual(self.browser.errors, [])

    def run_js(self, rest):
        return self.browser.run("(() => { const f = %s; return %s; })()" % (FIGURE, rest))

    def test_numbers_of_a_table_have_a_minus_and_no_negative_zero(self):
        self.drawn(explanation("curve", tables=[{"columns": ["word", "number"], "rows": [["a-b", "-1.50"], ["c", "-0.000"], ["d", "-1e-05"], ["q" * 90, "0.2"]]}]))
        self.assertEqual(self.run_js("[...f.querySelectorAll('.tables tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))"),
                         [["a-b", "−1.50"], ["c", "0.000"], ["d", "−1e−05"], ["q" * 31 + "…", "0.2"]])

    def test_the_title_of_a_narrow_table_is_one_line(self):
        title = "The next word, layer by layer: its probability where the model ended after that layer"
        self.drawn(explanation("curve", tables=[{"title": title, "columns": ["word", "p"], "rows": [["a", "1"]]}]))
        self.assertLess(self.run_js("f.querySelector('.table-title').getBoundingClientRect().height"), 45)
        self.assertEqual(self.run_js("document.getElementById(f.querySelector('.tables table').getAttribute('aria-labelledby')).textContent"), title)

    def test_weights_that_are_nearly_nothing_are_no_powers_of_ten(self):
        self.drawn(explanation("bag", queries=items("bag"), keys=items("a", "b", "c", "d"), maps=[{"dense": [0.999, 8.9e-8, 0, -1e-5]}]))
        self.assertEqual(self.run_js("[...f.querySelectorAll('.card-number')].map((n) => n.textContent)"), ["0.999", "<0.001", "0", ">−0.001"])

    def test_a_bag_that_is_answered_wrong_is_marked(self):
        self.drawn(explanation("bag", queries=items("one: positive, p = 0.8 (wrong)", "two: positive, p = 0.7", "set 6: missed, the odd one has 0.1"),
                               keys=items("a"), maps=[{"dense": [1, 1, 1]}]))
        self.assertEqual(self.run_js("[...f.querySelectorAll('.stage h5')].map((h) => [h.classList.contains('wrong'), h.textContent.startsWith('✗')])"),
                         [[True, True], [False, False], [True, True]])

    def test_even_weights_are_called_so(self):
        for weights, even in (([0.26, 0.25, 0.25, 0.24], True), ([0.7, 0.1, 0.1, 0.1], False)):
            self.drawn(explanation("text", queries=items("?"), keys=items("a", "b", "c", "d"), maps=[{"dense": weights}]))
            self.assertEqual("nearly even" in self.run_js("f.querySelector('.even-note').textContent"), even)

    def test_a_picture_that_is_tall_by_its_matrix_is_cut_too(self):
        rows = [[str(i), "0"] for i in range(55)]
        self.drawn(explanation("matrix", queries=items(*[f"q{i}" for i in range(40)]), keys=items("a", "b", "c"), maps=[{"dense": [1, 0, 0] * 40}],
                               tables=[{"columns": ["row", "number"], "rows": rows}]))
        self.browser.settle()
        self.assertEqual(self.run_js("[f.querySelector('.picture').classList.contains('tall'), f.querySelector('.opener').hidden]"), [True, False])

    def test_layers_of_one_head_stand_side_by_side(self):
        names = [f"step {i}" for i in range(8)]
        self.drawn(explanation("matrix", queries=items("a", "b"), keys=items("c", "d"), layers={"label": "after", "names": names},
                               maps=[{"layer": i, "dense": [1, 0, 0, 1]} for i in range(8)]))
        tops = self.run_js("[...f.querySelectorAll('.overview button')].map((b) => Math.round(b.getBoundingClientRect().top))")
        self.assertEqual(len(tops), 8)
        self.assertLessEqual(len(set(tops)), 2, "at most two rows of tiles")
        self.assertEqual(self.run_js("[...f.querySelectorAll('.overview button .overview-name')].map((n) => n.textContent)"), names)
        self.assertIn("“after”", self.run_js("[...f.querySelectorAll('.axis-note')].pop().textContent"))

    def test_bars_that_have_names_stand_on_them(self):
        words = ["tea", "horse", "piano", "car", "a very long word", "music", "soup", "the"]
        for width in (1280, 390):
            self.drawn(curve({"kind": "bars", "label": "p", "x": list(range(1, 9)), "y": [0.9] + [0.01] * 7, "names": words}), width)
            ticks = self.run_js("[...f.querySelectorAll('.plot .tick[text-anchor=middle]')].map((t) => t.firstChild.data)")
            self.assertEqual(ticks[:4], words[:4])
            self.assertEqual(self.run_js(overlap("[...f.querySelectorAll('.plot .tick[text-anchor=middle]')].map((t) => t.getBoundingClientRect())")), 0)

    def test_an_axis_has_two_marks_at_least(self):
        for width in (1280, 390):
            self.drawn(curve({"kind": "bars", "label": "wrong bits", "x": list(range(1, 9)), "y": [0, 0, 0, 0, 3.2, 3.9, 12.2, 14.3]},
                             markers=[{"label": "longest in training", "x": 4.5}]), width)
            ticks = self.run_js("[...f.querySelectorAll('.plot .tick[text-anchor=middle]')].map((t) => t.textContent)")
            self.assertGreater(len(ticks), 1, f"{ticks} at {width}")

    def test_powers_of_ten_are_written_as_such(self):
        self.drawn(curve({"kind": "line", "label": "seconds", "x": [1, 2, 3], "y": [1.2e-5, 3e-4, 4e-3]}, log_y=True))
        ticks = self.run_js("[...f.querySelectorAll('.plot .tick[text-anchor=end]')].map((t) => t.textContent)")
        self.assertEqual(ticks, ["10⁻⁵", "10⁻⁴", "0.001"])
        self.drawn(curve({"kind": "line", "label": "bytes", "x": [1, 2, 3], "y": [0, 1e5, 3e5]}))
        ticks = self.run_js("[...f.querySelectorAll('.plot .tick[text-anchor=end]')].map((t) => t.textContent)")
        self.assertEqual(ticks, ["0", "10⁵", "2·10⁵", "3·10⁵"])

    def test_words_on_cards_are_not_broken(self):
        self.drawn(explanation("bag", queries=items("bag P012"), keys=items("1: temperature 38.6", "2: leukocytes 5.3"), maps=[{"dense": [0.9, 0.1]}]))
        wide = self.run_js("""[...f.querySelectorAll('.card-text')].map((t) => { const r = document.createRange(), n = t.firstChild, at = n.data.indexOf(' ') + 1;
            r.setStart(n, at); r.setEnd(n, n.data.lastIndexOf(' ')); return r.getClientRects().length; })""")
        self.assertEqual(wide, [1, 1], "a long word stands in one line")
        fonts = self.run_js("['.card-text', '.legend'].map((c) => getComputedStyle(f.querySelector(c)).fontFamily)")
        self.assertEqual(fonts[0], fonts[1], "in the letters of the figure")

    def test_contours_have_one_key_and_their_numbers_in_their_middle(self):
        lines = [{"kind": "line", "label": f"height = {10 * i}", "x": [i] * 21, "y": list(range(21))} for i in range(1, 8)]
        self.drawn(curve({"kind": "points", "label": "observations", "x": [1, 7], "y": [0, 20]}, *lines))
        self.assertEqual(self.run_js("[...f.querySelectorAll('.plot-key')].map((k) => k.textContent)"), ["observations", "height = 10 to 70"])
        middle, top, low = self.run_js("(() => { const n = f.querySelector('.point-name').getBoundingClientRect(), p = f.querySelector('path.line').getBoundingClientRect(); return [n.top + n.height / 2, p.top, p.bottom]; })()")
        self.assertLess(abs(middle - (top + low) / 2), 10)
        self.run_js("f.querySelectorAll('.plot-key input')[1].click()")
        self.assertEqual(self.run_js("f.querySelectorAll('path.line').length"), 0, "the key hides all of them")

    def test_a_long_label_of_the_y_axis_stands_above_the_plot(self):
        self.drawn(curve({"kind": "line", "label": "a", "x": [1, 2], "y": [1, 2]}, y_label="tokens written / tokens that were expected of it"), 390)
        sizes = self.run_js("[...f.querySelectorAll('.axis-label')].map((t) => parseFloat(getComputedStyle(t).fontSize))")
        self.assertGreaterEqual(min(sizes), 11)

    def test_a_marker_near_the_edge_is_read(self):
        self.drawn(curve({"kind": "line", "label": "a", "x": [0, 10], "y": [1, 2]}, markers=[{"label": "predicted: n = 4d", "x": 6.5}]), 390)
        label, plot = self.run_js("[f.querySelector('.marker-label').getBoundingClientRect().right, f.querySelector('.plot svg').getBoundingClientRect().right]")
        self.assertLessEqual(label, plot)

    def test_names_of_points_keep_clear_of_other_points(self):
        self.drawn(curve({"kind": "points", "label": "items", "x": [0.1 * i for i in range(-10, 11)], "y": [0] * 21},
                         {"kind": "points", "label": "experts", "x": [-1, 1], "y": [0, 0], "names": ["expert 1", "expert 3"]}))
        covered = self.run_js("""(() => { const dots = [...f.querySelectorAll('.points circle')].map((c) => c.getBoundingClientRect());
            return [...f.querySelectorAll('.point-name')].filter((n) => { const b = n.getBoundingClientRect();
              return dots.some((d) => d.left + 3 > b.left + 2 && d.left + 3 < b.right - 2 && d.top + 3 > b.top + 3 && d.top + 3 < b.bottom - 3); }).length; })()""")
        self.assertEqual(self.run_js("f.querySelectorAll('.point-name').length"), 2)
        self.assertEqual(covered, 0)

    def test_numbers_of_a_tree_are_not_covered(self):
        tree = [{"parent": -1, "text": "<s>", "score": 0, "state": "live"}]
        for i in range(6):
            tree += [{"parent": 0, "text": f"word{i}", "score": -1.0 - i, "state": "live"}] + [{"parent": len(tree), "text": "x", "score": -9, "state": "pruned"}] * 3
        for width in (1280, 390):
            self.drawn(explanation("tree", tree=tree), width)
            boxes = "[...f.querySelectorAll('.node rect, .node-folded')].map((n) => n.getBoundingClientRect())"
            self.assertEqual(self.run_js("f.querySelectorAll('.node-folded').length"), 6)
            self.assertEqual(self.run_js(overlap(boxes)), 0)
            self.assertGreaterEqual(self.run_js("Math.min(...[...f.querySelectorAll('.node-score')].map((t) => t.getBoundingClientRect().height))"), 9)

    def test_what_a_node_says_ends_within_its_box(self):
        words = ["<s>", "die", "Frau", "geschrieben", "bewacht", "großen", "WWWWWWWW", "a", "b", "c", "d", "e", "f", "g", "h", "i"]
        scores = [0, -6.09e-5, -0.00123, -0.0271, -0.953, -12.345, -123.4, -9876, 1.5] + [-1] * 7
        tree = [{"parent": i - 1, "text": word, "score": score} for i, (word, score) in enumerate(zip(words, scores, strict=True))]
        for width in (1280, 390):
            self.drawn(explanation("tree", tree=tree), width)
            past = self.run_js("""[...f.querySelectorAll('.node')].flatMap((n) => { const b = n.querySelector('rect').getBoundingClientRect();
                return [...n.querySelectorAll('.node-text, .node-score')].filter((t) => t.getBoundingClientRect().right > b.right + 0.5).map((t) => t.textContent); })""")
            self.assertEqual(past, [], width)
            self.assertEqual(self.run_js("[...f.querySelectorAll('.node-score')].slice(0, 4).map((t) => t.textContent)"), ["0.00", "−0.00", "−0.00", "−0.03"])

    def test_the_mark_of_a_finished_sentence_covers_no_word(self):
        tree = [{"parent": i - 1, "text": "word", "score": -i, "state": "live"} for i in range(14)]
        tree += [{"parent": 13, "text": "</s>", "score": -20.5, "state": "best"}, {"parent": 12, "text": "</s>", "score": -21.25, "state": "finished"}]
        for width in (1280, 390):
            self.drawn(explanation("tree", tree=tree), width)
            self.assertEqual(self.run_js("f.querySelectorAll('.node-done').length"), 2)
            self.assertEqual(self.run_js(overlap("[...f.querySelectorAll('.node-text, .node-score, .node-done')].map((t) => t.getBoundingClientRect())")
                                         .replace("p.top + 2", "p.top + 5").replace("q.top + 2", "q.top + 5")), 0, width)
            ground, marks = self.run_js("[getComputedStyle(f.querySelector('.picture')).backgroundColor, [...f.querySelectorAll('.node-done')].map((t) => getComputedStyle(t).fill)]")
            self.assertNotIn(ground, marks)

    def test_heads_that_look_at_one_word_show_their_colours(self):
        for heads in (2, 4, 8):
            weights = [{"head": h, "dense": [0.98, 0.01, 0.01]} for h in range(heads)]
            self.drawn(explanation("bipartite", queries=items("?"), keys=items("a", "b", "c"), heads={"label": "head", "names": [str(h + 1) for h in range(heads)]}, maps=weights))
            lines = self.run_js("[...f.querySelectorAll('.lines path')].map((p) => [p.getAttribute('stroke'), Number(p.getAttribute('d').match(/,(-?[\\d.]+)$/)[1]), Number(p.getAttribute('stroke-width'))])")
            self.assertEqual(len({line[0] for line in lines}), heads)
            ends = sorted(line[1] for line in lines)
            self.assertGreaterEqual(min(b - a for a, b in zip(ends, ends[1:])), 2.9, heads)
            self.assertLess(ends[-1] - ends[0], 32, "within the row of the word")

    def test_the_truth_is_seen_on_the_line_that_finds_it(self):
        self.drawn(explanation("bipartite", queries=items("?"), keys=items("a", "b"), maps=[{"dense": [0.99997, 3e-5]}], truth={"label": "truth", "sure": [[0, 0, 1]]}))
        kinds = self.run_js("[...f.querySelectorAll('.lines path')].map((p) => p.getAttribute('class'))")
        self.assertEqual(kinds, ["on", "truth-line pale on", "truth-line sure on"])
        drawn = self.run_js("[...f.querySelectorAll('.truth-line')].map((p) => getComputedStyle(p)).map((s) => [s.stroke, parseFloat(s.strokeWidth), s.strokeDasharray])")
        self.assertNotEqual(drawn[0][0], drawn[1][0])
        self.assertGreaterEqual(drawn[1][1], 2)
        self.assertEqual(drawn[0][2], drawn[1][2], "a pale line under every dash")
        self.assertNotIn("e−", self.run_js("f.querySelector('.readout').textContent"))

    def test_a_picture_without_a_known_place_begins_with_the_word_that_looks_at_one(self):
        pixels = base64.b64encode(bytes(64)).decode()
        keys = [{"text": str(i), "position": [0.5 * (i % 2), 0.5 * (i // 2), 0.5, 0.5]} for i in range(4)]
        weights = [{"dense": [0.3, 0.3, 0.2, 0.2, 0.01, 0.9, 0.04, 0.05, 0.25, 0.25, 0.25, 0.25]}]
        picture = {"width": 8, "height": 8, "channels": 1, "pixels": pixels}
        self.drawn(explanation("image", queries=items("a", "dog", "runs"), keys=keys, picture=picture, maps=weights))
        self.assertEqual(self.run_js("f.frame.state.query"), 1)
        self.drawn(explanation("image", queries=items("a", "dog", "runs"), keys=keys, picture=picture, maps=weights, truth={"label": "truth", "sure": [[2, 0, 1]]}))
        self.assertEqual(self.run_js("f.frame.state.query"), 2, "where it is known, the first that has something to find")

    def test_the_path_that_is_best_at_every_step_is_straight(self):
        tree = [{"parent": -1, "text": "<s>", "score": 0}, {"parent": 0, "text": "a", "score": -1}, {"parent": 0, "text": "b", "score": -2},
                {"parent": 1, "text": "c", "score": -1, "state": "best"}, {"parent": 1, "text": "d", "score": -3}]
        self.drawn(explanation("tree", tree=tree))
        tops = self.run_js("[...f.querySelectorAll('.node.best rect')].map((r) => Math.round(r.getBoundingClientRect().top))")
        self.assertEqual(len(tops), 3)
        self.assertEqual(len(set(tops)), 1)

    def test_nodes_are_told_apart_on_a_phone(self):
        names = [f"Ana-María {i} · running and yoga" for i in (2, 60, 137, 11)]
        self.drawn(explanation("graph", queries=items(*names[:1]), keys=items(*names), structure="graph", maps=[{"links": [[0, i, 0.25] for i in range(4)]}]), 390)
        lines = self.run_js("[...f.querySelectorAll('.node')].map((n) => [...n.querySelectorAll('text')].map((t) => t.textContent))")
        self.assertEqual([len(one) for one in lines], [2] * 4)
        self.assertEqual(len({one[0] for one in lines}), 4, lines)
        self.assertEqual(self.run_js("f.querySelector('.node title').textContent"), names[0])

    def test_neighbours_on_a_phone_do_not_lie_on_each_other(self):
        for count in (3, 11, 24):
            names = [f"paper {137 * i} · field {i % 4}" for i in range(count + 1)]
            weights = [{"links": [[0, i, 1 / (count + 1)] for i in range(count + 1)]}]
            for width in (390, 1280):
                self.drawn(explanation("graph", queries=items(names[0]), keys=items(*names), structure="graph", maps=weights), width)
                self.assertEqual(self.run_js(overlap("[...f.querySelectorAll('.node rect')].map((n) => n.getBoundingClientRect())")), 0, (count, width))
                inside = self.run_js("(() => { const s = f.querySelector('.stage svg').getBoundingClientRect(); return [...f.querySelectorAll('.node rect')].every((n) => { const b = n.getBoundingClientRect(); return b.top >= s.top && b.bottom <= s.bottom; }); })()")
                self.assertTrue(inside, (count, width))

    def test_a_word_longer_than_the_page_is_broken(self):
        self.drawn(explanation("text", queries=items("?"), keys=items("Donaudampfschifffahrtsgesellschaftskapitänsmütze", "b"), maps=[{"dense": [0.5, 0.5]}]), 390)
        self.assertLessEqual(self.run_js("Math.max(...[...f.querySelectorAll('.word')].map((w) => w.getBoundingClientRect().right))"), 390)

    def test_on_a_phone_the_picture_comes_after_the_first_paragraph(self):
        prose = '<div class="opening"><div class="prose"><p>First.</p><p>Second.</p></div></div>'
        top = "document.querySelector('.%s').getBoundingClientRect().top"
        for width, before in ((1280, True), (390, False)):
            self.drawn(explanation("text", queries=items("?"), keys=items("a"), maps=[{"dense": [1]}]), width, prose)
            second, picture = self.browser.run("[[...document.querySelectorAll('.prose p')].pop().getBoundingClientRect().top, %s]" % (top % "pictures"))
            self.assertEqual(second < picture, before, width)

    def test_a_picture_begins_on_the_sheet_where_there_is_room_for_its_first_part(self):
        line = {"x_label": "x", "y_label": "y", "title": "Plot", "curves": [{"kind": "line", "label": "a", "x": [1, 2], "y": [1, 2]}]}
        self.drawn(explanation("curve", normaliser="none", plots=[line]))
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        self.addCleanup(self.browser.call, "Emulation.setEmulatedMedia", media="")
        self.assertEqual(self.run_js("[f, f.querySelector('.plot')].map((e) => getComputedStyle(e).breakInside)"), ["auto", "avoid"])

    def exported(self):
        """The SVG file of the figure."""
        data = self.browser.run("""(async () => { let blob = null; const create = URL.createObjectURL; HTMLAnchorElement.prototype.click = () => {};
            URL.createObjectURL = (b) => { blob = b; return create(b); };
            %s.querySelector('.buttons button').click();
            for (let i = 0; i < 200 && !blob; ++i) await new Promise((r) => setTimeout(r, 20));
            URL.createObjectURL = create;
            return new Promise((done) => { const r = new FileReader(); r.onload = () => done(r.result); r.readAsDataURL(blob); }); })()""" % FIGURE)
        return base64.b64decode(data.split(",", 1)[1]).decode()

    def test_files_need_nothing_that_other_programs_do_not_know(self):
        pixels = base64.b64encode(bytes(range(64)) * 1).decode()
        self.drawn(explanation("image", queries=items("a"), keys=[{"text": str(i), "position": [0.25 * (i % 4), 0.25 * (i // 4), 0.25, 0.25]} for i in range(16)],
                               picture={"width": 8, "height": 8, "channels": 1, "pixels": pixels}, maps=[{"dense": [1] + [0] * 15}], truth={"label": "truth", "sure": [[0, 0, 1]]}))
        text = self.exported()
        self.assertNotIn("dominant-baseline=\"central\"", text)
        sizes = [len(image) for image in re.findall(r'href="data:image/png;base64,([^"]*)"', text)]
        self.assertGreater(len(sizes), 0)
        for image in re.findall(r'href="data:image/png;base64,([^"]*)"', text):
            header = base64.b64decode(image[:64])
            self.assertGreaterEqual(int.from_bytes(header[16:20], "big"), 60, "pixels are drawn larger in the file itself")
        # A line that keeps its width on the page has it in the file: the box of the truth is 2 px wide in a picture of 1 x 1 that is drawn large.
        widths = [float(w) for w in re.findall(r'stroke-width="([\d.e-]+)"', text)]
        self.assertTrue(any(0 < w < 0.1 for w in widths), sorted(set(widths)))


if __name__ == "__main__":
    skip_without_chromium()
    SAMPLES = sys.argv.pop(1)
    unittest.main(verbosity=2)
