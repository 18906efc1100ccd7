"""The verbs about RUNs that are there: `runs`, `curves`, `compare`; and `completion`, from the same declarations as --help."""

import json
import math
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

COMMAND = Path(os.environ["FOVEA_COMMAND"])


def fovea(*arguments):
    return subprocess.run([COMMAND, *map(str, arguments)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)


def crc32c(data):
    """Bit by bit from the polynomial x^32 + x^28 + x^27 + …, most significant bit first, on reflected bytes."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= int(f"{byte:08b}"[::-1], 2) << 24
        for _ in range(8):
            register = (register << 1 ^ (0x1EDC6F41 if register >> 31 else 0)) & 0xFFFFFFFF
    return int(f"{register ^ 0xFFFFFFFF:032b}"[::-1], 2)


def records(data):
    """The events of a TFRecord file, each checked by its two checksums."""
    def right(part, given):
        crc = crc32c(part)
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF == struct.unpack("<I", given)[0]
    at = 0
    while at < len(data):
        length = struct.unpack("<Q", data[at:at + 8])[0]
        assert right(data[at:at + 8], data[at + 8:at + 12]), "the length's checksum"
        body = data[at + 12:at + 12 + length]
        assert right(body, data[at + 12 + length:at + 16 + length]), "the record's checksum"
        yield body
        at += 16 + length


def fields(data):
    """A protocol buffer as {field: value}."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            value = data[at:at + size]
            at += size
        found[key >> 3] = value
    return found


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="fovea-runs-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        for name, seed in (("one", 1), ("deep/two", 2)):
            trained = fovea("train", "general", "--set", "epochs=2", "--seed", seed, "--threads", 1, "--quiet", "--out", cls.folder / name)
            assert trained.returncode == 0, trained.stderr

    def metrics(self):
        return [json.loads(line) for line in (self.folder / "one/metrics.jsonl").read_text().splitlines()]

    def test_names_that_are_no_text(self):
        """Of folders and files: shown as escapes in columns that stay in line, replaced in JSON, and refused where a run would record them."""
        odd = self.folder / "odd"
        for name in (b"e\x1b[31mvil", b"not\xffutf8"):
            shutil.copytree(self.folder / "one", odd / os.fsdecode(name))
        lines = fovea("runs", odd).stdout.splitlines()
        self.assertEqual(len({line.index("general") for line in lines[1:]} | {lines[0].index("system")}), 1, lines)
        self.assertTrue(any("e\\x1b[31mvil  general" in line for line in lines), lines)
        listed = fovea("runs", odd, "--json")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertEqual({Path(run["folder"]).name for run in json.loads(listed.stdout)}, {"e\x1b[31mvil", "not\ufffdutf8"})
        bad = os.fsdecode(os.fsencode(odd) + b"/not\xffutf8")
        for more in ((), ("--json",)):
            compared = fovea("compare", bad, self.folder / "one", *more)
            self.assertEqual(compared.returncode, 0, compared.stderr)
        data = os.fsdecode(os.fsencode(odd) + b"/d\xff.tsv")
        Path(data).write_text("1\tgood\n0\tbad\n" * 20)
        refused = fovea("train", "word-sum", "--data", data, "--quiet", "--out", odd / "new")
        self.assertEqual(refused.returncode, 2)
        self.assertRegex(refused.stderr, r"^fovea: --data \S+/d\\xff\.tsv: expected UTF-8, in which a run records it\n$")
        self.assertFalse((odd / "new").exists())
        shutil.rmtree(odd)

    def test_runs_are_found_wherever_they_are_with_system_data_figure_and_date(self):
        rows = json.loads(fovea("runs", self.folder, "--json").stdout)
        self.assertEqual([row["folder"] for row in rows], [str(self.folder / "deep/two"), str(self.folder / "one")])
        self.assertEqual({(row["system"], row["data"]) for row in rows}, {("general", "generated")})
        self.assertEqual(rows[1]["figure"], f"validation loss {self.metrics()[-1]['validation']['loss']:.4g}")
        self.assertRegex(rows[0]["date"], r"^\d{4}-\d\d-\d\d \d\d:\d\d$")
        lines = fovea("runs", self.folder).stdout.splitlines()
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[2], r"one +general +generated +validation loss ")

    def test_a_run_that_was_damaged_is_named_and_the_others_are_listed(self):
        shutil.copytree(self.folder / "one", self.folder / "torn")
        self.addCleanup(shutil.rmtree, self.folder / "torn")
        (self.folder / "torn/config.json").write_text("{}")
        rows = json.loads(fovea("runs", self.folder, "--json").stdout)
        self.assertEqual([row["folder"].split("/")[-1] for row in rows if "broken" in row], ["torn"])
        self.assertEqual(len(rows), 3)

    def test_a_folder_without_runs_and_one_that_is_not_there(self):
        empty = self.folder / "empty"
        empty.mkdir()
        self.addCleanup(empty.rmdir)
        self.assertEqual(fovea("runs", empty).stdout, f"no RUN in {empty}\n")
        refused = fovea("runs", self.folder / "nowhere")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("no such folder", refused.stderr)

    def test_a_folder_that_cannot_be_read_is_named(self):
        deep = self.folder / "/".join("abcdefghijklmnopqrstuvwxyz")
        deep.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, self.folder / "a")
        done = subprocess.run([COMMAND, "runs", self.folder], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16)))  # a handle for each folder within another
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, rf"^fovea: {self.folder}/a/b/[a-z/]+: Too many open files\n$")

    def test_a_date_in_a_far_century_is_a_date(self):
        manifest = self.folder / "one/manifest.json"
        before = manifest.stat()
        self.addCleanup(os.utime, manifest, ns=(before.st_atime_ns, before.st_mtime_ns))
        os.utime(manifest, (10_500_000_000, 10_500_000_000))
        if manifest.stat().st_mtime != 10_500_000_000:
            self.skipTest("this disk has no dates after 2262")
        done = fovea("runs", self.folder / "one")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("2302-09-", done.stdout)

    def test_without_proc_a_run_that_needs_a_second_process_says_so(self):
        alone = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$0" "$@"']
        if subprocess.run([*alone, "true"], capture_output=True).returncode:
            self.skipTest("no file system may be mounted here")
        out = self.folder / "pair"
        training = [COMMAND, "train", "pooling", "--set", "bags=40", "--epochs", "1", "--quiet", "--out", out]
        done = subprocess.run([*alone, *training, "--seeds", "2", "--jobs", "2"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/proc/self/exe: cannot be started, expected this program; is /proc mounted?", done.stderr)
        shutil.rmtree(out, ignore_errors=True)
        done = subprocess.run([*alone, *training], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        shutil.rmtree(out)

    def test_what_is_not_finished_when_a_signal_comes_is_removed(self):
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            answers = self.folder / "answers.txt"
            asked = subprocess.Popen([COMMAND, "predict", self.folder / "one", "--output", answers], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
            end = time.monotonic() + 60
            while not list(self.folder.glob(".fovea-*")) and time.monotonic() < end:
                time.sleep(0.02)
            self.assertTrue(list(self.folder.glob(".fovea-*")))
            asked.send_signal(how)
            self.assertEqual(asked.wait(timeout=30), 128 + how)
            asked.stdin.close()
            asked.stderr.close()
            self.assertEqual(list(self.folder.glob(".fovea-*")) + list(self.folder.glob("answers*")), [])

    def test_curves_as_csv_are_the_numbers_of_the_log(self):
        header, *lines = fovea("curves", self.folder / "one").stdout.splitlines()
        rows = [dict(zip(header.split(","), map(float, line.split(",")))) for line in lines]
        logged = self.metrics()
        self.assertEqual(len(rows), len(logged))
        for row, line in zip(rows, logged):
            self.assertEqual(row["loss"], line["loss"])
            self.assertEqual(row["validation/loss"], line["validation"]["loss"])

    def test_curves_as_events_hold_the_same_scalars(self):
        out = self.folder / "events"
        self.assertEqual(fovea("curves", self.folder / "one", "--tensorboard", out).returncode, 0)
        file, = out.iterdir()
        self.assertRegex(file.name, r"^events\.out\.tfevents\.")
        first, *events = [fields(body) for body in records(file.read_bytes())]
        self.assertEqual(first[3], b"brain.Event:2")
        scalars = {}
        for event in events:
            value = fields(fields(event[5])[1])
            scalars[value[1].decode(), event[2]] = struct.unpack("<f", value[2])[0]
        for line in self.metrics():
            self.assertTrue(math.isclose(scalars["loss", line["step"]], line["loss"], rel_tol=1e-6))
            self.assertTrue(math.isclose(scalars["validation/loss", line["step"]], line["validation"]["loss"], rel_tol=1e-6))

    def test_compare_prints_the_figures_of_evaluate_side_by_side(self):
        out = self.folder / "compared.html"
        done = fovea("compare", self.folder / "one", self.folder / "deep/two", "--threads", 1, "--out", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("one", "deep/two"):
            report = json.loads(fovea("evaluate", self.folder / name, "--threads", 1, "--json").stdout)
            self.assertIn(f"{report['metrics']['loss']:.6g}", re.search(r"^loss .*", done.stdout, re.MULTILINE)[0])
        self.assertEqual(out.read_text().count('<section class="part"'), 2)
        alone = fovea("compare", self.folder / "one")
        self.assertEqual((alone.returncode, alone.stderr), (2, f"fovea: compare {self.folder / 'one'}: expected at least two RUNs\n"))
        nameless = fovea("compare", self.folder / "one", "")
        self.assertEqual((nameless.returncode, nameless.stderr), (2, "fovea: compare '': expected a path\n"))

    def test_compare_says_when_the_items_differ(self):
        trained = fovea("train", "pooling", "--set", "bags=40", "--epochs", 0, "--threads", 1, "--quiet", "--out", self.folder / "other")
        self.assertEqual(trained.returncode, 0, trained.stderr)
        self.addCleanup(shutil.rmtree, self.folder / "other")
        self.assertIn("different items", fovea("compare", self.folder / "one", self.folder / "other").stderr)


class Completion(unittest.TestCase):
    def complete(self, *words):
        script = ('source <("$FOVEA" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _fovea; printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script, "bash", *words], env={**os.environ, "FOVEA": str(COMMAND)}, text=True, stdout=subprocess.PIPE, check=True)
        return done.stdout.split()

    def test_bash_completes_verbs_systems_and_options(self):
        self.assertEqual(self.complete("fovea", "comp"), ["compare", "completion"])
        self.assertEqual(self.complete("fovea", "train", "bah"), ["bahdanau"])
        self.assertEqual(self.complete("fovea", "explain", "RUN", "--inp"), ["--input"])

    def test_every_verb_and_option_of_the_help_is_in_every_script_and_in_the_manual(self):
        verbs = re.findall(r"^  (\w+) ", fovea("--help").stdout.partition("Subcommands:")[2].partition("\n\n")[0], re.MULTILINE)
        texts = {what: fovea("completion", what).stdout.replace("\\-", "-") for what in ("bash", "zsh", "fish", "man")}
        for verb in verbs:
            options = re.findall(r"^  (?:-h,)?--([\w-]+)", fovea(verb, "--help").stdout, re.MULTILINE)
            for what, text in texts.items():
                self.assertIn(verb, text, what)
                for option in set(options) - {"help"}:
                    self.assertRegex(text, rf"(--|-l ){option}\b", f"{what}: {verb} --{option}")

    def test_another_shell_is_refused(self):
        self.assertEqual(fovea("completion", "tcsh").returncode, 2)


if __name__ == "__main__":
    unittest.main()
