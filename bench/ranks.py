#!/usr/bin/env python3
"""What it costs that several processes train one RUN. Prints the tables of docs/distributed.md.

    bench/ranks.py build/bin/fovea [--turns 3] [--epochs 2] [--only WORDS …] [transformer --set batch=64 …]

Each turn trains every way once, in the same minute of the same machine. A figure is the time of some epochs with their validation: that of the same
training of no epoch is taken off. Ratios are medians over turns of ratios within a turn: of wall time, and of processor time (user and system) of all
processes together, which other programs on the machine disturb less. --only measures the rows whose words have one of these in them.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

SYSTEM = ["transformer", "--set", "batch=64", "--set", "beam=1"]
UNDIVIDED_2, UNDIVIDED_1 = ["--threads", "2"], ["--threads", "1"]
PARTS_4 = ["--threads", "1", "--parts", "4"]
ONE_RANK = ["--workers", "1", "--threads", "2"]
TWO_RANKS, FOUR_RANKS = ["--workers", "2"], ["--workers", "4"]
# Words, what is compared with, and what is measured.
THROUGHPUT = [
    ("two ranks of one thread against one rank of two threads, both in 4 parts", ONE_RANK, TWO_RANKS),
    ("four ranks of one thread against two such ranks", TWO_RANKS, FOUR_RANKS),
    ("the division: 4 parts against an undivided batch, one thread", UNDIVIDED_1, PARTS_4),
    ("the division: 4 parts against an undivided batch, two threads", UNDIVIDED_2, ONE_RANK),
    ("two ranks, 4 parts: --sums ordered, in shared memory, against any, through c10d", [*TWO_RANKS, "--sums", "any"], TWO_RANKS),
    ("two ranks of one thread in 2 parts against an undivided batch of two threads", UNDIVIDED_2, [*TWO_RANKS, "--parts", "2"]),
]
START, SAVES = "start of two ranks beyond one process", "a save with four ranks against one process"
OFTEN, NEVER = ["--checkpoint", "0.001"], ["--checkpoint", "100000"]  # before every step, and at no step


def seconds_of(command, folder, *arguments):
    """Wall time of a training, and the seconds of processor that it and its ranks took."""
    before, begin = os.times(), time.monotonic()
    subprocess.run([command, "train", *arguments, "--quiet", "--overwrite", "--out", Path(folder) / "run"], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return time.monotonic() - begin, after.children_user + after.children_system - before.children_user - before.children_system


def trained(command, system, way, epochs, folder):
    """The same of some epochs alone: a training of nothing, which reads and evaluates too, is taken off."""
    nothing, all_of_it = (seconds_of(command, folder, *system, *way, "--epochs", str(count)) for count in (0, epochs))
    return {"wall": all_of_it[0] - nothing[0], "processor": all_of_it[1] - nothing[1]}


def spread(numbers, form):
    return f"{form.format(statistics.median(numbers))} ({form.format(min(numbers))} to {form.format(max(numbers))})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--only", action="append", default=[])
    given, system = parser.parse_known_args()
    system = system or SYSTEM
    rows = [row for row in THROUGHPUT if any(words in row[0] for words in given.only or [""])]
    start, saves = (any(words in row for words in given.only or [""]) for row in (START, SAVES))
    ways = {tuple(way) for _, *both in rows for way in both}
    if saves:
        ways |= {(*way, *often) for way in (UNDIVIDED_1, FOUR_RANKS) for often in (OFTEN, NEVER)}
    turns, starts = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(given.turns):
            if start:
                two, one = (seconds_of(given.command, folder, "word-sum", *way, "--epochs", "0")[0] for way in (TWO_RANKS, UNDIVIDED_1))
                starts.append(two - one)
            turns.append({way: trained(given.command, system, way, given.epochs, folder) for way in sorted(ways)})
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}, {given.turns} turns, {' '.join(system)}, {given.epochs} epochs")
    print("| throughput | by wall time: median (least to most) | by processor time |\n|---|---|---|")
    for words, before, after in rows:
        wall, used = (spread([100 * turn[tuple(before)][kind] / turn[tuple(after)][kind] for turn in turns], "{:.0f} %") for kind in ("wall", "processor"))
        print(f"| {words} | {wall} | {used} |")
    if start:
        print(f"| {START} | {spread(starts, '{:.2f} s')} | |")
    for words, way in (("one process", UNDIVIDED_1), ("four ranks", FOUR_RANKS)) if saves else ():
        added = [turn[(*way, *OFTEN)]["wall"] - turn[(*way, *NEVER)]["wall"] for turn in turns]
        print(f"| {SAVES}: what {words} take longer if they save before every step | {spread(added, '{:.2f} s')} | |")


if __name__ == "__main__":
    main()
