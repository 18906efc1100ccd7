"""The tour's pages in a real browser: tour_test.py FOVEA FOLDER runs `FOVEA tour --out FOLDER` and reads what it wrote.

Exits 77 (skipped) without Chromium.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import page_test
import paper
from browser import Browser, skip_without_chromium

FOVEA = FOLDER = ""
QUICK = ["pooling", "gradient-masking"]  # seconds; `fovea tour` alone runs all


RAN = None


def setUpModule():
    global RAN
    RAN = subprocess.run([FOVEA, "tour", "--quiet", "--out", FOLDER, "--only", *QUICK], capture_output=True, text=True, check=False)
    page_test.SAMPLES = FOLDER


class Tour(page_test.Page):
    file = "index.html"

    def test_three_lines_say_what_ran_what_was_found_and_where_the_page_is(self):
        self.assertEqual(RAN.returncode, 0, RAN.stderr)
        lines = RAN.stdout.splitlines()
        self.assertEqual(len(lines), 3, RAN.stdout)
        self.assertRegex(lines[0], r"^ran 2 systems on generated data in .+: pooling, gradient-masking$")
        self.assertTrue(lines[1].startswith("attention on the right item: "))
        self.assertEqual(lines[2], f"open {os.path.join(FOLDER, 'index.html')}")

    def test_the_index_leads_to_a_page_for_each_system(self):
        cards = self.run_js("""[...document.querySelectorAll('nav.cards li')].map((c) => [c.id, c.querySelector('a').getAttribute('href'),
            c.querySelectorAll('.thumbnail :is(rect, path)').length > 0, c.querySelector('.thumbnail').getBoundingClientRect().height > 60])""")
        self.assertEqual(cards, [[name, name + ".html", True, True] for name in QUICK])

    def test_the_pages_lead_to_each_other_and_back_to_the_contents(self):
        read = "[...document.querySelectorAll('nav.ways')].map((n) => ['prev', 'contents', 'next'].map((w) => n.querySelector('.' + w)?.getAttribute('href') ?? null))"
        ways = {}
        for name in ["index", *QUICK]:
            browser = Browser()
            try:
                browser.open(os.path.join(FOLDER, name + ".html"))
                ways[name], again = browser.run(read)
                self.assertEqual(ways[name], again, "above and below")
            finally:
                browser.close()
        first, second = QUICK
        self.assertEqual(ways, {"index": [None, "lectures.html", first + ".html"],
                                first: [None, f"index.html#{first}", second + ".html"],
                                second: [first + ".html", f"index.html#{second}", None]})

    def test_runs_are_complete(self):
        self.assertEqual(sorted(os.listdir(FOLDER)), sorted(QUICK + [name + ".html" for name in ["index", "lectures", *QUICK]]))
        for name in QUICK:
            with open(os.path.join(FOLDER, name, "config.json"), encoding="utf-8") as file:
                self.assertEqual(json.load(file)["system"], name)

    def test_narrow_and_dark(self):
        browser = Browser(390, 900, dark=True)
        try:
            browser.open(os.path.join(FOLDER, self.file))
            self.assertEqual(browser.run("document.documentElement.scrollWidth"), 390)
            # Forty cards, as in a whole tour.
            browser.run("(() => { const o = document.querySelector('nav.cards ol'), n = [...o.children]; for (let i = n.length; i < 40; ++i) o.append(n[i % n.length].cloneNode(true)); })()")
            self.assertLessEqual(browser.run("document.documentElement.scrollHeight"), 4000)
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

    def test_a_tour_that_is_stopped_leaves_no_process_behind(self):
        tour = subprocess.Popen([FOVEA, "tour", "--quiet", "--threads", "2", "--out", FOLDER + "-stopped", "--only", "seq2seq", "bahdanau"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        children = []
        for _ in range(600):
            with open(f"/proc/{tour.pid}/task/{tour.pid}/children", encoding="ascii") as file:
                children = file.read().split()
            if len(children) == 2:
                break
            time.sleep(0.05)
        self.assertEqual(len(children), 2, "one process for each thread")
        tour.send_signal(signal.SIGINT)
        _, said = tour.communicate(timeout=120)
        self.assertEqual(tour.returncode, 130)
        self.assertEqual(said.strip().splitlines(), ["fovea: stopped the tour, which starts again from the beginning"])
        self.assertEqual([child for child in children if os.path.exists(f"/proc/{child}")], [])

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


class Lectures(page_test.Page):
    file = "lectures.html"

    def test_each_idea_has_its_picture_and_leads_to_its_page(self):
        ideas = self.run_js("""[...document.querySelectorAll('nav.cards li')].map((c) => [c.querySelector('a').getAttribute('href'),
            c.querySelectorAll('.thumbnail :is(rect, path)').length > 0, c.querySelector('.card-byline').textContent.length > 20])""")
        self.assertEqual(ideas, [[name + ".html", True, True] for name in QUICK])
        groups = self.run_js("[...document.querySelectorAll('nav.cards h3')].map((h) => h.textContent)")
        self.assertEqual([group[0] for group in groups], ["1", "3"])  # pooling is of the first lecture, gradient-masking of the third
        self.assertEqual(self.run_js("document.querySelector('nav.ways .contents').getAttribute('href')"), "index.html")

    def test_narrow(self):
        browser = Browser(390, 900)
        try:
            browser.open(os.path.join(FOLDER, self.file))
            self.assertEqual(browser.run("document.documentElement.scrollWidth"), 390)
        finally:
            browser.close()


class SystemPage(page_test.Page):
    file = QUICK[0] + ".html"

    def test_it_has_idea_equation_what_to_look_at_picture_figures_and_code(self):
        part = self.run_js("""(() => { const s = document.querySelector('section.part'); return [s.id, s.querySelector('.prose p').textContent.length > 80,
            Boolean(s.querySelector('math mi')), s.querySelector('.look').textContent.length > 40, s.querySelectorAll('figure.explanation').length > 0,
            s.querySelectorAll('.figures tbody tr').length > 0, s.querySelector('pre code').textContent.includes('fovea::')]; })()""")
        self.assertEqual(part, [QUICK[0], True, True, True, True, True, True])

    def test_one_screen_begins_the_story(self):
        top = self.run_js("document.querySelector('figure.explanation .picture').getBoundingClientRect().top + scrollY")
        self.assertLess(top, 600, "the picture begins on the first screen")
        self.assertEqual(self.run_js("[...document.querySelectorAll('details.fold')].map((d) => d.open)"), [False, False])

    def test_no_page_is_taller_than_four_screens_and_a_half_whatever_is_open(self):
        tallest = self.run_js("""(() => { for (const d of document.querySelectorAll('details.fold')) d.open = true; let most = 0;
            for (const t of document.querySelectorAll('.tabs button')) { t.click(); most = Math.max(most, document.documentElement.scrollHeight); }
            document.querySelector('.tabs button').click(); for (const d of document.querySelectorAll('details.fold')) d.open = false; return most; })()""")
        self.assertGreater(tallest, 900)
        self.assertLessEqual(tallest, 4000)

    def test_a_page_without_its_data_is_light(self):
        for name in ["index", *QUICK]:
            with open(os.path.join(FOLDER, name + ".html"), encoding="utf-8") as file:
                page = re.sub(r'(<script type="application/json"[^>]*>).*?</script>', r"\1</script>", file.read(), flags=re.DOTALL)
            self.assertLess(len(page.encode()), 400_000)

    def test_the_first_picture_is_drawn_at_once(self):
        times = []
        for _ in range(3):
            self.browser.open(os.path.join(FOLDER, self.file))
            times.append(self.run_js("performance.getEntriesByName('picture')[0].startTime"))
        print(f"first picture after {min(times):.0f} ms")
        self.assertLess(min(times), 500)

    def test_tabs_show_one_picture_at_a_time_by_mouse_and_by_keyboard(self):
        shown = "[...document.querySelectorAll('.panel')].map((p) => !p.hidden && p.querySelector('figure.explanation') !== null)"
        self.run_js("document.querySelectorAll('.tabs button')[0].click()")
        self.assertEqual(self.run_js(shown), [True, False])
        self.run_js("document.querySelectorAll('.tabs button')[1].click()")
        self.assertEqual(self.run_js(shown), [False, True])
        self.run_js("document.querySelectorAll('.tabs button')[1].focus()")
        self.browser.press("ArrowLeft")
        self.assertEqual(self.run_js(shown), [True, False])
        self.assertEqual(self.run_js("document.activeElement.getAttribute('aria-selected')"), "true")

    def test_a_link_to_a_picture_lands_on_it_at_once(self):
        browser = Browser()
        try:
            browser.call("Page.navigate", url=f"file://{os.path.abspath(os.path.join(FOLDER, self.file))}#{QUICK[0]}-picture-2")
            browser.wait("document.body && document.body.dataset.ready === 'yes'", seconds=60)
            hidden, top, low = browser.run("(() => { const p = document.getElementById('%s-picture-2'), b = p.getBoundingClientRect();"
                                           " return [p.hidden, b.top, innerHeight]; })()" % QUICK[0])
            self.assertFalse(hidden)
            self.assertTrue(-1 <= top < low, (top, low))
            self.assertEqual(browser.run("document.querySelector('.panel:not([hidden]) figure h4').textContent"), "How it learned")
        finally:
            browser.close()

    def test_paper_shows_every_picture_and_fold_in_the_light_theme(self):
        self.browser.theme("dark")
        seen = self.run_js("""(() => { dispatchEvent(new Event('beforeprint')); const s = [
            [...document.querySelectorAll('.panel')].map((p) => !p.hidden && p.querySelector('figure.explanation').offsetHeight > 100),
            [...document.querySelectorAll('details.fold')].map((d) => d.open), getComputedStyle(document.body).backgroundColor,
            Math.max(...[...document.querySelectorAll('figure svg')].map((x) => x.getBoundingClientRect().right)) <= document.querySelector('.layout').getBoundingClientRect().right];
            dispatchEvent(new Event('afterprint')); return s; })()""")
        self.assertEqual(seen, [[True, True], [True, True], "rgb(251, 251, 249)", True])
        self.assertEqual(self.run_js("[...document.querySelectorAll('.panel')].map((p) => p.hidden)"), [False, True])
        self.assertEqual(self.run_js("getComputedStyle(document.body).backgroundColor"), "rgb(20, 23, 28)")
        self.browser.theme("light")
        self.assertEqual(paper.lost(self.browser), [])

    def test_every_weight_is_labelled(self):
        page_test.EveryView.test_every_picture_of_weights_says_normaliser_layer_head_and_scale(self)

    def test_everything_that_acts_has_a_name(self):
        page_test.EveryView.test_everything_that_acts_has_a_name(self)

    def test_pickers_draw_without_error(self):
        # In each picture, each radio button and the ends of each slider, in turn; errors are collected by the base.
        clicked = self.run_js("""(() => { let n = 0;
            for (const t of document.querySelectorAll('.tabs button')) t.click();
            for (const i of document.querySelectorAll('figure input[type=radio]')) { i.click(); ++n; }
            for (const i of document.querySelectorAll('figure input[type=range]')) for (const v of [i.max, i.min]) { i.value = v; i.dispatchEvent(new Event('input')); ++n; }
            return n; })()""")
        self.assertGreater(clicked, 3)
        self.assertEqual(self.run_js("[...document.querySelectorAll('figure')].filter((f) => f.textContent.includes('NaN')).length"), 0)


if __name__ == "__main__":
    skip_without_chromium()
    FOVEA, FOLDER = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main(verbosity=2)
