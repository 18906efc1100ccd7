#!/usr/bin/env python3
"""A cost model of work that is divided among ranks: what it predicts, and how far it is from what 1 to 4 ranks take here.

    bench/scaling.py                                                                               # the tables of docs/scaling.md
    FOVEA_LIBRARY=build/lib/libfovea.so PYTHONPATH=python .venv/bin/python bench/scaling.py --validate   # measures, and compares

A step of a rank takes max(computing, moving) where both go on at once, and their sum where one waits for the other:

    computing = FLOPs / (ranks * rate)                     rate: what a rank reaches on such work; of a graph also bytes / memory bandwidth
    moving    = messages * latency + bytes / bandwidth     of one rank

    data      bytes = 2 (n - 1) / n * 4 * parameters; messages = 2 (n - 1). Half of it goes on while backward runs.
    sequence  bytes = (n - 1) * 6 * 4 * width * rows / n: keys and values in both passes, and their gradients back; all of it goes on at once.
    graph     bytes = 4 * 4 * width * halo for each layer: out, and gradients back, sent and received; nothing goes on at once.

--validate compares wall time, and the processor time of a rank, which other programs on the machine disturb less. In processor time a message costs
what a rank computes to send it, not what it waits, and nothing hides anything.
"""

import argparse
import json
import math
import os
import socket
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass


@dataclass
class Machine:
    name: str
    rate: float  # FLOP/s of a rank
    latency: float  # seconds of a message
    bandwidth: float  # bytes/s of a rank, each way
    memory: float = math.inf  # bytes/s of a rank's own memory
    cores: int = 0  # that all ranks share; 0: each rank has its own
    hides: int = 1  # 0: what goes on at once counts twice

    def computing(self, flops, ranks):
        busy = max(1.0, ranks / self.cores) if self.cores else 1.0
        return flops * busy / (ranks * self.rate)

    def moving(self, count, size):
        return count * self.latency + size / self.bandwidth


@dataclass
class Data:
    flops: float
    parameters: float

    def seconds(self, machine, n):
        computing = machine.computing(self.flops, n)
        moving = 0 if n == 1 else machine.moving(2 * (n - 1), 8 * self.parameters * (n - 1) / n)
        return computing + max(0.0, moving - hidden(machine, n) * computing / 3)  # backward is two thirds, its second half hides


@dataclass
class Sequence:
    rows: int
    heads: int
    width: int
    causal: bool = True
    piece: int = 1024

    @property
    def flops(self):  # two products forward, five backward
        return 14 * self.heads * self.width * self.rows**2 / (2 if self.causal else 1)

    def seconds(self, machine, n):
        computing = machine.computing(self.flops, n)
        if n == 1:
            return computing
        own = self.rows / n
        messages = (n - 1) * 6 * max(1, own / self.piece)
        moving = machine.moving(messages, (n - 1) * 6 * 4 * self.heads * self.width * own)
        return max(computing, moving) if hidden(machine, n) else computing + moving


@dataclass
class Graph:
    nodes: int
    degree: int
    width: int
    layers: int
    halo: float = 0.05  # nodes of other ranks that a rank sees, per node of its own, at 4 ranks

    @property
    def flops(self):  # a projection and the sums over edges, forward and backward
        return self.layers * 3 * self.nodes * (2 * self.width**2 + 4 * self.degree * self.width)

    @property
    def read(self):  # bytes: the features of the neighbours, forward and backward
        return self.layers * 3 * 4 * self.nodes * self.degree * self.width

    def seconds(self, machine, n):
        computing = max(machine.computing(self.flops, n), self.read / n / machine.memory)
        if n == 1:
            return computing
        # The border of a part is its surface: of a contiguous numbering it does not shrink with the part.
        halo = min(self.nodes * (n - 1) / n, self.halo * self.nodes / 4)
        return computing + self.layers * machine.moving(2 * (n - 1), 4 * 4 * self.width * halo)


