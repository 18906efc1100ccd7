"""Fovea's kernels on a CUDA device beside their peers, in one process: medians in milliseconds, forward and with backward.

    fovea bench --device cuda [--filter PART[:TEXT]]
    FOVEA_LIBRARY=build-cuda/lib/libfovea.so PYTHONPATH=python python3 bench/peers/cuda_peers.py [--json FILE] [PART[:TEXT]…]

`dot:128,` measures the rows of the part `dot` whose name contains "128,". Each pair of rows also prints how far the two outputs are from each other.
At the end a table has every row beside its peer, with a tick where the goal is reached. docs/performance-h200.md has a run.

`--try` runs every row once, small and on the processor, for a test of this file: its times say nothing.
"""

import argparse
import json
import sys
import time

import torch
import torch._dynamo
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

try:
    import fovea
except ImportError as error:
    sys.exit(f"{sys.executable} has no fovea ({error}): pip install ., or set PYTHONPATH and FOVEA_LIBRARY")

torch._dynamo.config.recompile_limit = 64  # a mask and a change of scores each

parser = argparse.ArgumentParser()
parser.add_argument("--json", metavar="FILE", help="write the rows there")
parser.add_argument("--device", default="cuda", help="cuda (default) or cuda:N")
parser.add_argument("--try", dest="trying", action="store_true", help="small, once, on the processor")
parser.add_argument("parts", nargs="*", metavar="PART[:TEXT]")
OPTIONS = parser.parse_args() if __name__ == "__main__" else parser.parse_args(["--try"])
SMALL = OPTIONS.trying
DEVICE = "cpu" if SMALL else OPTIONS.device
if not SMALL:
    if not torch.cuda.is_available():
        sys.exit(f"{sys.executable}: its torch {torch.__version__} sees no CUDA device")
    torch.cuda.set_device(torch.device(DEVICE).index or 0)
compiled = (lambda function, **_: function) if SMALL else torch.compile  # peers only; compiling takes minutes on a processor


def flex_in_operations(query, key, value, score_mod=None, block_mask=None):
    """What FlexAttention computes, which has no backward on a processor."""
    batch, head, i, j = (torch.arange(n).view([-1 if d == at else 1 for d in range(4)]) for at, n in enumerate((*query.shape[:3], key.shape[2])))
    scores = (query @ key.transpose(-1, -2)).float() / query.shape[-1] ** 0.5
    scores = score_mod(scores, batch, head, i, j) if score_mod else scores
    return scores.masked_fill(~block_mask.mask_mod(batch, head, i, j), float("-inf")).softmax(-1).to(value.dtype) @ value


flex = flex_in_operations if SMALL else torch.compile(flex_attention, dynamic=False)

ROWS = []  # of the table: name, milliseconds forward and with backward, and how far from the row above


def size(full, small):
    """A number of rows: as the goals have it, or for a trial."""
    return small if SMALL else full


def synchronize():
    if not SMALL:
        torch.cuda.synchronize()


