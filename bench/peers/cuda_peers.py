"""Fovea's kernels on a CUDA device beside their peers, in one process: medians in milliseconds, forward and with backward.

    FOVEA_LIBRARY=build-cuda/lib/libfovea.so PYTHONPATH=python python3 bench/peers/cuda_peers.py [PART[:TEXT]…]

`dot:128,` measures the rows of the part `dot` whose name contains "128,". Each pair of rows also prints how far the two outputs are from each other. docs/performance-h200.md has a run.
"""

import sys
import time

import torch
import torch._dynamo
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import fovea

torch._dynamo.config.recompile_limit = 64  # a mask and a change of scores each
flex = torch.compile(flex_attention, dynamic=False)


def milliseconds(run, times):
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
    torch.cuda.synchronize()
    first = time.time() - start

    def both():
        for x in inputs:
            x.grad = None
        attend(*inputs).backward(gradient)

    with torch.no_grad():
        forward = milliseconds(lambda: attend(*inputs), times)
    text = f"{name}: forward {forward:.3f}, with backward {milliseconds(both, times):.3f}, first call {first:.1f} s"
    if expected is not None:
        text += f", {((output.double() - expected.double()).norm() / expected.double().norm()).item():.1e} from the row above"
    print(text, flush=True)
    return output.detach()


def random(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=True)


LENGTH, HEADS, CLIP = 4096, 16, 64


def by_distance(table):
    """FlexAttention's change of a score for relative positions, given the query: products with the table are made before, as ours are."""

    def change_of(query):
        products = query @ table.T / query.shape[-1] ** 0.5
        return lambda s, b, h, i, j: s + products[b, h, i, (j - i).clamp(-CLIP, CLIP) + CLIP]

    return change_of


def dot_rows(width):
    """(name, our score, our structure, FlexAttention's mask, its change of a score given the query) of the fused rows."""
    causal = lambda b, h, i, j: i >= j
    ids = torch.arange(LENGTH, device="cuda", dtype=torch.int32) // 600
    blocks = (torch.arange(32, device="cuda")[:, None] - torch.arange(32, device="cuda")).abs() % 5 < 2
    slopes = 2.0 ** -torch.arange(1, HEADS + 1, device="cuda")
    bias = torch.randn(HEADS, LENGTH, LENGTH, device="cuda")
    table = torch.randn(2 * CLIP + 1, width, device="cuda", dtype=torch.bfloat16)
    dot = fovea.Dot
    plain = lambda query: None
    yield "causal and window 512", dot(), fovea.Causal() & fovea.Window(512, -1), lambda b, h, i, j: (i >= j) & (i - j <= 512), plain
    yield "causal and documents of 600", dot(), fovea.Causal() & fovea.Documents(ids, ids), lambda b, h, i, j: (i >= j) & (ids[i] == ids[j]), plain
    yield "prefix of 1,000", dot(), fovea.Prefix(1000), lambda b, h, i, j: (i >= j) | (j < 1000), plain
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
            mask = create_block_mask(allowed, None, None, LENGTH, LENGTH, device="cuda")
            ours = row(name, inputs, lambda q, k, v: fovea.attend(q, k, v, score, structure=structure))
            row("  FlexAttention", inputs, lambda q, k, v: flex(q, k, v, score_mod=change(q), block_mask=mask), expected=ours)
        name = f"dot {width}, causal (libtorch's kernel)"
        if only in name:
            ours = row(name, inputs, lambda q, k, v: fovea.attend(q, k, v, structure=fovea.Causal()))
            row("  SDPA", inputs, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), expected=ours)


def long(_):
    inputs = [random(1, 8, 131072, 64, dtype=torch.bfloat16) for _ in range(3)]
    row("dot, window 1024, 131072 keys", inputs, lambda q, k, v: fovea.attend(q, k, v, structure=fovea.Causal() & fovea.Window(1024, -1)), 2)


