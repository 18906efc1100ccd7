"""One RUN trained by several processes: the same bits for any number of ranks, and an end with a message whatever happens to one of them."""

import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from slow_link import SlowLink

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


class SameBits(Ranks):
    def check(self, *system):
        self.done(train(*system, "--parts", 4, "--threads", 1, "--out", self.out("parts")))
        for count in (1, 2, 3, 4):
            self.done(train(*system, "--workers", count, "--out", self.out(f"w{count}")))
            self.assertEqual(self.weights(f"w{count}"), self.weights("parts"), f"{count} ranks")
        self.done(train(*system, "--threads", 1, "--out", self.out("whole")))
        self.assertNotEqual(self.weights("whole"), self.weights("parts"), "undivided: nothing was tested")

    def test_dropout(self):
        self.check(*SMALL)

    def test_batch_normalisation(self):
        self.check("squeeze-excitation", "--epochs", "1", "--set", "pictures=300", "--set", "batch=30")

    def test_a_batch_smaller_than_its_parts(self):
        self.check("word-sum", "--epochs", "1", "--set", "batch=3", "--set", "clip=1")

    def test_several_seeds(self):
        self.done(train(*SMALL, "--parts", 4, "--threads", 1, "--seeds", 2, "--out", self.out("parts")))
        self.done(train(*SMALL, "--workers", 2, "--seeds", 2, "--out", self.out("two")))
        for seed in ("seed-1", "seed-2"):
            self.assertEqual(self.weights(f"two/{seed}"), self.weights(f"parts/{seed}"))

    def test_torchrun(self):
        if not TORCHRUN.exists():
            self.skipTest("no torchrun: .venv has no torch")
        self.done(train(*SMALL, "--workers", 1, "--out", self.out("one")))
        launched = subprocess.run([TORCHRUN, "--nproc-per-node", "2", "--master-port", str(free_port()), "--no-python", COMMAND, "train", *SMALL,
                                   "--out", self.out("two")], text=True, capture_output=True, timeout=120)
        self.assertEqual(launched.returncode, 0, launched.stderr)
        self.assertEqual(launched.stdout.count("fovea:0"), 1, "only rank 0 prints")
        self.assertEqual(self.weights("two"), self.weights("one"))

    def test_mpirun_and_srun(self):
        self.done(train(*SMALL, "--workers", 1, "--out", self.out("one")))
        for name, rank, size, local in (("ompi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}),
                                        ("pmi", "PMI_RANK", "PMI_SIZE", {"MPI_LOCALNRANKS": "2"}),
                                        ("slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", {"SLURM_STEP_NUM_NODES": "1"})):
            port = str(free_port())
            ranks = [start(*SMALL, "--out", self.out(name), env={rank: str(i), size: "2", "MASTER_PORT": port, **local}) for i in range(2)]
            for one in ranks:
                self.done(ended(one))
            self.assertEqual(self.weights(name), self.weights("one"), name)

    def test_other_order_is_near(self):
        self.done(train(*SMALL, "--workers", 2, "--out", self.out("ordered")))
        out, _ = self.done(train(*SMALL, "--workers", 2, "--sums", "any", "--json", "--out", self.out("any")))
        self.assertIn("|parts:4|sums:any", json.loads(out)["signature"])
        ordered, other = json.loads(self.read_metrics("ordered")), json.loads(self.read_metrics("any"))
        self.assertAlmostEqual(ordered["loss"], other["loss"], delta=1e-4)

    def read_metrics(self, name):
        return (self.out(name) / "metrics.jsonl").read_text().splitlines()[-1]


class Resumed(Ranks):
    def test_with_another_number_of_ranks(self):
        process = start(*LONG, "--workers", 2, "--out", self.out("run"))
        self.wait_for_state("run", process)
        process.send_signal(signal.SIGINT)
        code, _, error = ended(process)
        self.assertEqual(code, 128 + signal.SIGINT, error)
        self.assertIn("--resume continues", error)
        self.done(train(*LONG, "--workers", 3, "--resume", "--out", self.out("run")))
        self.assertEqual(self.weights("run"), self.undisturbed())

    def test_more_seeds(self):
        self.done(train(*SMALL, "--workers", 2, "--seeds", 2, "--out", self.out("run")))
        before = self.weights("run/seed-1")
        self.done(train(*SMALL, "--workers", 2, "--seeds", 3, "--resume", "--timeout", 20, "--out", self.out("run")))
        self.done(train(*SMALL, "--workers", 1, "--seed", 3, "--out", self.out("third")))
        self.assertEqual(self.weights("run/seed-1"), before)
        self.assertEqual(self.weights("run/seed-3"), self.weights("third"))

    def test_fewer_parts_than_ranks(self):
        code, _, error = train(*SMALL, "--workers", 3, "--parts", 2, "--out", self.out("run"))
        self.assertEqual(code, 2, error)
        self.assertIn("--parts 2: expected at least 3, the number of ranks", error)

    def test_another_division(self):
        self.done(train(*SMALL, "--workers", 2, "--out", self.out("run")))
        code, _, error = train(*SMALL, "--parts", 8, "--resume", "--out", self.out("run"))
        self.assertEqual(code, 2)
        self.assertRegex(error, "was started with --parts 4, not 8")


def command(*arguments, text=""):
    done = subprocess.run([COMMAND, *map(str, arguments)], input=text, text=True, capture_output=True, timeout=90)
    return done.returncode, done.stdout, done.stderr


class Shared(Ranks):
    """evaluate and predict: figures and answers of ranks are those of one process."""

    def check_figures(self, *system):
        self.done(train(*system, "--threads", 1, "--out", self.out("run")))
        reports = [json.loads(self.done(command("evaluate", self.out("run"), "--json", *ranks))[0])
                   for ranks in (["--threads", 1], ["--workers", 2], ["--workers", 3])]
        for report in reports:
            del report["seconds"]
        self.assertEqual(reports[1], reports[0])
        self.assertEqual(reports[2], reports[0])
        return reports[0]

    def check_answers(self, text, *options):
        alone = command("predict", self.out("run"), "--threads", 1, *options, text=text)
        for workers in (2, 3):
            shared = command("predict", self.out("run"), "--workers", workers, *options, text=text)
            self.assertEqual(shared[:2], alone[:2])
            self.assertEqual(sorted(shared[2].splitlines()), sorted(alone[2].splitlines()))
        return alone

    def test_classes(self):
        report = self.check_figures(*SMALL, "--set", "batch=8")  # several batches
        self.assertIn("accuracy", report["metrics"])
        lines = [f"a line of {i} good and bad words" for i in range(300)]
        lines[170] = "bytes that are no text: \x00"
        for options in ([], ["--json"]):
            self.check_answers("\n".join(lines) + "\n", *options)
        self.check_answers("")

    def test_translations(self):
        small = ["--set", "width=8", "--set", "hidden=8", "--set", "layers=1", "--set", "heads=1", "--set", "beam=1"]
        report = self.check_figures("transformer", *small, "--epochs", "1", "--set", "batch=512")
        self.assertIn("bleu", report["metrics"])
        _, answers, _ = self.check_answers("".join(f"a b c d{' e' * (i % 7)}\n" for i in range(200)), "--set", "n_best=1")
        self.assertEqual(answers.count("\n"), 200)

    def test_a_table_is_answered_by_one(self):
        self.done(train("nadaraya-watson", "--out", self.out("run")))
        code, answers, _ = self.check_answers("times\n10\n20\n30\n")
        self.assertEqual((code, answers.count("\n")), (0, 4))  # names of the columns, and three rows

    def test_other_weights(self):
        for seed in (1, 2):
            self.done(train(*SMALL, "--threads", 1, "--seed", seed, "--out", self.out(f"run{seed}")))
        port = free_port()
        ranks = [subprocess.Popen([COMMAND, "evaluate", self.out(f"run{rank + 1}")], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env={**os.environ, **by_hand(rank, 2, port)}) for rank in range(2)]
        for rank in ranks:
            code, _, error = ended(rank)
            self.assertEqual(code, 2, error)
            self.assertRegex(error, r"rank 1 .*: weights of the RUN \(sha256\) is \S+, expected \S+ \(rank 0's\)")


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

    def test_restarts(self):
        for rank in (0, 1):
            name = f"restarted{rank}"
            _, error = self.done(ended(self.disturb("--restarts", 2, rank=rank, name=name)))
            self.assertIn("starting all ranks again from the last save (1 of 2)", error)
            self.assertEqual(self.weights(name), self.undisturbed())

    def test_many_times(self):
        kills = int(os.environ.get("FOVEA_KILLS", "5"))
        drawn = random.Random(7)
        # So long that it is not done before the last one; each kill costs a start.
        training = ["word-sum", "--epochs", str(8 * kills), "--set", "dropout=0.2", "--checkpoint", "0.2"]
        self.done(train(*training, "--workers", 1, "--out", self.out("expected")))
        process = start(*training, "--workers", 3, "--restarts", kills, "--out", self.out("run"))
        killed = 0
        while killed < kills and process.poll() is None:
            time.sleep(drawn.uniform(0.2, 4))
            try:
                os.kill(drawn.choice(children(process)), signal.SIGKILL)
                killed += 1
            except (ProcessLookupError, AssertionError):
                continue
        self.done(ended(process, 300))
        print(f"{killed} of {kills} kills")
        self.assertGreater(killed, kills // 3)
        self.assertEqual(self.weights("run"), self.weights("expected"))

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
        pause = float(os.environ.get("FOVEA_PAUSE", "2"))
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


class Refused(Ranks):
    def two(self, first, second, env=None):
        port = free_port()
        ranks = [start(*arguments, "--timeout", 20, "--out", self.out(f"r{rank}"), env={**by_hand(rank, 2, port), **(env or {}).get(rank, {})})
                 for rank, arguments in enumerate((first, second))]
        return [ended(one) for one in ranks]

    def test_other_settings(self):
        for code, _, error in self.two([*SMALL, "--set", "rate=0.01"], [*SMALL, "--set", "rate=0.02"]):
            self.assertEqual(code, 2, error)
            self.assertRegex(error, r"rank 1 \(process \d+ on \S+\): option/rate is 0.02, expected 0.01 \(rank 0's\)")
        self.assertFalse(self.out("r0").exists())

    def test_other_data(self):
        for name, last in (("a", "bad"), ("b", "good")):
            lines = [f"good\ttext {i} fine\nbad\ttext {i} poor" for i in range(30)] + [f"{last}\tthe last one"]
            self.out(f"{name}.tsv").write_text("\n".join(lines) + "\n")
        results = self.two(["word-sum", "--epochs", 1, "--data", self.out("a.tsv")], ["word-sum", "--epochs", 1, "--data", self.out("b.tsv")])
        for code, _, error in results:
            self.assertEqual(code, 2, error)
            self.assertRegex(error, r'rank 1 .*: data_sha256 is "[0-9a-f]{64}", expected "[0-9a-f]{64}"|initial weights')

    def test_another_processor(self):
        for code, _, error in self.two(SMALL, SMALL, env={1: {"ATEN_CPU_CAPABILITY": "default"}}):
            self.assertEqual(code, 2, error)
            self.assertIn("CPU capability is", error)

    def test_a_port_that_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("0.0.0.0", 0))
            taken.listen()
            code, _, error = train(*SMALL, "--timeout", 5, "--out", self.out("run"), env=by_hand(0, 2, taken.getsockname()[1]))
        self.assertEqual(code, 2, error)
        self.assertIn("another program has this port", error)

    def test_a_wrong_address(self):
        begin = time.monotonic()
        code, _, error = train(*SMALL, "--timeout", 3, "--out", self.out("run"), env=by_hand(1, 2, free_port(), "127.0.0.77"))
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(code, LOST, error)
        self.assertRegex(error, r"MASTER_ADDR=127.0.0.77, MASTER_PORT=\d+: rank 1 found nobody there within 3 s \(--timeout\)")

    def test_a_rank_that_does_not_come(self):
        code, _, error = train(*SMALL, "--timeout", 2, "--out", self.out("run"), env=by_hand(0, 3, free_port()))
        self.assertEqual(code, LOST, error)
        self.assertIn("rank 0 of 3 waited 2 s (--timeout) for ranks 1, 2, which did not come", error)

    def test_wrong_variables(self):
        for env, words in (({"RANK": "2", "WORLD_SIZE": "2"}, "RANK=2: expected a whole number from 0 to 1"),
                           ({"RANK": "0", "WORLD_SIZE": "two"}, "WORLD_SIZE=two: expected a whole number"),
                           ({"RANK": "0", "WORLD_SIZE": "2"}, "MASTER_ADDR: not set, expected the address of rank 0's machine"),
                           ({**by_hand(0, 2, 70000)}, "MASTER_PORT=70000: expected a whole number from 1 to 65535")):
            code, _, error = train(*SMALL, "--out", self.out("run"), env=env)
            self.assertEqual(code, 2, error)
            self.assertIn(words, error)

    def test_what_cannot_be_divided(self):
        for arguments, words in ((["cost", "--workers", 2], "does not learn by gradient descent"),
                                 ([*SMALL, "--workers", 2, "--seeds", 2, "--jobs", 2], "--jobs and --sweep: not with --workers")):
            code, _, error = train(*arguments, "--out", self.out("run"))
            self.assertEqual(code, 2, error)
            self.assertIn(words, error)
        code, _, error = train(*SMALL, "--workers", 2, "--out", self.out("run"), env=by_hand(0, 2, free_port()))
        self.assertEqual(code, 2, error)
        self.assertIn("a launcher has started this process as rank 0 of 2 already", error)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
