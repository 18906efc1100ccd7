"""Every verb's --help shows an example that works: all of them, run in the order of --help, in one empty folder."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

COMMAND = Path(os.environ["FOVEA_COMMAND"])


def fovea(*arguments):
    return subprocess.run([COMMAND, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)


def verbs():
    """The names under Subcommands in `fovea --help`."""
    text = fovea("--help").stdout
    return re.findall(r"^  (\w+) ", text.partition("Subcommands:")[2], re.MULTILINE)


def examples(verb):
    text = fovea(verb, "--help").stdout
    return [line.strip() for line in text.partition("Example:\n")[2].splitlines() if line.strip()]


class Examples(unittest.TestCase):
    def test_there_are_verbs(self):
        self.assertIn("train", verbs())
        self.assertEqual(fovea("tarin").stderr, "fovea: unknown verb 'tarin': did you mean 'train'?\n")

    def test_every_example_works(self):
        folder = tempfile.mkdtemp(prefix="fovea-examples-")
        self.addCleanup(shutil.rmtree, folder)
        environment = {**os.environ, "PATH": f"{COMMAND.parent}:{os.environ['PATH']}"}
        for verb in verbs():
            lines = examples(verb)
            self.assertTrue(lines, f"{verb}: no example")
            for line in lines:
                with self.subTest(example=line):
                    # A server is done when it answers; timeout's own status says that it was still there to be stopped.
                    command, expected = (f"timeout 5 {line}", 124) if line.startswith("fovea serve") else (line, 0)
                    outcome = subprocess.run(command, shell=True, cwd=folder, env=environment, text=True, timeout=300,
                                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                    self.assertEqual(outcome.returncode, expected, f"{line}\n{outcome.stdout}")


if __name__ == "__main__":
    unittest.main()
