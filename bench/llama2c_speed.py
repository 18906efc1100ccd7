"""Seconds a token of `fovea predict` and of llama2.c's `run`, in turns.

    bench/llama2c_speed.py --llama RUN_PROGRAM --checkpoint stories260K.bin --tokenizer tok512.bin [--threads 1] [--rounds 5]

RUN_PROGRAM is llama2.c's run.c as its Makefile builds it: `make runfast` with -march=native for one thread, `make runomp` for more. Both write the same
greedy text. With one thread the clock counts the seconds of the processor, which neighbours on a busy machine do not change; with more it is the clock on
the wall. Each time is the difference of a long and a short run, so that starting and loading count for nothing.
"""

import argparse
import os
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONG, SHORT, TEXTS = 300, 20, 50


def seconds(commands, threads):
    """Of the commands, one after another; each is its arguments and what it reads."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    for arguments, text in commands:
        subprocess.run(arguments, input=text, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if threads > 1:
        return time.perf_counter() - wall
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--llama", "--checkpoint", "--tokenizer"):
        options.add_argument(name, required=True)
    options.add_argument("--fovea", default=str(ROOT / "build/bin/fovea"))
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = ["--set", f"checkpoint={given.checkpoint}", "--set", f"tokenizer={given.tokenizer}", "--set", "sentences=20", "--epochs", "0"]
        subprocess.run([given.fovea, "train", "next-word", *settings, "--out", f"{folder}/run"], check=True, capture_output=True)

        def theirs(tokens):
            return seconds([([given.llama, given.checkpoint, "-z", given.tokenizer, "-t", "0", "-n", str(tokens)], "")] * TEXTS, given.threads)

        def ours(tokens):
            command = [given.fovea, "predict", f"{folder}/run", "--threads", str(given.threads), "--set", f"length={tokens}"]
            return seconds([(command, "\n" * TEXTS)], given.threads)

        ratios = []
        for _ in range(given.rounds):
            llama, fovea = (which(LONG) - which(SHORT) for which in (theirs, ours))
            scale = 1e6 / (TEXTS * (LONG - SHORT))
            ratios.append(llama / fovea)
            print(f"microseconds a token: llama2.c {llama * scale:.1f}, fovea {fovea * scale:.1f}; ratio {ratios[-1]:.2f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}, threads: {given.threads}")


main()
