"""The live shuffle test in a real browser: the page's own arithmetic against the model's, and what a shuffle changes.

shuffle_test.py Sample SAMPLES reads what write_samples wrote; shuffle_test.py Trained FOLDER FOVEA trains there and reads the
reports. Exits 77 (skipped) without Chromium.
"""

import os
import shutil
import subprocess
import sys
import unittest

import page_test
from browser import skip_without_chromium

FOLDER = FOVEA = ""


class Shuffle(page_test.Page):
    system = "deep-sets"
    view = "[...document.querySelectorAll('figure[data-system=\"%s\"]')].find((f) => f.frame.model.view === 'shuffle')"

    def shuffle(self, rest):
        """JavaScript with `f` the figure that is shuffled and `trial` what was tried and answered."""
        return self.run_js("(() => { const f = %s, trial = f.frame.state.trial; return %s; })()" % (self.view % self.system, rest))

    def press(self, label="Shuffle", times=1):
        find = "[...f.querySelectorAll('.shuffle-buttons button')].find((b) => b.textContent === '%s')" % label
        self.shuffle("Array.from({ length: %d }, () => %s.click()).length" % (times, find))
        self.browser.settle()

    def setUp(self):
        super().setUp()
        self.press("Start again")

    def answers(self):
        """{label: (the present answer, smallest, largest, the model's own for the order given)}"""
        rows = self.shuffle("trial.lines.map((line, i) => [line.label, trial.shown.answers[i], trial.tally[i].least, trial.tally[i].most, line.given])")
        return {label: tuple(rest) for label, *rest in rows}

    def check_the_page_repeats_the_model(self):
        for label, (now, _, _, given) in self.answers().items():
            self.assertAlmostEqual(now, given, delta=1e-4, msg=label)

    def check_the_set_stays_and_the_gru_moves(self, least_move):
        self.press(times=20)
        found = self.answers()
        now, least, most, given = found["Deep Sets"]
        self.assertEqual(least, most)
        self.assertAlmostEqual(now, given, delta=1e-3)
        _, least, most, given = found["Deep Sets, summed in float32"]
        self.assertLess(most - least, 1e-3)
        _, least, most, _ = found["GRU"]
        self.assertGreater(most - least, least_move)
        self.assertRegex(self.shuffle("f.querySelector('.readout').textContent"), r"^20 shuffles\. Deep Sets: (\S+) to \1; GRU: \S+ to \S+$")


class Sample(Shuffle):
    def order(self):
        return self.shuffle("[...f.querySelectorAll('.shuffle-cards .card-text')].map((t) => t.textContent)")

    def test_the_page_repeats_the_model(self):
        self.check_the_page_repeats_the_model()

    def test_the_set_stays_and_the_gru_moves(self):
        self.check_the_set_stays_and_the_gru_moves(0.1)

    def test_members_move_and_none_is_lost(self):
        orders = []
        for _ in range(6):
            orders.append(tuple(self.order()))
            self.press()
        self.assertEqual(orders[0], ("3", "9", "1", "7", "2", "5"))
        self.assertGreater(len(set(orders)), 1)
        self.assertEqual({tuple(sorted(order)) for order in orders}, {("1", "2", "3", "5", "7", "9")})

    def test_the_keyboard_shuffles_and_keeps_the_button(self):
        self.shuffle("f.querySelector('.shuffle-buttons .main').focus()")
        for key in ("Enter", " "):
            self.browser.press(key)
        self.assertEqual(self.shuffle("trial.shuffles"), 2)
        self.assertEqual(self.run_js("document.activeElement.textContent"), "Shuffle")

    def test_many_shuffles_and_back(self):
        self.press("100 times")
        self.assertEqual(self.shuffle("f.querySelector('.shuffle-answers caption').textContent"), "After 100 shuffles")
        self.press("Start again")
        self.assertEqual(self.shuffle("[trial.shuffles, trial.tally.every((t) => t.least === t.most)]"), [0, True])
        self.check_the_page_repeats_the_model()

    def test_motion_is_left_out_where_it_is_not_wanted(self):
        # A shuffle may leave every card in its place; thirty do not.
        moving = "Array.from({ length: 30 }, () => (f.querySelector('.main').click(), f.getAnimations({ subtree: true }).length)).some((n) => n > 0)"
        self.assertTrue(self.shuffle(moving))
        self.browser.theme("light", motion="reduce")
        self.assertFalse(self.shuffle(moving))
        self.browser.theme("light")

    def test_the_fixed_table_stays(self):
        self.press()
        self.assertEqual(self.shuffle("f.querySelector('.tables .table-title').textContent"), "The same set in two orders")

    def test_the_data_table_lists_the_orders(self):
        self.press(times=2)
        self.shuffle("f.querySelector('details').open = true")
        self.browser.wait("(%s).querySelector('details tbody')" % (self.view % self.system))
        first = self.shuffle("[...f.querySelectorAll('details tbody tr')].map((r) => [...r.cells].slice(0, 3).map((c) => c.textContent))")
        self.assertEqual([row[0] for row in first], ["2", "1", "as given"])
        self.assertEqual(first[2], ["as given", "3 9 1 7 2 5", "27.000000"])


