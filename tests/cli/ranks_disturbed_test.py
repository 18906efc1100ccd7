"""One RUN trained by several processes: an end with a message, or the same bits, whatever happens to one of them or to their network."""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from ranks import COMMAND, TORCHRUN, LOST, SMALL, LONG, start, ended, train, free_port, by_hand, children, Ranks
from slow_link import SlowLink


class Killed(Ranks):
    def disturb(self, *arguments, rank, name, count=3):
        process = start(*LONG, "--workers", count, *arguments, "--out", self.out(name))
        self.wait_for_state(name, process)
        os.kill(children(process)[rank], signal.SIGKILL)
        return process

    def test_the_others_end(self):
        for rank in (0, 1):
            name = f"killed{rank}"
            process = self.disturb(rank=rank, name=name)
            begin = time.monotonic()
            code, _, error = ended(process)
            self.assertLess(time.monotonic() - begin, 20)
            self.assertEqual(code, LOST, error)
            self.assertIn(f"rank {rank}: ended by signal 9", error)
            if rank != 0:
                self.assertRegex(error, r"rank 1 \(process \d+ on \S+\) ended without a word")
            self.done(train(*LONG, "--workers", 2, "--resume", "--out", self.out(name)))
            self.assertEqual(self.weights(name), self.undisturbed())

    def test_a_killed_launcher(self):
        process = start(*LONG, "--workers", 2, "--out", self.out("run"))
        self.wait_for_state("run", process)
        ranks = children(process)
        process.kill()
        begin = time.monotonic()
        while any(Path(f"/proc/{rank}").exists() for rank in ranks):
            self.assertLess(time.monotonic() - begin, 30, "a rank trains on")
            time.sleep(0.1)
        ended(process)
        self.done(train(*LONG, "--workers", 2, "--resume", "--out", self.out("run")))
        self.assertEqual(self.weights("run"), self.undisturbed())

    def test_restarts(self):
        for rank in (0, 1):
            name = f"restarted{rank}"
            _, error = self.done(ended(self.disturb("--restarts", 2, rank=rank, name=name)))
            self.assertIn("starting all ranks again from the last save (1 of 2)", error)
            self.assertEqual(self.weights(name), self.undisturbed())

    def test_many_times(self):
        kills = int(os.environ.get("FOVEA_KILLS", "30"))
        drawn = random.Random(7)
        training = ["word-sum", "--epochs", "200", "--set", "dropout=0.2", "--checkpoint", "0.2"]
        self.done(train(*training, "--workers", 1, "--out", self.out("expected")))
        killed = trainings = 0
        while killed < kills:
            trainings += 1
            name = f"run{trainings}"
            process = start(*training, "--workers", 3, "--restarts", kills, "--out", self.out(name))
            while killed < kills and process.poll() is None:
                time.sleep(drawn.uniform(0.2, 3))  # also before it has saved anything, and while it starts again
                try:
                    os.kill(drawn.choice(children(process)), signal.SIGKILL)
                    killed += 1
                except (ProcessLookupError, AssertionError):
                    continue
            self.done(ended(process, 300))
            self.assertEqual(self.weights(name), self.weights("expected"), f"after {killed} kills")
        print(f"{killed} kills, {trainings} trainings")

    def test_torchrun_restarts(self):
        if not TORCHRUN.exists():
            self.skipTest("no torchrun: .venv has no torch")
        process = subprocess.Popen([TORCHRUN, "--nproc-per-node", "2", "--max-restarts", "2", "--monitor-interval", "0.2", "--master-port",
                                    str(free_port()), "--no-python", COMMAND, "train", *LONG, "--out", self.out("run")],
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.wait_for_state("run", process)
        os.kill(children(process)[1], signal.SIGKILL)
        self.done(ended(process, 180))
        self.assertEqual(self.weights("run"), self.undisturbed())

    def test_a_full_disk(self):
        # A limit on the size of files fails as a full disk does: the weights do not fit.
        process = start(*LONG, "--workers", 2, "--restarts", 3, "--out", self.out("run"),
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000)))
        code, _, error = ended(process)
        self.assertEqual(code, 1, error)
        self.assertIn("state.safetensors", error)
        self.assertNotIn("starting all ranks again", error)

    def test_a_disk_that_is_full_for_a_while(self):
        disk = self.out("disk")
        disk.mkdir()
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "fovea-ranks-test", disk], capture_output=True, text=True)
        if made.returncode:
            self.skipTest(f"a small disk: {made.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", disk])
        process = start(*LONG, "--workers", 2, "--restarts", 3, "--out", disk / "run")
        self.wait_for_state("disk/run", process)
        with open(disk / "filler", "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)):
                    pass
            except OSError:
                pass
        code, _, error = ended(process)
        self.assertEqual(code, 1, error)
        self.assertIn("No space left on device", error)
        self.assertNotIn("starting all ranks again", error)
        (disk / "filler").unlink()
        self.done(train(*LONG, "--workers", 2, "--resume", "--out", disk / "run"))
        self.assertEqual(self.weights("disk/run"), self.undisturbed())


class Silent(Ranks):
    def test_a_stopped_rank_is_named(self):
        for rank in (0, 1):
            process = start(*LONG, "--workers", 2, "--timeout", 3, "--out", self.out(f"run{rank}"))
            self.wait_for_state(f"run{rank}", process)
            stopped = children(process)[rank]
            os.kill(stopped, signal.SIGSTOP)
            begin = time.monotonic()
            code, _, error = ended(process)
            self.assertLess(time.monotonic() - begin, 60)
            self.assertNotEqual(code, 0)
            if rank == 1:
                self.assertRegex(error, rf"rank 1 \(process {stopped} on \S+\) has given no sign of life for \d+ s \(--timeout 3\)")
                self.assertRegex(error, "while rank 0 waited for the (losses|gradients) of step")

    def test_a_pause_does_not_matter(self):
        pause = float(os.environ.get("FOVEA_PAUSE", "60"))
        process = start(*LONG, "--workers", 2, "--timeout", pause + 28, "--out", self.out("run"))
        self.wait_for_state("run", process)
        for rank in children(process):
            os.kill(rank, signal.SIGSTOP)
            time.sleep(pause)
            os.kill(rank, signal.SIGCONT)
        self.done(ended(process))
        self.assertEqual(self.weights("run"), self.undisturbed())


class Network(Ranks):
    """Two network namespaces, joined by a pair of virtual devices: two machines, as far as ranks can tell."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or not shutil.which("ip") or subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode:
            self.skipTest("network namespaces: not permitted here, or no `ip`")
        self.names = [f"fovea-{os.getpid()}-{i}" for i in range(2)]
        for name in self.names:
            self.ip("netns", "add", name)
            self.addCleanup(subprocess.run, ["ip", "netns", "del", name], capture_output=True)
        devices = [f"fv{os.getpid() % 10**8}{i}" for i in range(2)]
        made = subprocess.run(["ip", "link", "add", devices[0], "netns", self.names[0], "type", "veth", "peer", "name", devices[1], "netns", self.names[1]],
                              capture_output=True, text=True)
        if made.returncode:
            self.skipTest(f"virtual devices: {made.stderr.strip()}")
        self.devices, self.address = devices, "10.77.0.1"
        for i, (name, device) in enumerate(zip(self.names, devices)):
            self.ip("-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", device)
            self.ip("-n", name, "link", "set", device, "up")
            self.ip("-n", name, "link", "set", "lo", "up")

    def ip(self, *arguments):
        subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)

    def ranks(self, *arguments):
        return [subprocess.Popen(["ip", "netns", "exec", self.names[rank], COMMAND, "train", *arguments, "--out", self.out(f"run{rank}")], text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env={**os.environ, **by_hand(rank, 2, 29512, self.address), "GLOO_SOCKET_IFNAME": self.devices[rank]}) for rank in range(2)]

    def same_bits(self):
        self.done(train(*SMALL, "--workers", 1, "--out", self.out("one")))
        for rank in self.ranks(*SMALL):
            self.done(ended(rank, 240))
        self.assertEqual(self.weights("run0"), self.weights("one"))
        self.assertFalse(self.out("run1").exists(), "only rank 0 writes")

    def test_two_machines(self):
        self.same_bits()

    def test_slow_and_lossy(self):
        for name, device in zip(self.names, self.devices):
            shaped = subprocess.run(["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", device, "root", "netem", "delay", "1ms", "loss", "1%"],
                                    capture_output=True, text=True)
            if shaped.returncode:
                self.skipTest(f"tc netem: {shaped.stderr.strip()}")
        self.same_bits()

    def test_slow_and_lossy_by_hand(self):
        devices, addresses = [f"ft{os.getpid() % 10**8}{i}" for i in range(2)], ["10.78.0.1", "10.78.0.2"]
        try:
            link = SlowLink(self.names, devices, addresses, delay=0.001, loss=0.01)
        except OSError as error:
            self.skipTest(f"TUN devices: {error}")
        self.addCleanup(link.close)
        self.devices, self.address = devices, addresses[0]
        self.same_bits()
        print(f"{link.carried} packets, {link.lost} lost")
        self.assertGreater(link.lost, 0)

    def test_a_cable_that_is_cut(self):
        first, second = self.ranks(*LONG, "--timeout", "4")
        self.wait_for_state("run0", first)
        self.ip("-n", self.names[1], "link", "set", self.devices[1], "down")
        begin = time.monotonic()
        for process, words in ((first, r"rank 1 .* has given no sign of life for \d+ s"), (second, "rank 0|cannot be reached|no sign of life")):
            code, _, error = ended(process, 60)
            self.assertEqual(code, LOST, error)
            self.assertRegex(error, words)
        self.assertLess(time.monotonic() - begin, 40)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
