"""What tests of several processes that train one RUN share."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

COMMAND = Path(os.environ["FOVEA_COMMAND"])
TORCHRUN = Path(os.environ["FOVEA_SOURCE_DIR"]) / ".venv/bin/torchrun"
LOST = 75  # the exit code of a rank that lost another
# A second or so of training with dropout; batches of 32 items.
SMALL = ["word-sum", "--epochs", "3", "--set", "dropout=0.2"]
# So long that it is never done before it is disturbed.
LONG = ["word-sum", "--epochs", "40", "--set", "dropout=0.2", "--checkpoint", "0.2"]


def start(*arguments, env=None, **more):
    return subprocess.Popen([COMMAND, "train", *map(str, arguments)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, **(env or {})}, **more)


def ended(process, seconds=90):
    try:
        out, error = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, out, error


def train(*arguments, env=None):
    return ended(start(*arguments, env=env))


def free_port():
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return some.getsockname()[1]


def by_hand(rank, size, port, address="127.0.0.1"):
    """The variables with which a user starts a rank without a launcher."""
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": address, "MASTER_PORT": str(port)}


def children(process):
    """Process ids of the ranks, in order, once all are there."""
    for _ in range(200):
        found, size = {}, -1
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) != process.pid:
                    continue
                variables = dict(one.split("=", 1) for one in (entry / "environ").read_text().split("\0") if "=" in one)
            except (OSError, ValueError):  # it has ended
                continue
            if "RANK" in variables:
                found[int(variables["RANK"])], size = int(entry.name), int(variables["WORLD_SIZE"])
        if len(found) == size:
            return [found[rank] for rank in sorted(found)]
        time.sleep(0.05)
    raise AssertionError("the ranks did not start")


class Ranks(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="fovea-ranks-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def out(self, name):
        return self.folder / name

    def weights(self, name):
        return (self.out(name) / "model.safetensors").read_bytes()

    def state(self, name):
        return (self.out(name) / "state.safetensors").read_bytes()

    def done(self, result):
        code, out, error = result
        self.assertEqual(code, 0, error)
        return out, error

    def wait_for_state(self, name, process):
        state = self.out(name) / ".training" / "state.safetensors"
        for _ in range(600):
            if state.exists():
                return
            if process.poll() is not None:
                self.fail(f"ended before it was disturbed: {process.communicate()}")
            time.sleep(0.05)
        self.fail("no state was saved")

    def undisturbed(self):
        """The weights of LONG, trained once by one process."""
        if not hasattr(Ranks, "expected"):
            self.done(train(*LONG, "--workers", 1, "--out", self.out("undisturbed")))
            Ranks.expected = self.weights("undisturbed")
        return Ranks.expected
