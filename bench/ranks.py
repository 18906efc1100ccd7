#!/usr/bin/env python3
"""What it costs that several processes train one RUN. Prints the table of docs/distributed.md.

    bench/ranks.py build/bin/fovea [--turns 5] [--epochs 2] [transformer --set batch=64 …]

Each turn trains every way once, in the same minute of the same machine. Figures are medians over turns of ratios within a turn: wall time, and
processor time (user and system) of all processes together, which other programs on the machine disturb less.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

SYSTEM = ["transformer", "--set", "batch=64", "--set", "beam=1"]
WAYS = {
    "one process, two threads": ["--threads", "2"],
    "one process, one thread": ["--threads", "1"],
    "one process, one thread, --parts 4": ["--threads", "1", "--parts", "4"],
    "two ranks, ordered sums": ["--workers", "2"],
    "two ranks, sums in any order": ["--workers", "2", "--sums", "any"],
    "four ranks, ordered sums": ["--workers", "4"],
}
RATIOS = [
    ("ordered parts against an undivided batch, one thread", "one process, one thread", "one process, one thread, --parts 4"),
    ("ordered sums against sums in any order, two ranks", "two ranks, sums in any order", "two ranks, ordered sums"),
    ("two ranks of one thread against one process of two", "one process, two threads", "two ranks, ordered sums"),
    ("four ranks of one thread against two such ranks", "two ranks, ordered sums", "four ranks, ordered sums"),
]


def measured(command, system, way, epochs, folder):
    """Seconds of wall time and of processor time of some epochs, and of a start with one epoch before them."""
    seconds = []
    for count in (1, 1 + epochs):
        out = Path(folder) / "run"
        shutil.rmtree(out, ignore_errors=True)
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run([command, "train", *system, *way, "--epochs", str(count), "--quiet", "--out", out], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        seconds.append((time.monotonic() - begin, used))
    (start, start_used), (all_of_it, all_used) = seconds
    return {"wall": all_of_it - start, "processor": all_used - start_used}


def started(command, way, folder):
    """Seconds from the start of the command to the end of a training of nothing."""
    begin = time.monotonic()
    out = Path(folder) / "nothing"
    subprocess.run([command, "train", "word-sum", *way, "--epochs", "0", "--quiet", "--overwrite", "--out", out], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=2)
    given, system = parser.parse_known_args()
    system = system or SYSTEM
    turns = []
    starts = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(given.turns):
            alone, together = (started(given.command, way, folder) for way in (["--threads", "1"], ["--workers", "2"]))
            starts.append(together - alone)
            turns.append({name: measured(given.command, system, way, given.epochs, folder) for name, way in WAYS.items()})
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}, {given.turns} turns, {' '.join(system)}, {given.epochs} epochs")
    print("| what | wall time | processor time |\n|---|---|---|")
    for words, before, after in RATIOS:
        wall, used = (statistics.median(turn[before][kind] / turn[after][kind] for turn in turns) for kind in ("wall", "processor"))
        print(f"| throughput of {words} | {100 * wall:.0f} % | {100 * used:.0f} % |")
    print(f"| start of two ranks beyond one process | {statistics.median(starts):.2f} s | |")


if __name__ == "__main__":
    main()
