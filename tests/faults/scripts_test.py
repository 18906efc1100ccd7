"""What scripts/faults, scripts/damages, scripts/kills and scripts/fuzz do when their time ends, when they are continued and after a find. Needs no `fovea`."""

import concurrent.futures
import importlib.machinery
import importlib.util
import math
import resource
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def script(name):
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


damages, faults, fuzz, kills = map(script, ("damages", "faults", "fuzz", "kills"))
import prefork  # noqa: E402: where the scripts look for it


def verb(report, alike=False, **options):
    found = faults.Verb.__new__(faults.Verb)
    found.case = faults.Case("train", [], alike=alike)
    found.options = types.SimpleNamespace(**{"few": False, "all": True} | options)
    found.read_counts(report)
    return found


class Faults(unittest.TestCase):
    def test_a_row_of_which_something_was_left_out_is_tried_again(self):
        text = "\n".join([faults.row_text("verb", "call", "there", "failed", "left out", "wrong"), faults.row_text("train-new", "full from 1", "", 1, 0, "-"),
                          faults.row_text("train-new", "memory", 12173, 29, 362, "-"), faults.row_text("score", "read", 4, 4, 0, 2),
                          "    read 1: the message does not name it", "34 commands, 362 left out, 2 wrong, 61 s"])
        self.assertEqual(faults.whole_rows(text), {("train-new", "full from 1"), ("score", "read")})

    def test_of_many_calls_one_from_every_place_is_tried(self):
        one = verb("memory 9000\nsite memory 0a 7777 8000\nwrite 3\nspace 400 500")
        self.assertIn(7777, one.numbers("memory"))
        self.assertLess(len(one.numbers("memory")), 100)
        self.assertEqual(list(one.numbers("write")), [1, 2, 3])

    def test_a_place_that_a_verb_before_has_had_is_not_tried_again(self):
        first, second = verb("memory 9000\nsite memory 0a 7777 8000"), verb("memory 9000\nsite memory 0a 6543 8000\nsite memory 0b 5432 8000")
        faults.without_repetition([first, second])
        self.assertNotIn(6543, second.numbers("memory"))
        self.assertIn(5432, second.numbers("memory"))

    def test_of_a_training_like_one_before_only_what_is_new_is_tried(self):
        first, second = verb("write 90\nsite write 0a 7 80"), verb("write 90\nsite write 0a 5 80\nsite write 0b 9 70", alike=True)
        faults.without_repetition([first, second])
        self.assertEqual(second.numbers("write"), [1, 9, 90])

    def test_of_several_processes_the_most_calls_count(self):
        self.assertEqual(verb("write 9\nspace 4 5\nwrite 3\nspace 4 6").counts["write"], 9)

    def test_address_spaces_lie_between_what_is_loaded_and_the_peak(self):
        spaces = verb(f"space {400 << 20} {500 << 20}").spaces()
        self.assertEqual(len(spaces), 19)
        self.assertTrue(all(400 << 20 < space < 500 << 20 for space in spaces))

    def test_nothing_begins_after_the_end(self):
        self.assertIsNone(verb("", end=time.monotonic() - 1).in_time(lambda: []))


class Damages(unittest.TestCase):
    def test_a_system_of_which_something_was_left_out_is_tried_again(self):
        text = "\n".join(["system               commands left out  refused  as before  otherwise  wrong", f"{'gat':<20}{89:>9}{0:>9}{60:>9}{20:>11}{9:>11}  -",
                          f"{'mil':<20}{40:>9}{7:>9}{30:>9}{5:>11}{5:>11}  1", "    facts.mean removed, evaluate: names no file", "2 systems: 129 commands, 7 left out"])
        self.assertEqual(damages.whole_systems(text), {"gat"})


class Prefork(unittest.TestCase):
    """Without a server; prefork.cc is what `faults.OneOfEveryKind` runs."""

    def test_a_command_that_takes_too_long_is_ended_with_its_children(self):
        begin = time.monotonic()
        with self.assertRaises(subprocess.TimeoutExpired):
            prefork.Commands("sh").run(["-c", "sleep 60 & sleep 60"], 0.2)
        self.assertLess(time.monotonic() - begin, 20)

    def test_folder_variables_and_limits_reach_it(self):
        done = prefork.Commands("sh", OWN="1").run(["-c", "echo $OWN $MORE $(pwd) $(ulimit -n)"], 20, folder="/", variables={"MORE": "2"},
                                                   limits=[(resource.RLIMIT_NOFILE, 50)])
        self.assertEqual((done.returncode, done.stdout), (0, b"1 2 / 50\n"))


class Kills(unittest.TestCase):
    def campaign(self, share, end):
        training = types.SimpleNamespace(wrong=[], moments=0, operations=0, compared=0, options=types.SimpleNamespace(end=end))
        return kills.Campaign(training, share)

    def test_nothing_begins_after_the_end(self):
        campaign = self.campaign(5, time.monotonic() - 1)
        campaign.life()
        self.assertEqual(campaign.lives, 0)

    def test_every_training_is_killed_equally_often_until_the_end(self):
        campaigns = [self.campaign(40, math.inf) for _ in range(3)]

        def life(training, name, wanted):
            if training is campaigns[-1].training and name == "life-2":  # in the second round the time is over
                for campaign in campaigns:
                    campaign.training.options.end = 0
            done = types.SimpleNamespace(moments=wanted - 1, operations=1, wrong=[])
            return types.SimpleNamespace(run=lambda: done)

        with unittest.mock.patch.object(kills, "Life", life), concurrent.futures.ThreadPoolExecutor(1) as pool:
            kills.run_rounds(campaigns, pool, 1)
        self.assertEqual([(campaign.lives, campaign.training.moments) for campaign in campaigns], [(2, 8)] * 3)


# A program that finds something in its first process, of every seed below 100, and ends by itself in the others.
FINDS_ONCE = """#!/bin/sh
for word in "$@"; do case $word in -artifact_prefix=*) prefix=${word#*=};; -seed=*) seed=${word#*=};; -runs=*) runs=${word#*=};; esac; done
if [ $((seed % 1000)) -lt 100 ]; then : >"${prefix}crash-1"; echo "#40 NEW" >&2; echo "ERROR: a find" >&2; exit 1; fi
echo "stat::number_of_executed_units: $runs" >&2
"""


class Fuzz(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.program = Path(self.place.name) / "program"
        self.program.write_text(FINDS_ONCE)
        self.program.chmod(0o755)

    def tearDown(self):
        self.place.cleanup()

    def shard(self, **options):
        wanted = types.SimpleNamespace(**{"runs": 100, "seconds": 0, "seed": 1, "end": math.inf} | options)
        return fuzz.Shard(Path(self.place.name), self.program, "csv", 0, 1, wanted)

    def test_after_a_find_it_goes_on_to_all_its_executions(self):
        shard = self.shard().run()
        self.assertEqual(shard.executions, 100)
        self.assertEqual(list(shard.finds.values()), ["a find"])

    def test_nothing_begins_after_the_end(self):
        self.assertEqual(self.shard(end=time.monotonic()).run().executions, 0)

    def test_what_is_left_of_the_time_is_its_limit(self):
        self.assertIn("-max_total_time=49", self.shard(end=time.monotonic() + 50).limits())


if __name__ == "__main__":
    unittest.main()