def additive(_):
    inputs, weight = [random(4, 1, 512, 512) for _ in range(3)], random(512)
    eager = torch.compile(lambda q, k, v: torch.softmax((torch.tanh(q[:, :, :, None] + k[:, :, None]) * weight).sum(-1), -1) @ v)
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
    inputs = [torch.rand(1, 1, n, width, device="cuda", requires_grad=True) for n, width in ((16384, 3), (1000000, 3), (1000000, 1))]
    bandwidth = torch.tensor([0.1], device="cuda")
    with torch.no_grad():
        expected = gaussian_in_chunks(*inputs, 0.1)
        print(f"Gaussian, eager in chunks: forward {milliseconds(lambda: gaussian_in_chunks(*inputs, 0.1), 3):.3f}", flush=True)
    for kernel in ("gaussian", "laplace", "epanechnikov", "cauchy"):
        row(kernel, inputs, lambda q, k, v: fovea.attend(q, k, v, fovea.Kernel(kernel, bandwidth), fovea.KernelRatio()), 3,
            expected if kernel == "gaussian" else None)


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


def eager_top_k(query, key, value, k=32):
    scores = shifted_scores(query, key)
    largest, places = scores.topk(k, -1)
    return torch.zeros_like(scores).scatter(-1, places, largest.softmax(-1)).to(value.dtype) @ value


def eager_sigmoid(query, key, value):
    return (query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5).sigmoid() @ value


NORMALISERS = (
    ("sparsemax", fovea.Sparsemax(), sorted_sparsemax),
    ("1.5-entmax", fovea.Entmax(), sorted_entmax),
    ("top-k 32", fovea.TopK(32), eager_top_k),
    ("sigmoid", fovea.Sigmoid(), eager_sigmoid),
)


def normalisers_of(inputs, suffix, only):
    slopes = torch.full((inputs[0].shape[1],), 0.01, device="cuda")
    if only in f"softmax, ALiBi{suffix}":
        row(f"softmax, ALiBi{suffix}", inputs, lambda q, k, v: fovea.attend(q, k, v, fovea.Dot().alibi(slopes)))
    for name, normaliser, peer in NORMALISERS:
        if only not in name + suffix:
            continue
        ours = row(name + suffix, inputs, lambda q, k, v: fovea.attend(q, k, v, normaliser=normaliser))
        row("  eager", inputs, peer, expected=ours)


def normalisers(only):
    normalisers_of([random(4, 8, 2048, 64) for _ in range(3)], "", only)


def normalisers16(only):
    for width in (128, 64):
        inputs = [random(2, HEADS, LENGTH, width, dtype=torch.bfloat16) for _ in range(3)]
        normalisers_of(inputs, f", bfloat16 {width}", only)


def graph(_):
    nodes, edges, heads, width = 170_000, 1_160_000, 8, 32
    source, target = (torch.randint(0, nodes, (edges,), device="cuda") for _ in range(2))
    order = torch.argsort(target, stable=True)
    source, target = source[order], target[order]
    offsets = torch.zeros(nodes + 1, dtype=torch.int32, device="cuda")
    offsets[1:] = torch.bincount(target, minlength=nodes).cumsum(0)
    structure = fovea.Graph(offsets, source.int())
    inputs = [random(nodes, heads, 1), random(nodes, heads, 1), random(nodes, heads, width)]

    def scatter(query, key, value):
        scores = F.leaky_relu(query[target, :, 0] + key[source, :, 0], 0.2)
        largest = torch.full((nodes, heads), -1e30, device="cuda").index_reduce(0, target, scores.detach(), "amax")
        powers = (scores - largest[target]).exp()
        sums = torch.zeros(nodes, heads, device="cuda").index_add(0, target, powers)
        return torch.zeros(nodes, heads, width, device="cuda").index_add(0, target, (powers / sums[target])[..., None] * value[source])

    ours = row("graph, rank one", inputs, lambda q, k, v: fovea.attend(q, k, v, fovea.RankOne(), structure=structure))
    row("  scatter", inputs, scatter, expected=ours)


def decode(_):
    query, key, value = (torch.randn(32, heads, length, 128, device="cuda", dtype=torch.bfloat16) for heads, length in ((32, 1), (8, 8192), (8, 8192)))
    print(f"decode, soft cap: forward {milliseconds(lambda: fovea.attend(query, key, value, fovea.Dot().soft_cap(20.0)), 5):.3f}", flush=True)


if __name__ == "__main__":
    torch.manual_seed(0)
    parts = {part.__name__: part for part in (dot, long, additive, gaussian, normalisers, normalisers16, graph, decode)}
    for wanted in sys.argv[1:] or parts:
        name, _, only = wanted.partition(":")
        if name not in parts:
            sys.exit(f"{name}: no part; there are {', '.join(parts)}")
        parts[name](only)
