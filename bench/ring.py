#!/usr/bin/env python3
"""Attention over ranks against one process, forward and backward. Prints the table of docs/distributed.md.

    FOVEA_LIBRARY=build/lib/libfovea.so PYTHONPATH=python .venv/bin/python bench/ring.py [--length 8192] [--turns 3]

In each turn one process of two threads and two ranks of one thread compute the same causal call (8 heads of width 64). Figures are medians over turns
of ratios within a turn: wall time, and processor time of all processes, which other programs on the machine disturb less; and the largest resident
memory of a process beyond that of the same process before the call.
"""

import argparse
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import time


def work(length):
    """One process or rank: prints its seconds and its memory."""
    import torch
    import torch.distributed as dist

    import fovea
    import fovea.distributed as fd

    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    torch.set_num_threads(2 // ranks if ranks < 3 else 1)
    if ranks > 1:
        dist.init_process_group("gloo")
    rows = [torch.randn(1, 8, length // ranks, 64, requires_grad=True) for _ in range(3)]
    small = [t[:, :, :256].detach().clone().requires_grad_() for t in rows]

    def step(tensors):
        if ranks > 1:
            fd.attend(*tensors, structure=fovea.Causal(), layout="zigzag").sum().backward()
        else:
            fovea.attend(*tensors, structure=fovea.Causal()).sum().backward()

    step(small)
    if ranks > 1:
        dist.barrier()
    before = resource.getrusage(resource.RUSAGE_SELF)
    begin = time.monotonic()
    step(rows)
    after = resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # Query, key and value are there before the call, and belong to what a rank needs.
    held = sum(t.numel() * t.element_size() for t in rows) / 1024
    print(json.dumps({"wall": time.monotonic() - begin, "processor": used, "memory": after.ru_maxrss - before.ru_maxrss + held}))


def start(ranks, length):
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        port = some.getsockname()[1]
    # Memory that is given back is then given back at once, and does not count as needed.
    variables = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_ARENA_MAX": "1", "OMP_WAIT_POLICY": "passive"}
    variables.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    if ranks > 1:
        variables["WORLD_SIZE"] = str(ranks)
    started = [subprocess.Popen([sys.executable, __file__, "--work", "--length", str(length)], stdout=subprocess.PIPE, text=True,
                                env={**os.environ, **variables, "RANK": str(rank)}) for rank in range(ranks)]
    found = [json.loads(one.communicate()[0]) for one in started]
    return {"wall": max(f["wall"] for f in found), "processor": sum(f["processor"] for f in found), "memory": max(f["memory"] for f in found)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.length)
        return
    turns = [(start(1, given.length), start(2, given.length)) for _ in range(given.turns)]
    ratio = {kind: statistics.median(one[kind] / two[kind] for one, two in turns) for kind in ("wall", "processor")}
    memory = statistics.median(two["memory"] / one["memory"] for one, two in turns)
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}, {given.turns} turns, {given.length} rows, causal, forward and backward")
    print(f"throughput of two ranks of one thread against one process of two: {100 * ratio['wall']:.0f} % by wall time, "
          f"{100 * ratio['processor']:.0f} % by processor time; memory of a rank {100 * memory:.0f} %")


if __name__ == "__main__":
    main()
