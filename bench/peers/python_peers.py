"""Times Fovea beside the peers that live in Python: compiled eager, FlexAttention, torch-geometric, entmax, KeOps, torch-struct,
transformers.

    python bench/peers/python_peers.py [--filter GLOB] [--json FILE] [--threads N] [--rounds N] [--processor-time]

The protocol is that of `fovea bench`: both sides in one process on equal threads, checked against each other, then timed in turns;
medians, and ratios taken within a round. A peer that is not installed is named and left out. Where other programs use the machine,
--processor-time counts what this process took of it, all threads together, and not what it waited.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import statistics
import time
from typing import Callable

import torch
from decoding import paged_rows, transformers_rows, window_rows
from row import Row, Run, have, normal, passes, runner

import fovea

def additive_rows() -> list[Row]:
    """Eager additive attention through torch.compile."""
    rows = []
    for name, shape in (("additive/32x50/dense", (32, 1, 50, 256)), ("additive/8x512/dense", (1, 8, 512, 64))):
        batch, heads, length, width = shape
        q, k, v = (normal(*shape, seed=s) for s in (1, 2, 3))
        w = normal(heads, width, seed=6)
        g = normal(*shape, seed=4).detach()

        def eager(q, k, v, w):
            scores = torch.einsum("bhlse,he->bhls", torch.tanh(q.unsqueeze(-2) + k.unsqueeze(-3)), w)
            return scores.softmax(-1) @ v

        compiled = torch.compile(eager)
        rows += passes(name, "compiled eager", (q, k, v, w), g,
                       lambda q=q, k=k, v=v, w=w: fovea.attend(q, k, v, score=fovea.Additive(w)),
                       lambda q=q, k=k, v=v, w=w, f=compiled: f(q, k, v, w))
    return rows


def flex_rows() -> list[Row]:
    """FlexAttention, compiled, with a block mask: forward only, as libtorch offers on the CPU."""
    flex = have("torch.nn.attention.flex_attention")
    if flex is None:
        return []
    length, window, document, stride = 4096, 256, 512, 128
    q, k, v = (normal(1, 8, length, 64, seed=s).detach() for s in (1, 2, 3))
    ids = torch.arange(length, dtype=torch.int32) // document
    patterns = {
        "causal": (fovea.Causal(), lambda b, h, i, j: j <= i),
        "window": (fovea.Window(window - 1, 0), lambda b, h, i, j: (j <= i) & (i - j < window)),
        "documents": (fovea.Documents(ids, ids), lambda b, h, i, j: i // document == j // document),
        "strided": (fovea.Strided(stride), lambda b, h, i, j: (j <= i) & ((i - j <= stride) | ((i - j) % stride == 0))),
    }
    compiled = torch.compile(flex.flex_attention)
    rows = []
    for pattern, (structure, mask_mod) in patterns.items():
        block_mask = flex.create_block_mask(mask_mod, None, None, length, length, device="cpu")
        rows.append(Row(f"dot/{length}/{pattern}/forward", "FlexAttention",
                        runner(False, (), None, lambda s=structure: fovea.attend(q, k, v, structure=s)),
                        runner(False, (), None, lambda m=block_mask: compiled(q, k, v, block_mask=m))))
    cap = 20.0
    rows.append(Row(f"dot/{length}/soft-cap/forward", "FlexAttention",
                    runner(False, (), None, lambda: fovea.attend(q, k, v, score=fovea.Dot().soft_cap(cap))),
                    runner(False, (), None, lambda: compiled(
                        q, k, v, score_mod=lambda s, b, h, i, j: cap * torch.tanh(s / cap)))))
    return rows


def graph_rows() -> list[Row]:
    """torch-geometric's GATConv: its attention, given projected rows and the halves of the scores; and the layer whole, beside
    the same layer with Fovea's operator: projection, halves, attention, bias."""
    geometric = have("torch_geometric.nn")
    if geometric is None:
        return []
    rows = []
    for size, nodes, edges, width, bounds in (("100k-700k-8x32", 100_000, 700_000, 32, (20, 18)),
                                              ("cora-8x8", 2708, 13_264, 8, (15, 10))):
        heads, inputs = 8, 64
        generator = torch.Generator().manual_seed(11)
        target = torch.randint(nodes, (edges,), generator=generator).sort().values
        source = torch.randint(nodes, (edges,), generator=generator)
        offsets = torch.searchsorted(target, torch.arange(nodes + 1)).to(torch.int32)
        columns = source.to(torch.int32)
        edge_index = torch.stack([source, target])
        torch.manual_seed(7)
        layer = geometric.GATConv(inputs, width, heads=heads, add_self_loops=False)
        x = normal(nodes, inputs, seed=1)
        g = normal(nodes, heads * width, seed=4).detach()
        structure = fovea.Graph(offsets, columns)

        halves = (normal(nodes, heads, seed=2), normal(nodes, heads, seed=3))  # of the targets, of the sources
        values = normal(nodes, heads, width, seed=5)

        def attention(halves=halves, values=values, structure=structure):
            query, key = (half.unsqueeze(-1) for half in halves)
            return fovea.attend(query, key, values, score=fovea.RankOne(), structure=structure)

        def their_attention(layer=layer, halves=halves, values=values, e=edge_index):
            alpha = layer.edge_updater(e, alpha=(halves[1], halves[0]), edge_attr=None, size=None)
            return layer.propagate(e, x=(values, values), alpha=alpha, size=None)

        rows += passes(f"rank-one/{size}/graph", "GATConv's attention", (*halves, values), g.view(-1, heads, width), attention,
                       their_attention, at_least=bounds, tolerance=1e-3)

        def ours(layer=layer, x=x, structure=structure, width=width):
            # a·(W h) = (W a)·h: the halves of the scores are a narrow product of their own.
            both = torch.cat([layer.att_dst, layer.att_src])  # [2, heads, width]
            narrow = (layer.lin.weight.view(heads, width, -1) * both.unsqueeze(-1)).sum(2)  # [2, heads, inputs]
            query, key = (x @ half.t() for half in narrow)
            out = fovea.attend(query.unsqueeze(-1), key.unsqueeze(-1), layer.lin(x).view(-1, heads, width),
                               score=fovea.RankOne(), structure=structure)
            return out.reshape(-1, heads * width) + layer.bias

        # Scores that are rounded differently may lie on different sides of the leaky ReLU's corner: of millions one or two do, and
        # the gradients of their rows differ by a hundredth. The rows above have equal scores and are held to a thousandth.
        leaves = (x, layer.lin.weight, layer.att_src, layer.att_dst, layer.bias)
        rows += passes(f"gat-layer/{size}/graph", "GATConv", leaves, g, ours,
                       lambda layer=layer, x=x, e=edge_index: layer(x, e), at_least=bounds, tolerance=2e-2)
    return rows


