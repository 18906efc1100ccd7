"""scripts/loaded with a command that only sleeps: what it measures, and when it fails."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ.get("FOVEA_SOURCE_DIR", Path(__file__).parents[2]))

FOVEA = """#!/bin/bash
echo "$*" >>"$(dirname "$0")/calls"
case $1 in
  list) echo '{"systems": [{"name": "gat"}, {"name": "brand-new"}]}' ;;
  train) [[ $2 != broken ]] || { echo "fovea: no such data" >&2; exit 1; } ;;
  bench) for ((i = 1; i <= $#; ++i)); do [[ ${!i} == --json ]] && { ((++i)); echo '{"rows": [{"name": "dot/1", "ms": 2}]}' >"${!i}"; }; done ;;
esac
"""


class Loaded(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fovea-loaded-test-")
        self.addCleanup(folder.cleanup)
        self.command, self.calls_file = Path(folder.name) / "fovea", Path(folder.name) / "calls"
        self.command.write_text(FOVEA)
        self.command.chmod(0o755)

    def run_script(self, *arguments):
        script = [sys.executable, SOURCE / "scripts/loaded", "--command", self.command, "--busy", "1", *arguments]
        return subprocess.run(list(map(str, script)), capture_output=True, text=True)

    def calls(self):
        return self.calls_file.read_text().splitlines()

    def test_every_system_is_trained_alone_and_beside_a_loop(self):
        outcome = self.run_script("--rounds", "2", "--limit", "1e9")
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        self.assertEqual(sum(call.startswith("train gat ") for call in self.calls()), 4)
        self.assertEqual(sum(call.startswith("train brand-new --epochs 1 ") for call in self.calls()), 4)
        self.assertRegex(outcome.stdout, r"bench dot/1 +0.0020 +0.0020 +1.00\n")
        self.assertIn("0 of 3 over 1e+09, 0 failed", outcome.stdout)

    def test_a_ratio_over_the_limit_fails(self):
        outcome = self.run_script("--rounds", "1", "--limit", "0.5", "--systems", "")
        self.assertEqual(outcome.returncode, 1)
        self.assertIn("1.00  OVER", outcome.stdout)

    def test_each_number_of_threads_is_a_row(self):
        outcome = self.run_script("--rounds", "1", "--limit", "1e9", "--systems", "gat", "--threads", "0,1", "--bench", "")
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        self.assertEqual(sum("--threads 1" in call for call in self.calls()), 2)
        self.assertIn("0 of 2 over", outcome.stdout)

    def test_a_command_that_fails_is_named(self):
        outcome = self.run_script("--train", "broken", "--bench", "")
        self.assertEqual(outcome.returncode, 1)
        self.assertIn("fovea: no such data", outcome.stdout)

    def test_names_and_cores_are_checked(self):
        self.assertIn("no system 'gatt'", self.run_script("--systems", "gatt").stderr)
        self.assertIn("--jobs 2: needs 4 cores, there are 2", self.run_script("--cores", "0-1", "--jobs", "2").stderr)


if __name__ == "__main__":
    unittest.main()
