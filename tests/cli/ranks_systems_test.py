"""Every system over ranks: the same weights, bit for bit, as one process that computes the same parts; or a refusal that says why."""

import os
import sys
import unittest
from pathlib import Path

from ranks import COMMAND, Ranks, ended, start

sys.path.insert(0, str(Path(os.environ["FOVEA_SOURCE_DIR"]) / "tests/faults"))
from small_runs import every  # noqa: E402

PART = os.environ.get("FOVEA_PART", "0/1")  # of the systems, to share them among tests


def train(arguments):
    return ended(start(*arguments, "--quiet"), 300)


class EverySystem(Ranks):
    def check(self, small):
        """Whether the system learns by descent: then 1, 2 and 4 ranks have learnt the same."""
        _, system, *own = small.train(self.folder / "data", epochs=1)
        code, _, error = train([system, *own, "--workers", 2, "--parts", 4, "--out", self.out(f"{system}-2")])
        if code == 2 and "does not learn by gradient descent" in error:
            return False
        self.assertEqual(code, 0, error)
        self.done(train([system, *own, "--parts", 4, "--out", self.out(f"{system}-1")]))
        self.done(train([system, *own, "--workers", 4, "--out", self.out(f"{system}-4")]))
        for ranks in (2, 4):
            self.assertEqual(self.weights(f"{system}-{ranks}"), self.weights(f"{system}-1"), f"{ranks} ranks")
        return True

    def test_same_bits(self):
        learners = []
        which, parts = map(int, PART.split("/"))
        systems = every(COMMAND)[which::parts]
        for small in systems:
            with self.subTest(small.system):
                if self.check(small):
                    learners.append(small.system)
        print(f"{len(learners)} systems: {', '.join(learners)}")
        self.assertGreater(len(learners), 0.7 * len(systems))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