def threshold_rows() -> list[Row]:
    """The entmax package's sparsemax and 1.5-entmax."""
    entmax = have("entmax")
    if entmax is None:
        return []
    q, k, v = (normal(1, 8, 1024, 64, seed=s) for s in (1, 2, 3))
    g = normal(1, 8, 1024, 64, seed=4).detach()
    rows = []
    for name, function, normaliser in (("sparsemax", entmax.sparsemax, fovea.Sparsemax()),
                                       ("entmax15", entmax.entmax15, fovea.Entmax(1.5))):
        rows += passes(f"dot-{name}/1024/dense", "entmax", (q, k, v), g,
                       lambda n=normaliser: fovea.attend(q, k, v, normaliser=n),
                       lambda f=function: f(q @ k.transpose(-2, -1) / math.sqrt(64), dim=-1) @ v)
    return rows


def kernel_rows() -> list[Row]:
    """KeOps' lazy Gaussian: 2,000 queries, 100,000 points in three dimensions."""
    keops = have("pykeops.torch")
    if keops is None:
        return []
    q, k, v = normal(2000, 3, seed=1), normal(100_000, 3, seed=2), normal(100_000, 1, seed=3)
    g = normal(2000, 1, seed=4).detach()
    bandwidth = torch.ones(1)

    def theirs():
        square = ((keops.LazyTensor(q[:, None, :]) - keops.LazyTensor(k[None, :, :])) ** 2).sum(-1)
        weights = (-square / 2).exp()
        return (weights @ v) / weights.sum(1)

    def ours():
        out = fovea.attend(q[None, None], k[None, None], v[None, None],
                           score=fovea.Kernel("gaussian", bandwidth), normaliser=fovea.KernelRatio())
        return out[0, 0]

    return passes("kernel-gaussian/2000x100000/dense", "KeOps", (q, k, v), g, ours, theirs, tolerance=2e-3)


