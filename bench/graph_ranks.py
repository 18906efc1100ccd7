#!/usr/bin/env python3
"""A graph attention network on a large generated graph, by one process and by ranks. Prints the table of docs/distributed.md.

    FOVEA_LIBRARY=build/lib/libfovea.so PYTHONPATH=python .venv/bin/python bench/graph_ranks.py [--nodes 2000000] [--ranks 4] [--steps 2]

Node i sees itself and five others: four of them within 500 numbers of its own, and one anywhere for every twentieth node. The class is that of a
stretch of nodes, the features are noise around a vector of the class. Edges, features and classes follow from the node's number, so a rank makes its own
alone. Two layers of GAT (4 heads of width 8, then the classes) are trained by plain gradient descent. Memory is the largest resident memory of
a process beyond that after its imports.
"""

import argparse
import json
import os
import resource
import socket
import subprocess
import sys
import time

CLASSES, FEATURES, NEIGHBOURS = 8, 32, 5


def numbers(nodes, salt):
    """A number from 0 to 2^31 for each node: a hash of it."""
    import torch

    x = (nodes + 1) * 2654435761 + salt * 40503
    for _ in range(2):
        x = ((x ^ (x >> 16)) * 73244475) & 0x7FFFFFFF
    return torch.bitwise_and(x, 0x7FFFFFFF)


def rows_of(nodes, count):
    """The edges into some nodes, in CSR."""
    import torch

    sees = [nodes]
    for i in range(NEIGHBOURS):
        near = (nodes + numbers(nodes, i) % 1001 - 500).remainder(count)
        anywhere = numbers(nodes, 100 + i) % count
        sees.append(torch.where((nodes % 20 == 0) & torch.tensor(i == 0), anywhere, near))
    offsets = torch.arange(nodes.numel() + 1, dtype=torch.int32) * (NEIGHBOURS + 1)
    return offsets, torch.stack(sees, 1).flatten().int()


def items_of(nodes, count):
    import torch

    classes = nodes * 64 // count % CLASSES
    features = torch.empty(nodes.numel(), FEATURES)
    for column in range(FEATURES):
        features[:, column] = numbers(nodes, 1000 + column) / 2**30 - 1 + (classes == column)
    return features, classes


def work(given):
    """One process or rank: prints its losses, seconds and memory."""
    import torch
    import torch.distributed as dist

    import fovea
    import fovea.distributed as fd

    ranks, rank = given.ranks, int(os.environ["RANK"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    first, second = fovea.nn.GATConv(FEATURES, 8, heads=4), fovea.nn.GATConv(32, CLASSES)
    parameters = [*first.parameters(), *second.parameters()]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    nodes = torch.arange(given.nodes * rank // ranks, given.nodes * (rank + 1) // ranks)
    owner = ((torch.arange(given.nodes) + 1) * ranks - 1).div(given.nodes, rounding_mode="floor").to(torch.int8)
    part = fd.GraphPart(nodes, *rows_of(nodes, given.nodes), owner)
    del owner
    x, classes = items_of(nodes, given.nodes)
    losses, begin = [], time.monotonic()
    for _ in range(given.steps):
        middle = torch.nn.functional.elu(first((part.halo(x), x), part.graph))
        scores = second((part.halo(middle), middle), part.graph)
        loss = torch.nn.functional.cross_entropy(scores, classes, reduction="sum") / given.nodes
        loss.backward()
        total = loss.detach().clone()
        dist.all_reduce(total)
        losses.append(total.item())
        for p in parameters:
            dist.all_reduce(p.grad)
            p.data -= 5.0 * p.grad
            p.grad = None
        del middle, scores, loss
    seconds = (time.monotonic() - begin) / max(1, given.steps)
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    halo = sum(part.received)
    print(json.dumps({"losses": losses, "seconds": seconds, "MiB": memory, "nodes": nodes.numel(), "halo": halo}))
    dist.destroy_process_group()


def start(ranks, given):
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        port = some.getsockname()[1]
    # Memory that is given back is then given back at once, and does not count as needed.
    variables = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_ARENA_MAX": "1", "OMP_WAIT_POLICY": "passive", "MASTER_ADDR": "127.0.0.1",
                 "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo", "WORLD_SIZE": str(ranks)}
    started = [subprocess.Popen([sys.executable, __file__, "--work", "--nodes", str(given.nodes), "--ranks", str(ranks), "--steps", str(given.steps)],
                                stdout=subprocess.PIPE, text=True, env={**os.environ, **variables, "RANK": str(rank)}) for rank in range(ranks)]
    return [json.loads(one.communicate()[0]) for one in started]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2_000_000)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given)
        return
    alone, together = start(1, given)[0], start(given.ranks, given)
    most = max(one["MiB"] for one in together)
    print(f"{given.nodes} nodes, {(NEIGHBOURS + 1) * given.nodes} edges, {given.steps} steps")
    print(f"one process: {alone['MiB']:.0f} MiB, losses {alone['losses']}")
    print(f"{given.ranks} ranks: at most {most:.0f} MiB each ({100 * most / alone['MiB']:.0f} %), at most {max(one['halo'] for one in together)} nodes of "
          f"others, losses {together[0]['losses']}")


if __name__ == "__main__":
    main()
