"""The report in a real browser: pickers clicked, numbers read, both themes, wide and narrow, no errors, no network.

page_test.py SAMPLES [unittest arguments]; SAMPLES is a folder that write_samples wrote. Exits 77 (skipped) without Chromium.
"""

import json
import os
import sys
import unittest

from browser import Browser, skip_without_chromium

SAMPLES = ""


class Page(unittest.TestCase):
    file = "samples.html"
    width = 1280

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser(cls.width)
        cls.browser.open(os.path.join(SAMPLES, cls.file))

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def setUp(self):
        self.browser.errors.clear()
        self.browser.settle()

    def tearDown(self):
        self.assertEqual(self.browser.errors, [])
        self.assertEqual([url for url in self.browser.requests if not url.endswith(self.file)], [])

    def run_js(self, expression):
        return self.browser.run(expression)

    def figure(self, system, rest):
        """JavaScript with `f` the figure of a system and `frame` what drew it."""
        value = self.run_js("(() => { const f = document.querySelector('figure[data-system=\"%s\"]'), frame = f.frame; return %s; })()" % (system, rest))
        self.browser.settle()
        return value

    def sample(self, system):
        name = next(n for n in os.listdir(SAMPLES) if n.endswith(f"-{system}.json"))
        with open(os.path.join(SAMPLES, name), encoding="utf-8") as file:
            return json.load(file)

    def hover(self, x, y):
        self.browser.mouse(x, y)
        self.browser.settle()

    def scroll_to(self, selector):
        box = self.run_js("(() => { document.documentElement.style.scrollBehavior = 'auto'; const e = document.querySelector(%s); e.scrollIntoView({block: 'center'});"
                          " const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()" % json.dumps(selector))
        self.browser.settle()
        return box