def hidden(machine, n):
    """Whether a rank's transfers go on while it computes: they need a core, which ranks that share all cores do not leave."""
    return 0 if machine.cores and n >= machine.cores else machine.hides


WORK = {
    "data: Transformer base, 65 M weights, 25,000 tokens a step": Data(6 * 65e6 * 25e3, 65e6),
    "data: Transformer base, 400,000 tokens a step": Data(6 * 65e6 * 400e3, 65e6),
    "sequence: 131,072 rows, 8 heads of 64, causal": Sequence(131_072, 8, 64),
    "sequence: 1,048,576 rows": Sequence(1_048_576, 8, 64),
    "graph: 100 M nodes, 15 neighbours, width 128, 2 layers": Graph(100_000_000, 15, 128, 2),
}
# What a rank reaches is an assumption, here and in the page: 16 cores of 60 GFLOP/s in float32 and 100 GB/s; two fifths of an H200's 989 TFLOP/s in
# bfloat16, and half of its 4.8 TB/s; four fifths of a link.
MACHINES = [
    Machine("16 cores, 100 Gb/s", 16 * 60e9, 20e-6, 0.8 * 12.5e9, 100e9),
    Machine("16 cores, 400 Gb/s", 16 * 60e9, 10e-6, 0.8 * 50e9, 100e9),
    Machine("H200, 100 Gb/s", 0.4 * 989e12, 20e-6, 0.8 * 12.5e9, 0.5 * 4.8e12),
    Machine("H200, 400 Gb/s", 0.4 * 989e12, 10e-6, 0.8 * 50e9, 0.5 * 4.8e12),
]
RANKS = [8, 16, 32, 64, 128, 256, 512, 1024]


def efficiency(work, machine, n):
    return work.seconds(machine, 1) / (n * work.seconds(machine, n))


def predict():
    for machine in MACHINES:
        print(f"\n| {machine.name}: of n times the speed of one | " + " | ".join(str(n) for n in RANKS) + " | pays up to |")
        print("|---|" + "---|" * (len(RANKS) + 1))
        for name, work in WORK.items():
            shares = [efficiency(work, machine, n) for n in RANKS]
            paying = [n for n, share in zip(RANKS, shares) if share >= 0.5]
            print(f"| {name} | " + " | ".join(f"{100 * share:.0f} %" for share in shares) + f" | {max(paying) if paying else 'fewer than 8'} |")


def timed(call, turns=5):
    """Wall time of a call, and the processor time of a rank: the mean of all."""
    import torch
    import torch.distributed as dist

    wall, used = [], []
    for _ in range(turns):
        dist.barrier()
        begin, before = time.monotonic(), time.process_time()
        call()
        dist.barrier()
        wall.append(time.monotonic() - begin)
        of_all = torch.tensor(time.process_time() - before, dtype=torch.float64)
        dist.all_reduce(of_all)
        used.append(of_all.item() / dist.get_world_size())
    return {"wall": statistics.median(wall), "processor": statistics.median(used)}