def milliseconds(run, times):
    if SMALL:
        start = time.time()
        run()
        return 1e3 * (time.time() - start)
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    found = []
    for _ in range(times):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        found.append(start.elapsed_time(end))
    return sorted(found)[len(found) // 2]


def row(name, inputs, attend, times=5, expected=None):
    """Prints a row; returns the output, to compare the next with."""
    start = time.time()
    output = attend(*inputs)
    gradient = torch.randn_like(output)
    output.backward(gradient)
    synchronize()
    first = time.time() - start

    def both():
        for x in inputs:
            x.grad = None
        attend(*inputs).backward(gradient)

    with torch.no_grad():
        forward = milliseconds(lambda: attend(*inputs), times)
    keep(name, forward, milliseconds(both, times), None if expected is None else distance(output, expected), f"first call {first:.1f} s")
    return output.detach()


def distance(output, expected):
    return ((output.double() - expected.double()).norm() / expected.double().norm()).item()


def keep(name, forward, both=None, apart=None, more=""):
    """Prints a row and remembers it for the table."""
    ROWS.append({"row": name, "forward": forward, "with backward": both, "apart": apart})
    text = f"{name}: forward {forward:.3f}"
    if both is not None:
        text += f", with backward {both:.3f}"
    if more:
        text += f", {more}"
    if apart is not None:
        text += f", {apart:.1e} from the row above"
    print(text, flush=True)


def random(*shape, dtype=torch.float32):
    return torch.randn(*shape, device=DEVICE, dtype=dtype, requires_grad=True)


LENGTH, HEADS, CLIP = size(4096, 256), size(16, 2), size(64, 8)


def by_distance(table):
    """FlexAttention's change of a score for relative positions, given the query: products with the table are made before, as ours are."""

    def change_of(query):
        products = query @ table.T / query.shape[-1] ** 0.5
        return lambda s, b, h, i, j: s + products[b, h, i, (j - i).clamp(-CLIP, CLIP) + CLIP]

    return change_of


def dot_rows(width):
    """(name, our score, our structure, FlexAttention's mask, its change of a score given the query) of the fused rows."""
    causal = lambda b, h, i, j: i >= j
    ids = torch.arange(LENGTH, device=DEVICE, dtype=torch.int32) // size(600, 40)
    tiles = torch.arange(LENGTH // 128, device=DEVICE)
    blocks = (tiles[:, None] - tiles).abs() % 5 < 2
    slopes = 2.0 ** -torch.arange(1, HEADS + 1, device=DEVICE)
    bias = torch.randn(HEADS, LENGTH, LENGTH, device=DEVICE)
    table = torch.randn(2 * CLIP + 1, width, device=DEVICE, dtype=torch.bfloat16)
    dot = fovea.Dot
    plain = lambda query: None
    left = size(512, 32)
    yield "causal and window 512", dot(), fovea.Causal() & fovea.Window(left, -1), lambda b, h, i, j: (i >= j) & (i - j <= left), plain
    yield "causal and documents of 600", dot(), fovea.Causal() & fovea.Documents(ids, ids), lambda b, h, i, j: (i >= j) & (ids[i] == ids[j]), plain
    prefix = size(1000, 60)
    yield "prefix of 1,000", dot(), fovea.Prefix(prefix), lambda b, h, i, j: (i >= j) | (j < prefix), plain
    yield "blocks of 128, 2 of 5", dot(), fovea.Blocks(blocks, 128), lambda b, h, i, j: blocks[i // 128, j // 128], plain
    yield "causal, ALiBi", dot().alibi(slopes), fovea.Causal(), causal, lambda query: lambda s, b, h, i, j: s - slopes[h] * (i - j).abs()
    yield "causal, soft cap 20", dot().soft_cap(20.0), fovea.Causal(), causal, lambda query: lambda s, b, h, i, j: 20 * torch.tanh(s / 20)
    yield "causal, bias", dot().bias(bias), fovea.Causal(), causal, lambda query: lambda s, b, h, i, j: s + bias[h, i, j]
    yield f"causal, relative positions to {CLIP}", dot().relative(table, None, CLIP), fovea.Causal(), causal, by_distance(table)


def dot(only):
    for width in (128, 64):
        inputs = [random(2, HEADS, LENGTH, width, dtype=torch.bfloat16) for _ in range(3)]
        for name, score, structure, allowed, change in dot_rows(width):
            name = f"dot {width}, {name}"
            if only not in name:
                continue
            mask = create_block_mask(allowed, None, None, LENGTH, LENGTH, device=DEVICE)
            ours = row(name, inputs, lambda q, k, v: fovea.attend(q, k, v, score, structure=structure))
            row("  FlexAttention", inputs, lambda q, k, v: flex(q, k, v, score_mod=change(q), block_mask=mask), expected=ours)
        name = f"dot {width}, causal (libtorch's kernel)"
        if only in name:
            ours = row(name, inputs, lambda q, k, v: fovea.attend(q, k, v, structure=fovea.Causal()))
            row("  SDPA", inputs, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), expected=ours)


def long(_):
    inputs = [random(1, size(8, 2), size(131072, 512), 64, dtype=torch.bfloat16) for _ in range(3)]
    attend = lambda q, k, v: fovea.attend(q, k, v, structure=fovea.Causal() & fovea.Window(size(1024, 16), -1))
    row("dot, window 1024, 131072 keys", inputs, attend, 2)
    if not SMALL:
        for x in inputs:
            x.grad = None
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        attend(*inputs).sum().backward()
        extra = torch.cuda.max_memory_allocated() - before
        print(f"  extra memory {extra / (4 * inputs[0].nbytes):.2f} x (query + key + value + output)", flush=True)


def additive(_):
    width = size(512, 32)
    inputs, weight = [random(size(4, 2), 1, width, width) for _ in range(3)], random(width)
    eager = compiled(lambda q, k, v: torch.softmax((torch.tanh(q[:, :, :, None] + k[:, :, None]) * weight).sum(-1), -1) @ v)
    ours = row("additive", inputs, lambda q, k, v: fovea.attend(q, k, v, fovea.Additive(weight)))
    row("  compiled eager", inputs, eager, expected=ours)


def gaussian_in_chunks(query, key, value, bandwidth, rows=256):
    """The formula, some queries at a time: all pairs at once do not fit."""
    square = key.square().sum(-1)
    parts = []
    for q in query[0, 0].split(rows):
        distance = q.square().sum(-1, keepdim=True) - 2 * q @ key[0, 0].T + square[0, 0]
        parts.append((distance / (-2 * bandwidth ** 2)).softmax(-1) @ value[0, 0])
    return torch.cat(parts)[None, None]


def gaussian(_):
    inputs = [torch.rand(1, 1, n, width, device=DEVICE, requires_grad=True) for n, width in ((size(16384, 64), 3), (size(1000000, 500), 3), (size(1000000, 500), 1))]
    bandwidth = torch.tensor([0.1], device=DEVICE)
    with torch.no_grad():
        expected = gaussian_in_chunks(*inputs, 0.1)
        eager = milliseconds(lambda: gaussian_in_chunks(*inputs, 0.1), 3)
    for kernel in ("gaussian", "laplace", "epanechnikov", "cauchy"):
        row(kernel, inputs, lambda q, k, v: fovea.attend(q, k, v, fovea.Kernel(kernel, bandwidth), fovea.KernelRatio()), 3,
            expected if kernel == "gaussian" else None)
        if kernel == "gaussian":
            keep("  eager in chunks", eager)


def shifted_scores(query, key):
    """The scores of every pair, their row's largest at 0, in single precision at least."""
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    scores = scores.float() if scores.dtype in (torch.bfloat16, torch.float16) else scores
    return scores - scores.amax(-1, keepdim=True)


def sorted_sparsemax(query, key, value):
    scores = shifted_scores(query, key)
    largest = scores.sort(-1, descending=True)[0]
    sums, rank = largest.cumsum(-1), torch.arange(1, scores.shape[-1] + 1, device=scores.device)
    count = (1 + rank * largest > sums).sum(-1, keepdim=True)
    return (scores - (sums.gather(-1, count - 1) - 1) / count).clamp_min(0).to(value.dtype) @ value


def sorted_entmax(query, key, value):
    """1.5-entmax (Peters et al. 2019, algorithm 2): of halved scores, the threshold from the means of the largest and of their squares."""
    scores = shifted_scores(query, key) / 2
    largest = scores.sort(-1, descending=True)[0]
    rank = torch.arange(1, scores.shape[-1] + 1, device=scores.device)
    mean, squares = largest.cumsum(-1) / rank, largest.square().cumsum(-1) / rank
    threshold = mean - ((1 - rank * (squares - mean.square())) / rank).clamp_min(0).sqrt()
    count = (threshold <= largest).sum(-1, keepdim=True)
    return (scores - threshold.gather(-1, count - 1)).clamp_min(0).square().to(value.dtype) @ value


def eager_top_k(query, key, value, k=size(32, 8)):
    scores = shifted_scores(query, key)
    largest, places = scores.topk(k, -1)
    return torch.zeros_like(scores).scatter(-1, places, largest.softmax(-1)).to(value.dtype) @ value


def eager_sigmoid(query, key, value):
    return (query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5).sigmoid() @ value


NORMALISERS = (
    ("sparsemax", fovea.Sparsemax(), sorted_sparsemax),
    ("1.5-entmax", fovea.Entmax(), sorted_entmax),
    ("top-k 32", fovea.TopK(size(32, 8)), eager_top_k),
    ("sigmoid", fovea.Sigmoid(), eager_sigmoid),
)


def normalisers_of(inputs, suffix, only):
    slopes = torch.full((inputs[0].shape[1],), 0.01, device=DEVICE)
    if only in f"softmax, ALiBi{suffix}":
        row(f"softmax, ALiBi{suffix}", inputs, lambda q, k, v: fovea.attend(q, k, v, fovea.Dot().alibi(slopes)))
    for name, normaliser, peer in NORMALISERS:
        if only not in name + suffix:
            continue
        ours = row(name + suffix, inputs, lambda q, k, v: fovea.attend(q, k, v, normaliser=normaliser))
        row("  eager", inputs, peer, expected=ours)


def normalisers(only):
    normalisers_of([random(size(4, 1), size(8, 2), size(2048, 48), 64) for _ in range(3)], "", only)


def normalisers16(only):
    for width in (128, 64):
        inputs = [random(size(2, 1), HEADS, size(LENGTH, 48), width, dtype=torch.bfloat16) for _ in range(3)]
        normalisers_of(inputs, f", bfloat16 {width}", only)


def graph(_):
    nodes, edges, heads, width = size(170_000, 60), size(1_160_000, 300), 8, 32
    source, target = (torch.randint(0, nodes, (edges,), device=DEVICE) for _ in range(2))
    order = torch.argsort(target, stable=True)
    source, target = source[order], target[order]
    offsets = torch.zeros(nodes + 1, dtype=torch.int32, device=DEVICE)
    offsets[1:] = torch.bincount(target, minlength=nodes).cumsum(0)
    structure = fovea.Graph(offsets, source.int())
    inputs = [random(nodes, heads, 1), random(nodes, heads, 1), random(nodes, heads, width)]

    def scatter(query, key, value):
        scores = F.leaky_relu(query[target, :, 0] + key[source, :, 0], 0.2)
        largest = torch.full((nodes, heads), -1e30, device=DEVICE).index_reduce(0, target, scores.detach(), "amax")
        powers = (scores - largest[target]).exp()
        sums = torch.zeros(nodes, heads, device=DEVICE).index_add(0, target, powers)
        return torch.zeros(nodes, heads, width, device=DEVICE).index_add(0, target, (powers / sums[target])[..., None] * value[source])

    ours = row("graph, rank one", inputs, lambda q, k, v: fovea.attend(q, k, v, fovea.RankOne(), structure=structure))
    row("  scatter", inputs, scatter, expected=ours)


def decode(_):
    shapes = ((32, 1), (8, size(8192, 64)), (8, size(8192, 64)))
    query, key, value = (torch.randn(size(32, 2), heads, length, 128, device=DEVICE, dtype=torch.bfloat16) for heads, length in shapes)
    alibi = torch.full((32,), 0.01, device=DEVICE)
    for name, score, structure in (
        ("soft cap", fovea.Dot().soft_cap(20.0), fovea.Dense()),
        ("ALiBi", fovea.Dot().alibi(alibi), fovea.Causal("bottom_right")),
        ("window of all", fovea.Dot(), fovea.Causal("bottom_right") & fovea.Window(size(8192, 64), -1)),
    ):
        keep(f"decode, {name}", milliseconds(lambda: fovea.attend(query, key, value, score, structure=structure), 5))
    copied = torch.empty_like(key)  # reads the keys and writes as much: what reading keys and values moves
    keep("  as many bytes copied", milliseconds(lambda: copied.copy_(key), 5))


def single(_):
    """Float32 without TF32 (libtorch's default) beside the roof of its multiply-adds."""
    length = size(2048, 64)
    inputs = [random(size(4, 1), 8, length, 64) for _ in range(3)]
    row("dot, dense, float32", inputs, lambda q, k, v: fovea.attend(q, k, v, fovea.Dot().soft_cap(1e4)))
    row("  SDPA", inputs, lambda q, k, v: F.scaled_dot_product_attention(q, k, v))


def small(_):
    """What a small call costs the processor: many in a row."""
    inputs = [torch.randn(2, 8, 64, 64, device=DEVICE, dtype=torch.bfloat16) for _ in range(3)]
    calls = size(500, 2)

    def many(attend):
        for _ in range(calls):
            attend(*inputs)

    for name, attend in (
        ("small causal call", lambda q, k, v: fovea.attend(q, k, v, structure=fovea.Causal())),
        ("  SDPA", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)),
        ("small causal call, soft cap", lambda q, k, v: fovea.attend(q, k, v, fovea.Dot().soft_cap(20.0), structure=fovea.Causal())),
    ):
        keep(name, milliseconds(lambda: many(attend), 5) / calls)


def roofs(_):
    """What the device can do: billions of multiply-adds, exponentials and bytes a second."""
    n = size(8192, 64)
    for name, dtype in (("tensor cores, bfloat16", torch.bfloat16), ("multiply-adds, float32", torch.float32)):
        a, b = (torch.randn(n, n, device=DEVICE, dtype=dtype) for _ in range(2))
        print(f"roof, {name}: {n ** 3 / milliseconds(lambda: a @ b, 5) / 1e6:.0f} G a second", flush=True)
    x = torch.randn(size(1 << 22, 1 << 10), device=DEVICE)  # stays in the cache
    print(f"roof, exponentials: {x.numel() / milliseconds(x.exp, 9) / 1e6:.0f} G a second", flush=True)
    x, y = (torch.empty(size(1 << 30, 1 << 10), device=DEVICE, dtype=torch.uint8) for _ in range(2))
    print(f"roof, bandwidth of a copy: {2 * x.numel() / milliseconds(lambda: y.copy_(x), 5) / 1e6:.0f} GB a second", flush=True)


# Goals: how many times as fast as the row below, forward and with backward, by the start of a row's name. The first that fits counts.
GOALS = (
    ("dot 128, causal (libtorch's kernel)", 0.97, 0.97),
    ("dot 64, causal (libtorch's kernel)", 0.97, 0.97),
    ("dot 128", 1.15, 1.0),
    ("dot 64", 1.15, 1.0),
    ("additive", 4, 4),
    ("gaussian", 40, None),
    ("sparsemax", 10, None),
    ("1.5-entmax", 10, None),
    ("top-k", 10, None),
    ("sigmoid", 10, None),
    ("graph", 20, 12),
    ("decode", 0.75, None),
)


def table():
    """Each row beside the peer that follows it, in Markdown."""
    lines = ["| work | Fovea, forward | with backward | peer | peer, forward | with backward | times as fast | goal |", "|---|---|---|---|---|---|---|---|"]
    shown = lambda x: "" if x is None else f"{x:.3g}"
    for n, ours in enumerate(ROWS):
        if ours["row"].startswith(" "):
            continue
        # Rows of one kind may share a peer, which follows the last of them.
        peer = next((r for r in ROWS[n + 1 :] if r["row"].startswith(" ")), None) if ours["row"].startswith("decode") else None
        if peer is None and n + 1 < len(ROWS) and ROWS[n + 1]["row"].startswith(" "):
            peer = ROWS[n + 1]
        cells = [ours["row"], shown(ours["forward"]), shown(ours["with backward"])]
        if peer is None:
            lines.append("| " + " | ".join([*cells, "", "", "", "", ""]) + " |")
            continue
        times = [peer[key] / ours[key] if peer[key] and ours[key] else None for key in ("forward", "with backward")]
        goals = next((g[1:] for g in GOALS if ours["row"].startswith(g[0])), (None, None))
        ticks = " / ".join(("✓" if t >= g else "✗") + f" {g:g}" for t, g in zip(times, goals) if t is not None and g is not None and not SMALL)
        cells += [peer["row"].strip(), shown(peer["forward"]), shown(peer["with backward"]), " / ".join(f"{t:.2f}" for t in times if t is not None), ticks]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


PARTS = {part.__name__: part for part in (roofs, dot, single, small, long, additive, gaussian, normalisers, normalisers16, graph, decode)}


def main():
    torch.manual_seed(0)
    for wanted in OPTIONS.parts or PARTS:
        name, _, only = wanted.partition(":")
        if name not in PARTS:
            sys.exit(f"{name}: no part; there are {', '.join(PARTS)}")
        PARTS[name](only)
    print("\n" + table())
    if OPTIONS.json:
        with open(OPTIONS.json, "w") as file:
            json.dump(ROWS, file, indent=1)


if __name__ == "__main__":
    main()
