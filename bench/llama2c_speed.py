"""Tokens a second of `fovea predict` and of llama2.c's `run`, in turns.

    bench/llama2c_speed.py --llama RUN_PROGRAM --checkpoint stories260K.bin --tokenizer tok512.bin [--threads 1] [--rounds 5]

RUN_PROGRAM is llama2.c's run.c as its Makefile builds it: `make runfast` with -march=native for one thread, `make runomp` for more. Both write the same
greedy text. Times are by the clock on the wall; with one thread also in seconds of the processor, which neighbours on a busy machine change less. Each time is
the difference of a long and a short run, so that starting and loading count for nothing.
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
    """Of the commands, one after another: on the wall and of the processor. A command is its arguments and what it reads."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    for arguments, text in commands:
        subprocess.run(arguments, input=text, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, check=True, env=environment)
    wall = time.perf_counter() - wall
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def summary(clock, ratios, threads):
    return f"{clock}: median ratio {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}, threads: {threads}"


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

        walls, processors = [], []
        for _ in range(given.rounds):
            llama, fovea = ([long - short for long, short in zip(which(LONG), which(SHORT))] for which in (theirs, ours))
            tokens = TEXTS * (LONG - SHORT)
            walls.append(llama[0] / fovea[0])
            processors.append(llama[1] / fovea[1])
            print(f"tokens a second on the wall: llama2.c {tokens / llama[0]:.0f}, fovea {tokens / fovea[0]:.0f}; ratio {walls[-1]:.2f}", flush=True)
    print(summary("wall", walls, given.threads))
    if given.threads == 1:
        print(summary("processor", processors, given.threads))


main()