def work_of_rank():
    """One rank: times messages, and a step of each kind; rank 0 prints them."""
    import torch
    import torch.distributed as dist

    import fovea
    import fovea.distributed as fd

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    n, rank = dist.get_world_size(), dist.get_rank()
    out = {"barrier": timed(lambda: None, 21)}
    if n > 1:
        for size in (1, 1 << 20, 1 << 23):
            both = torch.zeros(n * (size // n or 1))
            out[f"exchange {size}"] = timed(lambda both=both: dist.all_to_all_single(torch.empty_like(both), both))
    torch.manual_seed(0)
    layers = [torch.nn.Linear(768, 768) for _ in range(6)]
    x = torch.randn(1024 // n, 768)

    def data_step():
        y = x
        for layer in layers:
            y = layer(y).relu()
        y.sum().backward()
        if n > 1:
            flat = torch.cat([p.grad.flatten() for layer in layers for p in layer.parameters()])
            dist.all_reduce(flat)

    rows = [torch.randn(1, 8, 4096 // (2 * n) * 2, 64, requires_grad=True) for _ in range(3)]

    def sequence_step():
        if n > 1:
            fd.attend(*rows, structure=fovea.Causal(), layout="zigzag").sum().backward()
        else:
            fovea.attend(*rows, structure=fovea.Causal()).sum().backward()

    nodes, degree = 60_000, 15
    draw = torch.Generator().manual_seed(0)
    near = torch.randint(-300, 301, (nodes, degree), generator=draw)
    columns = (torch.arange(nodes)[:, None] + near).remainder(nodes).flatten()
    graph = fovea.Graph(torch.arange(nodes + 1) * degree, columns.int())
    part = fd.GraphPart.of(graph, fd.partition(graph, n))
    features = torch.randn(part.nodes.numel(), 64)
    convolutions = [fovea.nn.GATConv(64, 16, heads=4) for _ in range(2)]

    def graph_step():
        y = features
        for layer in convolutions:
            y = layer((part.halo(y), y), part.graph)
        y.sum().backward()

    out["halo"] = sum(part.received)
    for name, step in (("data", data_step), ("sequence", sequence_step), ("graph", graph_step)):
        step()
        out[name] = timed(step)
    if rank == 0:
        print(json.dumps(out))
    dist.destroy_process_group()


def run(ranks):
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        port = some.getsockname()[1]
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo", "WORLD_SIZE": str(ranks), "OMP_WAIT_POLICY": "passive"}
    started = [subprocess.Popen([sys.executable, __file__, "--work"], stdout=subprocess.PIPE, text=True, env={**os.environ, **variables, "RANK": str(rank)})
               for rank in range(ranks)]
    return json.loads([one.communicate()[0] for one in started][0])


def here(found, kind):
    """The machine as two ranks see it in that kind of time."""
    barrier, *exchanges = (found[2][name][kind] for name in ("barrier", "exchange 1", f"exchange {1 << 20}", f"exchange {1 << 23}"))
    bandwidth = 4 * ((1 << 23) - (1 << 20)) / 2 / (exchanges[2] - exchanges[1])
    shared = {"cores": len(os.sched_getaffinity(0))} if kind == "wall" else {"hides": 0}
    return Machine(kind, 0, max(1e-6, exchanges[0] - barrier), bandwidth, **shared)


def validate():
    """Latency and bandwidth from exchanges of two ranks, rates from one rank; then what 1 to 4 ranks take against what the model says."""
    found = {n: run(n) for n in (1, 2, 3, 4)}
    machines = [here(found, kind) for kind in ("wall", "processor")]
    said = "; ".join(f"by {m.name} time latency {1e6 * m.latency:.0f} us, bandwidth {m.bandwidth / 1e9:.2f} GB/s of a rank each way" for m in machines)
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}: {said}")
    kinds = {"data": Data(6 * 6 * 768 * 768 * 1024, 6 * (768 * 768 + 768)), "sequence": Sequence(4096, 8, 64), "graph": Graph(60_000, 15, 64, 2)}
    print("| work | ranks | wall time | model | | processor time of a rank | model | |\n|---|---|---|---|---|---|---|---|")
    for name, work in kinds.items():
        if isinstance(work, Graph):
            work.halo = 4 * found[4]["halo"] / work.nodes
        for n in found:
            cells = []
            for machine in machines:
                machine.rate = work.flops / found[1][name][machine.name]
                measured, model = found[n][name][machine.name], work.seconds(machine, n)
                cells.append(f"{1e3 * measured:.1f} ms | {1e3 * model:.1f} ms | {100 * (model / measured - 1):+.0f} %")
            print(f"| {name} | {n} | {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--validate", action="store_true", help="measure on this machine, which should have nothing else to do")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    work_of_rank() if given.work else validate() if given.validate else predict()


if __name__ == "__main__":
    main()
