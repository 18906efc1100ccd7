"""One RUN trained by several processes: the same bits for any number of ranks, and refusals that name both values."""

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest
from pathlib import Path

from ranks import COMMAND, TORCHRUN, LOST, SMALL, LONG, start, ended, train, free_port, by_hand, children, Ranks


class SameBits(Ranks):
    def check(self, *system):
        self.done(train(*system, "--parts", 4, "--threads", 1, "--out", self.out("parts")))
        for count in (1, 2, 3, 4):
            self.done(train(*system, "--workers", count, "--out", self.out(f"w{count}")))
            self.assertEqual(self.weights(f"w{count}"), self.weights("parts"), f"{count} ranks")
            self.assertEqual(self.state(f"w{count}"), self.state("parts"), f"{count} ranks: what a later training continues from")
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

    def test_mpirun(self):
        if not shutil.which("mpirun"):
            self.skipTest("no mpirun")
        self.done(train(*SMALL, "--workers", 1, "--out", self.out("one")))
        # Open MPI asks for these where root runs it, and where there are fewer cores than ranks.
        permitted = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        launched = subprocess.run(["mpirun", "-n", "2", COMMAND, "train", *SMALL, "--out", self.out("two")], text=True, capture_output=True, timeout=120,
                                  env={**os.environ, **permitted, "MASTER_PORT": str(free_port())})
        self.assertEqual(launched.returncode, 0, launched.stderr)
        self.assertEqual(launched.stdout.count("fovea:0"), 1, "only rank 0 prints")
        self.assertEqual(self.weights("two"), self.weights("one"))

    def test_variables_of_mpirun_and_srun(self):
        self.done(train(*SMALL, "--workers", 1, "--out", self.out("one")))
        for name, rank, size, local in (("ompi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}),
                                        ("pmi", "PMI_RANK", "PMI_SIZE", {"MPI_LOCALNRANKS": "2"}),
                                        ("slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", {"SLURM_STEP_NUM_NODES": "1"})):
            port = str(free_port())
            ranks = [start(*SMALL, "--out", self.out(name), env={rank: str(i), size: "2", "MASTER_PORT": port, **local}) for i in range(2)]
            for one in ranks:
                self.done(ended(one))
            self.assertEqual(self.weights(name), self.weights("one"), name)

    def test_without_shared_memory(self):
        self.done(train(*SMALL, "--set", "clip=1", "--workers", 1, "--out", self.out("one")))
        for count in (2, 4):
            self.done(train(*SMALL, "--set", "clip=1", "--workers", count, "--out", self.out(f"w{count}"), env={"FOVEA_SHARE_MEMORY": "0"}))
            self.assertEqual(self.weights(f"w{count}"), self.weights("one"), f"{count} ranks")
        port = free_port()  # one rank that shares none is enough
        ranks = [start(*SMALL, "--set", "clip=1", "--out", self.out("mixed"), env={**by_hand(i, 2, port), "FOVEA_SHARE_MEMORY": str(i)}) for i in range(2)]
        for one in ranks:
            self.done(ended(one))
        self.assertEqual(self.weights("mixed"), self.weights("one"))

    def test_memory_that_may_not_be_shared(self):
        # Other process ids than /proc shows: a rank does not find the other's memory there.
        namespace = ["unshare", "--pid", "--fork"]
        if subprocess.run([*namespace, "true"], capture_output=True).returncode:
            self.skipTest("namespaces of processes: not permitted here")
        self.done(train(*SMALL, "--workers", 1, "--out", self.out("one")))
        apart = subprocess.run([*namespace, COMMAND, "train", *SMALL, "--workers", "2", "--out", self.out("two")], text=True, capture_output=True, timeout=90)
        self.assertEqual(apart.returncode, 0, apart.stderr)
        self.assertRegex(apart.stderr, r"gradients go through Gloo, .*: rank 0 \(.*\) does not see the memory of rank 1 \(.*\): /proc/\d+/fd/\d+: ")
        self.assertEqual(self.weights("two"), self.weights("one"))

    def test_ranks_of_two_users(self):
        nobody = 65534
        command = dict(user=nobody, group=nobody, extra_groups=[])
        if os.geteuid() != 0 or subprocess.run([COMMAND, "--version"], capture_output=True, **command).returncode:
            self.skipTest("another user: not permitted here, or the command cannot be read by all")
        self.done(train(*SMALL, "--workers", 1, "--out", self.out("one")))
        port = free_port()
        ranks = [start(*SMALL, "--out", self.out("two"), env=by_hand(i, 2, port), **(command if i else {})) for i in range(2)]
        errors = [self.done(ended(one))[1] for one in ranks]
        self.assertRegex(errors[0], r"gradients go through Gloo, .*: rank 1 .* does not see the memory of rank 0 .*: Permission denied")
        self.assertEqual(errors[1], "")
        self.assertEqual(self.weights("two"), self.weights("one"))

    def test_memory_is_shared_on_one_machine(self):
        for shared in ("1", "0"):
            process = start(*LONG, "--workers", 2, "--out", self.out(f"run{shared}"), env={"FOVEA_SHARE_MEMORY": shared})
            self.wait_for_state(f"run{shared}", process)
            regions = [(Path("/proc") / str(rank) / "maps").read_text().count("memfd:fovea-ranks") for rank in children(process)]
            self.assertEqual(regions, [2, 2] if shared == "1" else [0, 0])
            process.send_signal(signal.SIGINT)
            _, _, error = ended(process)
            self.assertNotIn("Gloo", error, "only what the user did not ask for is said")

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


class Graph(Ranks):
    """gat on a graph of which each rank holds a part. Without dropout, which each rank draws for itself, ranks compute what one process does."""

    # Plain descent: a difference in the last bits of a gradient stays there.
    STEPS = ["gat", "--epochs", 4, "--set", "nodes=600", "--set", "dropout=0", "--set", "attention_dropout=0", "--set", "optimiser=sgd", "--set", "rate=0.5"]

    def lines(self, name):
        return [json.loads(line) for line in (self.out(name) / "metrics.jsonl").read_text().splitlines()]

    def weights_of(self, name):
        data = self.weights(name)
        length = int.from_bytes(data[:8], "little")
        header, numbers = json.loads(data[8:8 + length]), {}
        for key, entry in header.items():
            if key != "__metadata__":
                first, end = entry["data_offsets"]
                numbers[key] = struct.unpack(f"<{(end - first) // 4}f", data[8 + length + first:8 + length + end])
        return numbers

    def near(self, name, other):
        for a, b in zip(self.lines(name), self.lines(other), strict=True):
            self.assertAlmostEqual(a["loss"], b["loss"], delta=1e-5)
            self.assertAlmostEqual(a["validation"]["loss"], b["validation"]["loss"], delta=1e-5)
        found, expected = self.weights_of(name), self.weights_of(other)
        self.assertEqual(found.keys(), expected.keys())
        for key, numbers in expected.items():
            # Gradients are sums of some hundred terms of the size of the weights' changes, each rounded in float32.
            self.assertLess(max(abs(a - b) for a, b in zip(found[key], numbers, strict=True)), 1e-5 * (1 + max(map(abs, numbers))), key)

    def test_parts_compute_what_the_whole_does(self):
        for version in ("gat", "gatv2"):
            options = [*self.STEPS, "--set", f"version={version}"]
            out, _ = self.done(train(*options, "--threads", 1, "--json", "--out", self.out(version)))
            for count, partition in ((1, "contiguous"), (2, "contiguous"), (3, "edge_cut")):
                name = f"{version}-{count}"
                found, _ = self.done(train(*options, "--set", f"partition={partition}", "--workers", count, "--json", "--out", self.out(name)))
                self.near(name, version)
                for figures in ("metrics", "attention"):
                    expected = json.loads(out)[figures]
                    self.assertEqual(json.loads(found)[figures].keys(), expected.keys())
                    for key, value in expected.items():
                        self.assertAlmostEqual(json.loads(found)[figures][key], value, delta=1e-4 if key == "loss" else 0.011, msg=key)

    def test_every_step_of_the_way(self):
        """Dropout, small batches of which some ranks have no node, a table of numbers, sparse weights; then evaluate, predict and explain."""
        own = self.out("graph")
        own.mkdir()
        lines = ["id,label,a,b"] + [f"n{i},{'xy'[i % 2]},{i % 2 + 0.1 * (i % 7)},{(i * i) % 5}" for i in range(60)]
        (own / "nodes.csv").write_text("\n".join(lines) + "\n")
        (own / "edges.csv").write_text("".join(f"n{i},n{(i + 2) % 60}\n" for i in range(60)))
        options = ["gat", "--epochs", 3, "--data", own, "--set", "partition=contiguous", "--set", "batch=4", "--set", "normaliser=sparsemax"]
        self.done(train(*options, "--workers", 3, "--out", self.out("run")))
        alone, shared = ([json.loads(self.done(command("evaluate", self.out("run"), "--json", *ranks))[0])] for ranks in (["--threads", 1], ["--workers", 3]))
        self.assertEqual(alone[0]["metrics"].keys(), shared[0]["metrics"].keys())
        for key, value in alone[0]["metrics"].items():
            self.assertAlmostEqual(shared[0]["metrics"][key], value, delta=1e-5, msg=key)
        answers = [self.done(command("predict", self.out("run"), *ranks, text="n3 n8\n"))[0] for ranks in (["--threads", 1], ["--workers", 2])]
        self.assertEqual(answers[0], answers[1])
        self.done(command("explain", self.out("run"), "--out", self.out("page.html")))

    def most_memory(self, nodes, count, partition):
        """The largest resident memory of a process, in KiB."""
        # Memory that is given back is then given back at once, and does not count as needed.
        variables = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_ARENA_MAX": "1"}
        options = ["gat", "--epochs", 1, "--threads", 1, "--set", f"partition={partition}", "--set", f"nodes={nodes}", "--set", f"edges={50 * nodes}",
                   "--set", "reach=200", "--set", "heads=1"]  # so that the graph itself is what takes memory
        port = free_port()
        started = [start(*options, "--quiet", "--out", self.out(f"{nodes}-{count}"), env={**variables, **(by_hand(i, count, port) if count > 1 else {})})
                   for i in range(count)]
        most = 0
        for process in started:
            with process.stdout, process.stderr:
                error = process.stderr.read()
                _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0, error)
            most = max(most, used.ru_maxrss)
        return most

    def test_a_rank_holds_its_part_and_no_more(self):
        if b"__asan_" in COMMAND.read_bytes():
            self.skipTest("the address sanitiser keeps freed memory for a while")
        alone, four = (self.most_memory(40_000, *way) - self.most_memory(10_000, *way) for way in ((1, "whole"), (4, "contiguous")))
        print(f"memory of 30,000 nodes: {alone // 1024} MiB in one process, {four // 1024} MiB in a rank of four")
        self.assertLess(four, 0.3 * alone)

    def test_resumed_by_another_number_of_ranks(self):
        self.done(train(*self.STEPS, "--set", "partition=edge_cut", "--workers", 1, "--out", self.out("one")))
        fewer = [*self.STEPS[:2], 2, *self.STEPS[3:]]
        self.done(train(*fewer, "--set", "partition=edge_cut", "--workers", 2, "--out", self.out("run")))
        self.done(train(*self.STEPS, "--set", "partition=edge_cut", "--workers", 3, "--resume", "--out", self.out("run")))
        self.near("run", "one")

    def test_a_killed_rank_ends_the_others(self):
        process = start("gat", "--epochs", 100000, "--set", "patience=0", "--set", "partition=contiguous", "--workers", 3, "--checkpoint", "0.2", "--out", self.out("run"))
        self.wait_for_state("run", process)
        os.kill(children(process)[1], signal.SIGKILL)
        code, _, error = ended(process)
        self.assertEqual(code, LOST, error)
        self.assertRegex(error, r"rank 1 \(process \d+ on \S+\) ended without a word")


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

    def test_other_products(self):
        # Settings of MKL and oneDNN stand for a processor of another kind. libtorch's capability, and Fovea's, are the same.
        plain = {1: {"MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"}}
        for code, _, error in self.two(SMALL, SMALL, env=plain):
            self.assertEqual(code, 2, error)
            self.assertRegex(error, r'rank 1 .*: bits of float products \(by processor, MKL and oneDNN\) is "\w+", expected "\w+" \(rank 0\'s\)')
        for code, _, error in self.two([*SMALL, "--sums", "any"], [*SMALL, "--sums", "any"], env=plain):
            self.assertEqual(code, 0, error)

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