class EveryView(Page):
    def test_each_sample_is_drawn(self):
        samples = [name for name in os.listdir(SAMPLES) if name.endswith(".json")]
        self.assertEqual(self.run_js("document.querySelectorAll('figure.explanation').length"), len(samples))
        self.assertEqual(self.run_js("document.querySelectorAll('.broken').length"), 0)

    def test_every_picture_of_weights_says_normaliser_layer_head_and_scale(self):
        missing = self.run_js("""[...document.querySelectorAll('figure.explanation')].filter((f) => f.frame.model.maps.length)
            .flatMap((f) => ['normaliser', f.frame.model.layers.label, f.frame.model.heads.label, 'scale']
              .filter((label) => !f.querySelector(`.labels [data-label="${label}"] dd`)?.textContent.trim())
              .map((label) => f.dataset.system + ': ' + label))""")
        self.assertEqual(missing, [])

    def test_equations_are_set_in_the_font_of_the_page(self):
        loaded = self.run_js("document.fonts.ready.then(() => [...document.fonts].map((f) => [f.family.replaceAll('\"', ''), f.status]))")
        self.assertEqual(loaded, [["Fovea Math", "loaded"]])
        self.assertIn("Fovea Math", self.run_js("getComputedStyle(document.querySelector('math mi')).fontFamily"))

    def test_hover_reads_the_weight_of_a_cell(self):
        sample = self.sample("bahdanau")
        self.scroll_to("figure[data-system=bahdanau] .matrix-box")
        box, left, top, cell = self.figure("bahdanau", "(() => { const b = f.querySelector('.matrix-box svg').getBoundingClientRect(), d = frame.drawing;"
                                           " return [[b.left, b.top], d.left, d.top, d.camera.cell]; })()")
        self.hover(box[0] + left + 4.5 * cell, box[1] + top + 0.5 * cell)  # row 0, column 4
        weight = sample["maps"][0]["dense"][4]
        said = self.figure("bahdanau", "f.querySelector('.readout').textContent")
        self.assertEqual(said, "“unfortunately” → “leider”: %.3f · gold alignment: sure" % weight)
        self.assertEqual(self.figure("bahdanau", "f.querySelector('.tip').textContent"), said)

    def test_arrow_keys_read_the_cells(self):
        self.figure("bahdanau", "f.querySelector('.matrix-box svg').focus()")
        for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
            self.browser.press(key)
        said = self.figure("bahdanau", "f.querySelector('.readout').textContent")
        self.assertRegex(said, r"^“.+” → “.+”: \d")

    def test_layer_and_head_pickers_change_the_map_and_its_labels(self):
        sample = self.sample("transformer")
        self.figure("transformer", "f.querySelectorAll('.controls fieldset')[0].querySelectorAll('input')[1].click()")
        self.figure("transformer", "f.querySelectorAll('.controls fieldset')[1].querySelectorAll('input')[3].click()")
        self.assertEqual(self.figure("transformer", "[...f.querySelectorAll('.labels dd')].map((d) => d.textContent).slice(-2)"), ["2", "4"])
        chosen = next(m for m in sample["maps"] if m.get("layer", 0) == 1 and m.get("head", 0) == 3)
        self.assertAlmostEqual(self.figure("transformer", "frame.map.at(16, 3)"), chosen["dense"][16 * 17 + 3], places=6)
        self.assertEqual(self.figure("transformer", "f.querySelector('.overview [aria-pressed=true]').dataset.item"), "1-3")

    def test_the_overview_chooses_a_layer_and_head(self):
        self.figure("transformer", "f.querySelector('.overview [data-item=\"2-1\"]').click()")
        self.assertEqual(self.figure("transformer", "[frame.state.layer, frame.state.head]"), [2, 1])
        self.assertEqual(self.figure("transformer", "[...f.querySelectorAll('.controls input:checked')].map((i) => i.value).slice(0, 2)"), ["2", "1"])

    def test_exact_zeros_are_blank_and_the_smallest_weight_is_not(self):
        values = self.figure("transformer", "[frame.scale.css(0), frame.scale.css(1e-9)]")
        self.assertEqual(values[0], "transparent")
        self.assertRegex(values[1], r"^rgb\(")

    def test_bipartite_heads_and_focus(self):
        self.assertEqual(self.figure("multi-head", "[...f.querySelectorAll('.labels dd')].pop().textContent"), "all")
        self.figure("multi-head", "f.querySelectorAll('.controls fieldset')[1].querySelectorAll('input')[1].click()")
        self.figure("multi-head", "f.querySelector('[data-item=q8]').focus()")
        weight = self.figure("multi-head", "frame.map.at(8, 1)")
        self.assertIn("“it” → “animal” %.3f" % weight, self.figure("multi-head", "f.querySelector('.readout').textContent"))

    def test_words_carry_their_weight(self):
        sample = self.sample("document-attention")
        shown = self.figure("document-attention", "[...f.querySelectorAll('.text-row')].map((row) => [...row.querySelectorAll('.word')].map((w) => Number(w.dataset.weight)))")
        flat = [weight for row in shown for weight in row]
        for got, expected in zip(flat, sample["maps"][0]["dense"], strict=True):
            self.assertAlmostEqual(got, expected, places=6)

    def test_sentence_bars_show_the_sentence_weights(self):
        bars = self.figure("hierarchical", "[...f.querySelectorAll('.bar-number')].map((b) => b.textContent)")
        self.assertEqual(bars, ["0.040", "0.050", "0.710", "0.060", "0.140"])
        self.assertEqual(self.figure("hierarchical", "f.querySelectorAll('.sentence.truth-sure').length"), 2)

    def test_names_of_points_do_not_lie_on_each_other(self):
        plot = "f.querySelector('.plot')"
        names = self.figure("word-sum", f"[...{plot}.querySelectorAll('.point-name')].map((n) => n.textContent)")
        self.assertIn("great", names)
        away = self.figure("word-sum", f"{plot}.querySelectorAll('.name-line').length")
        self.assertGreater(away, 0, "where there is no room beside a point, its name stands further away, with a line")
        titles = self.figure("word-sum", f"[...{plot}.querySelectorAll('circle title')].map((n) => n.textContent)")
        self.assertTrue(any(t.startswith("stirring: ") for t in titles), titles)
        overlaps = self.figure("word-sum", f"""(() => {{ const b = [...{plot}.querySelectorAll('.point-name')].map((n) => n.getBoundingClientRect());
            return b.filter((p, i) => b.some((q, j) => j < i && p.left < q.right && q.left < p.right && p.top + 2 < q.bottom && q.top + 2 < p.bottom)).length; }})()""")
        self.assertEqual(overlaps, 0)

    def test_one_epoch_is_a_dot_over_a_whole_number(self):
        plot = "[...f.querySelectorAll('.plot')].pop()"
        self.assertEqual(self.figure("word-sum", f"{plot}.querySelectorAll('circle.dot').length"), 1)
        ticks = self.figure("word-sum", f"[...{plot}.querySelectorAll('.tick[text-anchor=middle]')].map((t) => t.textContent)")
        self.assertEqual(ticks, ["1"])

    def test_numbers_that_are_no_weights_are_not_called_so(self):
        self.assertIn("the number: margins over the least", self.figure("set-outlier", "f.querySelector('.stage .legend').textContent"))
        self.assertIn("the number: the weight itself", self.figure("mil", "f.querySelector('.stage .legend').textContent"))

    def test_no_stage_scrolls_up_and_down(self):
        self.assertEqual(self.run_js("[...document.querySelectorAll('.stage')].filter((s) => getComputedStyle(s).overflowY !== 'hidden').length"), 0)

    def test_the_slider_shows_another_bandwidth(self):
        path = "f.querySelector('.plot path.line').getAttribute('d')"
        figure = "figure[data-system=nadaraya-watson] .plot .slider"
        count = self.run_js("[...document.querySelectorAll(%s)].length" % json.dumps(figure))
        self.assertGreater(count, 0)
        read = "(() => { const f = [...document.querySelectorAll('figure[data-system=nadaraya-watson]')].pop(); %s })()"
        before = self.run_js(read % f"return {path};")
        self.run_js(read % "const s = f.querySelector('.plot .slider input'); s.value = 20; s.dispatchEvent(new Event('input'));")
        self.assertNotEqual(self.run_js(read % f"return {path};"), before)
        self.assertEqual(self.run_js(read % "return f.querySelector('.plot .slider output').textContent;"), "%.3g" % (0.05 * 1.22 ** 20))

    def test_graph_centre_moves_to_the_node_clicked(self):
        self.figure("gat", "f.querySelectorAll('.stage .node')[1].dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        self.assertNotEqual(self.figure("gat", "frame.state.query"), 0)
        self.assertEqual(self.figure("gat", "Number(f.querySelector('select').value)"), self.figure("gat", "frame.state.query"))

    def test_the_graph_histogram_says_what_it_counts(self):
        label = "f.querySelector('.stage .plot svg').getAttribute('aria-label')"
        for head, counted in ((-1, "nodes × heads against"), (0, "nodes against")):
            self.figure("gat", f"frame.set({{ head: {head} }})")
            self.assertIn(f"How undecided each node is: {counted}", self.figure("gat", label))
        self.figure("gat", "frame.set({ head: -1 })")

    def test_the_bag_sorts_by_weight(self):
        self.figure("mil", "f.querySelectorAll('.controls input')[1].click()")
        numbers = self.figure("mil", "[...f.querySelectorAll('.bag-strip')][0].querySelectorAll('.card-number').length")
        self.assertEqual(numbers, 10)
        self.assertEqual(self.figure("mil", "[...f.querySelectorAll('.bag-strip .card')].slice(0, 3).map((c) => c.classList.contains('truth-sure'))"), [True, True, False])

    def test_the_image_follows_the_word(self):
        self.figure("show-attend-tell", "f.querySelector('.image-small [data-item=\"4\"]').click()")
        self.assertRegex(self.figure("show-attend-tell", "f.querySelector('.readout').textContent"), "^“two”: most at “row 6, column 3”")

    def test_weights_on_a_fine_grid_are_drawn_smoothly_too(self):
        shades = self.figure("show-attend-tell", "(() => { const c = f.querySelector('.image-smooth canvas.smooth'), seen = new Set();"
                             " c.getContext('2d').getImageData(0, 0, c.width, c.height).data.forEach((x, i) => i % 4 === 3 && seen.add(x)); return seen.size; })()")
        self.assertGreater(shades, 49)

    def test_the_tree_reads_hypotheses(self):
        self.figure("beam-search", "f.querySelector('.node').focus()")
        for _ in range(4):
            self.browser.press("ArrowRight")
        self.assertEqual(self.figure("beam-search", "f.querySelector('.readout').textContent"), "<s> the house is small: score −1.00, kept")

    def test_the_tree_fits_its_box_and_folds_what_was_pruned(self):
        read = "(() => { const b = f.querySelector('.stage svg').getBoundingClientRect(); return [f.querySelectorAll('.node.pruned').length, b.width, f.querySelector('.stage').clientWidth]; })()"
        pruned = sum(node.get("state") == "pruned" for node in self.sample("beam-search")["tree"])
        self.assertGreater(pruned, 0)
        shown, wide, room = self.figure("beam-search", read)
        self.assertEqual(shown, 0)
        self.assertLessEqual(wide, room)
        self.figure("beam-search", "f.querySelectorAll('.controls input')[1].click()")
        self.assertEqual(self.figure("beam-search", read)[0], pruned)
        self.figure("beam-search", "f.querySelectorAll('.controls input')[0].click()")

    def test_the_way_of_greedy_search_is_told_apart(self):
        greedy = self.figure("beam-search", "[...f.querySelectorAll('.node.greedy')].map((n) => n.getAttribute('aria-label'))")
        self.assertEqual(greedy, ["<s> the small house </s>: score −1.70, taken by greedy search"])
        self.assertTrue(self.figure("beam-search", "f.querySelector('.node.greedy .node-done') !== null"), "it ends there")
        self.assertIn("where greedy search goes", self.figure("beam-search", "f.querySelector('.legend').textContent"))
        colours = self.figure("beam-search", "['.greedy', '.best', '.live'].map((kind) => getComputedStyle(f.querySelector('.branch' + kind)).stroke)")
        self.assertEqual(len(set(colours)), 3, colours)

    def test_each_answer_has_its_line_and_its_mark(self):
        lines = self.figure("beam-search", "[...f.querySelectorAll('.outcome')].map((line) => [line.textContent, line.classList.contains('wrong')])")
        self.assertEqual(lines, [["beam of three: the house is small (right)", False], ["✗ greedy search: the small house (wrong)", True]])

    def test_hostile_text_stays_text(self):
        self.assertIsNone(self.run_js("window.broken ?? null"))
        self.assertEqual(self.figure("hostile", "f.querySelector('h4').textContent"), "</script><script>window.broken = 1</script> & <b>bold</b>")
        self.assertEqual(self.figure("hostile", "f.querySelectorAll('b, i.x, img, script').length"), 0)

    def test_the_data_table_says_what_the_picture_shows(self):
        self.figure("memory-network", "f.querySelector('details').open = true")
        self.browser.wait("document.querySelector('figure[data-system=memory-network] details table')")
        rows = self.figure("memory-network", "[...f.querySelectorAll('details tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))")
        self.assertIn(["1", "hop 1", "John took the football.", "0.930", "sure"], rows)
        self.assertEqual(len(rows), 8)

    def test_svg_and_png_of_every_figure(self):
        found = self.run_js("""(async () => {
            const out = [];
            for (const f of document.querySelectorAll('figure.explanation')) {
              let blob = null;
              const create = URL.createObjectURL;
              URL.createObjectURL = (b) => { blob = b; return create(b); };
              HTMLAnchorElement.prototype.click = () => {};
              for (const button of f.querySelectorAll('.buttons button')) {
                blob = null;
                button.click();
                for (let i = 0; i < 200 && !blob; ++i) await new Promise((r) => setTimeout(r, 20));
                const text = blob && blob.type === 'image/svg+xml' ? await blob.text() : '';
                const parsed = text ? new DOMParser().parseFromString(text, 'image/svg+xml').querySelector('parsererror') === null : true;
                out.push([f.dataset.system, blob?.type, blob?.size, parsed, text.replace(/base64,[^"]*/g, '').includes('NaN')]);
              }
              URL.createObjectURL = create;
            }
            return out;
          })()""")
        for system, kind, size, parsed, broken in found:
            with self.subTest(system=system, kind=kind):
                self.assertIn(kind, ("image/svg+xml", "image/png"))
                self.assertGreater(size, 2000)
                self.assertTrue(parsed)
                self.assertFalse(broken)

    def test_the_theme_button_turns_the_page(self):
        colour = "getComputedStyle(document.body).backgroundColor"
        before = self.run_js(colour)
        self.run_js("document.getElementById('theme').click()")
        self.browser.settle()
        self.assertNotEqual(self.run_js(colour), before)
        self.run_js("document.getElementById('theme').click()")
        self.browser.settle()
        self.assertEqual(self.run_js(colour), before)

    def test_the_demo_scores_normalises_and_aggregates(self):
        # The five keys with scaled dot product and softmax, worked out here.
        import math
        keys, values, query = [(-1.5, 0.9), (-0.6, -1.1), (0.4, 1.3), (1.2, -0.4), (1.6, 1.0)], [10, 20, 30, 40, 50], (1.0, 0.7)
        scores = [math.exp((query[0] * x + query[1] * y) / math.sqrt(2)) for x, y in keys]
        output = sum(s / sum(scores) * v for s, v in zip(scores, values))
        self.assertEqual(self.run_js("document.getElementById('demo-output').textContent"), "%.3g" % output)
        self.choose_in_demo("uniform")
        self.assertEqual(self.run_js("document.getElementById('demo-output').textContent"), "30.0")
        self.choose_in_demo("ragged")  # the first three keys
        self.assertEqual(self.run_js("document.getElementById('demo-output').textContent"), "20.0")
        self.choose_in_demo("dense")
        self.choose_in_demo("softmax")

    def test_the_name_of_the_query_keeps_clear_of_its_lines(self):
        read = """(() => { const n = [...document.querySelectorAll('.demo .demo-label.strong')].find((t) => t.textContent === 'q'), x = Number(n.getAttribute('x')), y = Number(n.getAttribute('y')) - 4;
            return [...document.querySelectorAll('.demo line[stroke-linecap=round]')].map((line) => { const [x1, y1, x2, y2] = ['x1', 'y1', 'x2', 'y2'].map((k) => Number(line.getAttribute(k)));
              const along = Math.max(0, Math.min(1, ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / ((x2 - x1) ** 2 + (y2 - y1) ** 2)));
              return Math.hypot(x - x1 - along * (x2 - x1), y - y1 - along * (y2 - y1)); }); })()"""
        clear = self.run_js(read)
        self.assertGreater(len(clear), 2)
        self.assertGreater(min(clear), 12, clear)  # px: half of a letter and of the widest line

    def choose_in_demo(self, name):
        self.run_js(f"[...document.querySelectorAll('.demo fieldset label')].find((label) => label.textContent === '{name}').querySelector('input').click()")

    def test_the_keys_and_values_of_the_demo_are_dragged_and_moved_with_arrows(self):
        output = "document.getElementById('demo-output').textContent"
        before = self.run_js(output)
        self.run_js("document.querySelector('.demo').scrollIntoView({ behavior: 'instant', block: 'center' })")
        middle = ("(() => { const box = document.querySelector('.demo [aria-label=\"key 1\"] circle').getBoundingClientRect();"
                  " return [box.x + box.width / 2, box.y + box.height / 2] })()")
        x, y = self.run_js(middle)
        self.browser.mouse(x, y, "mousePressed", button="left", buttons=1, clickCount=1)
        self.browser.mouse(x + 60, y - 10, "mouseMoved", button="left", buttons=1)
        self.browser.mouse(x + 60, y - 10, "mouseReleased", button="left", clickCount=1)
        moved = self.run_js(middle)
        self.assertAlmostEqual(moved[0], x + 60, delta=6)
        self.assertNotEqual(self.run_js(output), before)
        self.run_js("document.querySelector('.demo [aria-label=\"value 5\"]').focus()")
        value = "Number(document.querySelector('.demo [aria-label=\"value 5\"]').getAttribute('aria-valuenow'))"
        self.assertEqual(self.run_js(value), 50)
        self.browser.press("ArrowRight")
        self.assertEqual(self.run_js(value), 51)

    def test_a_heat_map_marks_what_even_attention_would_be(self):
        note = self.run_js("document.querySelector('[data-system=bahdanau] .even-note').textContent")
        self.assertEqual(note, "even attention: 1/10 = 0.100")
        ends = self.run_js("document.querySelector('[data-system=bahdanau] .legend-scale').textContent")
        self.assertTrue(ends.startswith("0"), ends)

    def test_everything_that_acts_has_a_name(self):
        nameless = self.run_js("""[...document.querySelectorAll('button, input, select, [tabindex="0"], [role=button], [role=application]')]
            .filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.[0]?.textContent.trim()))
            .map((e) => e.outerHTML.slice(0, 90))""")
        self.assertEqual(nameless, [])

    def test_text_reads_against_its_background(self):
        # WCAG AA, 4.5 : 1, for words on every shade of the ramp and for the page's own text.
        worst = self.run_js("""(() => {
            const channel = (x) => (x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
            const light = (c) => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number); return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
            const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
            const ratios = [...document.querySelectorAll('.word, .weight')].filter((w) => w.style.background && !w.style.background.includes('transparent'))
              .map((w) => ratio(getComputedStyle(w).color, getComputedStyle(w).backgroundColor));
            for (const e of document.querySelectorAll('.subtitle, .labels dt, .axis-note, .prose p')) ratios.push(ratio(getComputedStyle(e).color, getComputedStyle(document.body).backgroundColor));
            return Math.min(...ratios);
          })()""")
        self.assertGreaterEqual(worst, 4.5)


class EveryViewDark(EveryView):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser.theme("dark")
        cls.browser.settle()

    def test_the_page_is_dark(self):
        self.assertEqual(self.run_js("getComputedStyle(document.body).backgroundColor"), "rgb(20, 23, 28)")


class Narrow(Page):
    width = 390

    def test_nothing_is_wider_than_the_page(self):
        self.assertEqual(self.run_js("document.documentElement.scrollWidth"), 390)

    def test_labels_of_near_markers_lie_on_lines_of_their_own(self):
        boxes = self.run_js("[...document.querySelectorAll('figure[data-system=nadaraya-watson] .marker-label')]"
                            ".map((l) => { const b = l.getBoundingClientRect(); return [b.left, b.right, b.top, b.bottom]; })")
        self.assertEqual(len(boxes), 2)
        (left, right, top, bottom), (left2, right2, top2, bottom2) = boxes
        self.assertTrue(right <= left2 or right2 <= left or bottom <= top2 + 1 or bottom2 <= top + 1, boxes)

    def test_the_ring_of_the_last_tile_is_not_cut_off(self):
        ring = 1.5
        tile, stage = self.run_js("(() => { const tiles = [...document.querySelectorAll('.overview button')];"
                                  " const right = Math.max(...tiles.map((t) => t.getBoundingClientRect().right));"
                                  " return [right, tiles[0].closest('.stage').getBoundingClientRect().right]; })()")
        self.assertLessEqual(tile + ring, stage)

    def test_it_turns_wide_and_back(self):
        self.browser.resize(1280)
        self.browser.settle()
        wide = self.figure("bahdanau", "f.querySelector('.matrix-box').offsetWidth")
        self.browser.resize(390)
        self.browser.settle()
        self.assertLess(self.figure("bahdanau", "f.querySelector('.matrix-box').offsetWidth"), 390)
        self.assertGreater(wide, 600)


class Large(Page):
    file = "large.html"

    def test_a_million_cells_stay_smooth(self):
        # Of each frame the fastest of three counts: one that is slow by itself is slow each time, one that another program held up is not.
        self.scroll_to("figure[data-system=sparse-patterns] .matrix-box")
        slowest, typical = self.figure("sparse-patterns", """(() => {
            const d = frame.drawing, times = Array(60).fill(Infinity);
            for (let pass = 0; pass < 3; ++pass) {
              d.fit();
              for (let i = 0; i < 60; ++i) {
                const start = performance.now();
                if (i < 30) d.zoom(1.12, 300, 200); else d.pan(37, 21);
                cancelAnimationFrame(d.waiting);
                d.waiting = 0;
                for (const panel of d.panels) panel.paint(d.width, d.top + d.area[1] + 2);
                times[i] = Math.min(times[i], performance.now() - start);
              }
            }
            d.fit();
            times.sort((a, b) => a - b);
            return [times[59], times[30]];
          })()""")
        print(f"a million cells: median frame {typical:.1f} ms, slowest {slowest:.1f} ms")
        self.assertLess(typical, 1000 / 30)
        self.assertLess(slowest, 250)

    def test_hover_reads_one_cell_of_a_million(self):
        self.scroll_to("figure[data-system=sparse-patterns] .matrix-box")
        box, left, top, cell = self.figure("sparse-patterns", "(() => { frame.drawing.fit(); const b = f.querySelector('.matrix-box svg').getBoundingClientRect(), d = frame.drawing;"
                                           " return [[b.left, b.top], d.left, d.top, d.camera.cell]; })()")
        x, y = box[0] + left + 200.5 * cell, box[1] + top + 400.5 * cell
        self.hover(x, y)
        cursor = self.figure("sparse-patterns", "[frame.drawing.cursor.query, frame.drawing.cursor.key, frame.map.at(frame.drawing.cursor.query, frame.drawing.cursor.key)]")
        said = self.figure("sparse-patterns", "f.querySelector('.readout').textContent")
        self.assertIn(f"“t{cursor[0]}” → “t{cursor[1]}”", said)

    def test_wheel_zooms_where_the_focus_is(self):
        left, top, width, height = self.scroll_to("figure[data-system=sparse-patterns] .matrix-box")
        self.figure("sparse-patterns", "(frame.drawing.fit(), f.querySelector('.matrix-box svg').focus())")
        self.browser.mouse(left + width / 2, top + height / 2, "mouseWheel", deltaX=0, deltaY=-400)
        self.browser.settle()
        self.assertTrue(self.figure("sparse-patterns", "frame.drawing.zoomed"))

    def test_a_sparse_map_of_200000_nodes_is_drawn(self):
        painted = self.figure("gat", "(() => { const c = f.querySelector('canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                              " let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })()")
        self.assertGreater(painted, 500)


if __name__ == "__main__":
    skip_without_chromium()
    SAMPLES = sys.argv.pop(1)
    unittest.main(verbosity=2)
