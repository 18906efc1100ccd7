#!/usr/bin/env python3
"""Times the rows of two builds in turns: is any row slower than before?

    ninja -C build timed_rows
    bench/turns.py BEFORE/bin/timed_rows build/bin/timed_rows [--rows 'dot/*'] [--rounds 15] [--cores 2,3] [--within SECONDS] [--json FILE]

Both builds of a row run on one core with one thread, one after the other, and the next round starts with the other build. A round gives a ratio of
processor times, after / before. A row's figure is the median of its ratios. Its interval holds the median of all possible rounds with a probability
of 95 % (order statistics). A row is slower where the whole interval is above 1 + NOISE; such rows are measured once more in new processes, and are
listed where they are slower again. Exit status: 1 if there are any.
"""

import argparse
import fnmatch
import json
import math
import os
import queue
import statistics
import subprocess
import sys
import threading
import time

NOISE = 0.03  # of one build against a copy of itself


class Build:
    def __init__(self, program, core):
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {core})
        )

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.process.args[0]} ended at '{line}'")
        return float(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def interval(values):
    """Of the median, with a probability of at least 95 %: order statistics of a fair coin."""
    ordered, n = sorted(values), len(values)
    below, tail = 0, 0.5**n
    while tail + math.comb(n, below + 1) * 0.5**n <= 0.025:
        below += 1
        tail += math.comb(n, below) * 0.5**n
    return ordered[below], ordered[n - 1 - below]


def measured(builds, row, rounds):
    for build in builds:
        build.ask(row)
    seconds = ([], [])
    for n in range(rounds):
        for side in (0, 1) if n % 2 == 0 else (1, 0):
            seconds[side].append(builds[side].ask("time"))
    ratios = [after / before for before, after in zip(*seconds)]
    low, high = interval(ratios)
    before, after = (1e3 * statistics.median(side) for side in seconds)
    return {"row": row, "before_ms": before, "after_ms": after, "ratio": statistics.median(ratios), "low": low, "high": high}


HEAD = "| row | before, ms | after, ms | after / before | 95 % |\n|---|---|---|---|---|"


def as_line(r):
    return f"| {r['row']} | {r['before_ms']:.4g} | {r['after_ms']:.4g} | {r['ratio']:.3f} | {r['low']:.3f} to {r['high']:.3f} |"


def measure_all(programs, rows, rounds, cores, end):
    """One row at a time on each core, in new processes for each row, printed as they end. No row begins after `end`."""
    waiting, results, failures = queue.Queue(), {}, []
    print(HEAD)
    for row in rows:
        waiting.put(row)

    def work(core):
        while not failures and time.monotonic() < end:
            try:
                row = waiting.get_nowait()
            except queue.Empty:
                return
            builds = [Build(program, core) for program in programs]
            try:
                results[row] = measured(builds, row, rounds)
                print(as_line(results[row]), flush=True)
            except (RuntimeError, BrokenPipeError) as error:
                failures.append(f"{row}: {error}")
            finally:
                for build in builds:
                    build.end()

    workers = [threading.Thread(target=work, args=(core,)) for core in cores]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        sys.exit("\n".join(failures))
    return [results[row] for row in rows if row in results]


def is_slower(result):
    return result["low"] > 1 + NOISE


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rows", default="*", help="glob on the names of rows")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cores", default=None, help="numbers of cores, joined by commas; all that the process may use")
    parser.add_argument("--within", type=float, default=math.inf, help="seconds after which no row begins")
    parser.add_argument("--json", default=None, help="also write the figures to this file")
    given = parser.parse_args()
    if given.rounds < 6:
        parser.error(f"--rounds: {given.rounds}, expected at least 6: fewer have no interval of 95 %")
    programs = [given.before, given.after]
    cores = [int(core) for core in given.cores.split(",")] if given.cores else sorted(os.sched_getaffinity(0))
    listed = [subprocess.run([p, "--list"], check=True, capture_output=True, text=True).stdout.split("\n") for p in programs]
    rows = [row for row in listed[1] if row and row in listed[0] and fnmatch.fnmatch(row, given.rows)]
    end = time.monotonic() + given.within
    results = measure_all(programs, rows, given.rounds, cores, end)
    again = [r["row"] for r in results if is_slower(r)]
    if again:
        print("\nOnce more, those that were slower:\n")
    slower = [r for r in measure_all(programs, again, given.rounds, cores, math.inf) if is_slower(r)] if again else []
    new = len([row for row in listed[1] if row and row not in listed[0]])
    print(f"\n{len(results)} of {len(rows)} rows on {len(cores)} cores, {given.rounds} rounds; {new} new rows are not in the older build.")
    print(f"Slower twice: {', '.join(r['row'] for r in slower) or 'none'}")
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"rows": results, "slower": slower}, file, indent=1)
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