class Narrow(Sample):
    width = 390

    def test_the_answers_fit_a_phone(self):
        self.press()
        self.assertTrue(self.shuffle("[...f.querySelectorAll('.scroll')].every((s) => s.scrollWidth <= s.clientWidth)"))
        self.assertGreaterEqual(self.shuffle("f.querySelector('.main').getBoundingClientRect().height"), 40)


class Points(Shuffle):
    system = "deep-sets-points"

    def test_the_page_repeats_the_model(self):
        self.check_the_page_repeats_the_model()

    def test_orders_drawn_beforehand_come_in_turn(self):
        seen = []
        for _ in range(4):
            seen.append(self.answers()["too large"][0])
            self.press()
        self.assertEqual(seen, [0.5, 0.25, 0.75, 0.5])
        self.assertIn("for 3 orders that come in turn", self.shuffle("f.querySelector('.axis-note').textContent"))
        now, least, most, _ = self.answers()["Deep Sets"]
        self.assertEqual((least, most), (now, now))

    def test_the_line_follows_the_order(self):
        line = "f.querySelector('.shuffle-line').getAttribute('points')"
        before = self.shuffle(line)
        self.press(times=2)
        self.assertNotEqual(self.shuffle(line), before)
        self.assertEqual(sorted(self.shuffle(line).split()), sorted(before.split()))


class Run(Shuffle):
    """A short run and its report."""

    @classmethod
    def setUpClass(cls):
        page_test.SAMPLES = FOLDER
        cls.file = cls.__name__ + ".html"
        run, settings = os.path.join(FOLDER, cls.__name__), [part for setting in cls.settings for part in ("--set", setting)]
        shutil.rmtree(run, ignore_errors=True)
        os.makedirs(FOLDER, exist_ok=True)
        for arguments in (["train", "deep-sets", "--quiet", "--out", run, *settings], ["explain", run, "--out", os.path.join(FOLDER, cls.file)]):
            subprocess.run([FOVEA, *arguments], check=True, capture_output=True)
        super().setUpClass()
        # One picture of several is shown; each is drawn when its tab is chosen.
        drawn = "figure[data-system=\"%s\"]" % cls.system
        cls.browser.run("[...document.querySelectorAll('[role=tab]')].find((tab) => { tab.click();"
                        " return [...document.querySelectorAll('%s')].some((f) => f.frame.model.view === 'shuffle'); })?.textContent" % drawn)

    def test_the_page_repeats_the_model(self):
        self.check_the_page_repeats_the_model()


class Trained(Run):
    settings = ["epochs=1", "sets=300", "filters=2", "batch=8"]

    def test_the_set_stays_and_the_gru_moves(self):
        self.check_the_set_stays_and_the_gru_moves(1e-4)

    def test_the_table_begins_with_what_the_page_says(self):
        row = self.shuffle("[...f.querySelectorAll('.tables tbody tr')][0].innerText.split('\\t').slice(1).map(Number)")
        self.assertAlmostEqual(row[0], self.answers()["Deep Sets"][0], delta=1e-4)
        self.assertAlmostEqual(row[1], self.answers()["GRU"][0], delta=1e-4)


class TrainedLarge(Trained):
    settings = [*Trained.settings, "width=256"]

    def test_it_says_that_the_gru_answered_beforehand(self):
        self.assertIn("for 200 orders that come in turn", self.shuffle("f.querySelector('.axis-note').textContent"))
        self.assertLess(os.path.getsize(os.path.join(FOLDER, self.file)), 400_000)


class TrainedSolids(Run):
    settings = ["task=solids", "epochs=1", "cloud_width=16", "batch=64"]

    def test_the_cloud_stays(self):
        self.press(times=20)
        now, least, most, given = self.answers()["Deep Sets"]
        self.assertEqual((least, most), (now, now))
        self.assertAlmostEqual(now, given, delta=1e-4)


PARTS = {"Sample": (Sample, Narrow, Points), "Trained": (Trained, TrainedLarge, TrainedSolids)}

if __name__ == "__main__":
    skip_without_chromium()
    part, FOLDER = sys.argv.pop(1), sys.argv.pop(1)
    page_test.SAMPLES = FOLDER
    if part == "Trained":
        FOVEA = sys.argv.pop(1)
    names = [case.__name__ for case in PARTS[part]]
    unittest.main(verbosity=2, defaultTest=names)