def marginals_rows() -> list[Row]:
    """torch-struct's distributions, whose marginals are gradients of log Z by autograd."""
    struct = have("torch_struct")
    if struct is None:
        return []
    items, positions, words = 64, 50, 25
    unary, pairwise, arcs = normal(items, positions, 2, seed=1), normal(2, 2, seed=2), normal(items, words, words, seed=3)

    def chain():
        steps = pairwise.t() + unary[:, 1:, :, None]  # theirs: [items, step, next, previous]
        steps = torch.cat([steps[:, :1] + unary[:, :1, None, :], steps[:, 1:]], 1)
        parts = struct.LinearChainCRF(steps).marginals
        return torch.cat([parts[:, :1].sum(2), parts.sum(3)], 1)

    # Theirs needs autograd for the marginals alone: there is no forward pass without it. Its float32 gradient of the pairs is 6e-4
    # from the float64 one, ours 7e-6: hence the tolerance.
    def row(name, leaves, gradient, ours, theirs):
        return Row(name, "torch-struct", runner(True, leaves, gradient, ours), runner(True, leaves, gradient, theirs), 1e-3, at_least=10)

    return [
        row("marginals/64 chains of 50/forward+backward", (unary, pairwise), normal(items, positions, 2, seed=4).detach(),
            lambda: fovea.chain_marginals(unary, pairwise).states, chain),
        row("marginals/64 trees of 25/forward+backward", (arcs,), normal(items, words, words, seed=5).detach(),
            lambda: fovea.tree_marginals(arcs).arcs, lambda: struct.DependencyCRF(arcs).marginals),
    ]


def tiny_rows() -> list[Row]:
    """A call so small that it is the way to the kernel and back, beside libtorch's fused attention."""
    q, k, v = (normal(1, 1, 4, 8, seed=s) for s in (1, 2, 3))
    g = normal(1, 1, 4, 8, seed=4).detach()
    theirs = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)
    return [
        *passes("tiny call/1x1x4x8/dense", "SDPA", (q, k, v), g, lambda: fovea.attend(q, k, v), theirs, at_least=(22 / 25, None)),
        *passes("tiny call by SDPA's name/1x1x4x8/dense", "SDPA", (q, k, v), g,
                lambda: fovea.scaled_dot_product_attention(q, k, v), theirs),
    ]


FAMILIES = (tiny_rows, window_rows, paged_rows, transformers_rows, additive_rows, flex_rows, graph_rows, threshold_rows, kernel_rows, marginals_rows)


def largest_error(ours, theirs) -> float:
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        worst = max(worst, ((a - b).abs().max() / b.abs().max().clamp_min(1e-30)).item())
    return worst


def timed(run: Run, repeats: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(repeats):
        run()
    return (clock() - start) / repeats


def measure(row: Row, rounds: int, clock: Callable[[], float]) -> dict:
    error = largest_error(row.ours(), row.theirs())
    if not error <= row.tolerance:
        raise SystemExit(f"{row.name}: differs from {row.peer} by {error:.2g} of the largest value, allowed {row.tolerance:.2g}")
    repeats = [max(1, math.ceil(2e-3 / max(timed(run, 1, clock), 1e-7))) for run in (row.ours, row.theirs)]
    ours, theirs = [], []
    for i in range(rounds):  # changing who goes first
        for side in ((0, 1) if i % 2 == 0 else (1, 0)):
            (theirs if side else ours).append(timed(row.theirs if side else row.ours, repeats[side], clock))
    ratio = statistics.median(t / o for o, t in zip(ours, theirs))
    return {"name": row.name, "peer": row.peer, "ms": 1e3 * statistics.median(ours),
            "peer_ms": 1e3 * statistics.median(theirs), "x_peer": ratio, "largest_error": error,
            "at_least": row.at_least, "met": None if row.at_least is None else ratio >= row.at_least}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="*", help="rows whose name matches this glob")
    parser.add_argument("--json", help="write the results here")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--processor-time", action="store_true", help="of this process, instead of time that passes")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    clock = time.process_time if options.processor_time else time.perf_counter
    results = []
    print(f"torch {torch.__version__}, {options.threads} threads on both sides, {options.rounds} rounds, {'processor time' if options.processor_time else 'wall time'}")
    print(f"{'row':<48} {'peer':<18} {'ms':>9} {'peer ms':>9} {'x_peer':>8}")
    for family in FAMILIES:
        for row in family():
            if not fnmatch.fnmatch(row.name, options.filter):
                continue
            result = measure(row, options.rounds, clock)
            results.append(result)
            mark = "" if result["met"] is None else (" \u2713" if result["met"] else " \u2717") + f" >= {row.at_least:g}"
            print(f"{row.name:<48} {row.peer:<18} {result['ms']:>9.3f} {result['peer_ms']:>9.3f} {result['x_peer']:>8.2f}{mark}",
                  flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"version": 1, "torch": torch.__version__, "threads": options.threads, "processor_time": options.processor_time, "rows": results}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
