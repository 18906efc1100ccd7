"""Fovea's kernels on a CUDA device beside their peers, in one process: medians in milliseconds, forward and with backward.

    FOVEA_LIBRARY=build-cuda/lib/libfovea.so PYTHONPATH=python python3 bench/peers/cuda_peers.py [PART…]

Each pair of rows also prints how far the two outputs are from each other. docs/performance-h200.md has a run.
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


LENGTH, HEADS = 4096, 16


def dot_rows():
    """(name, our score, our structure, FlexAttention's mask, its change of a score) of the fused rows."""
    causal = lambda b, h, i, j: i >= j
    ids = torch.arange(LENGTH, device="cuda", dtype=torch.int32) // 600
    blocks = (torch.arange(32, device="cuda")[:, None] - torch.arange(32, device="cuda")).abs() % 5 < 2
    slopes = 2.0 ** -torch.arange(1, HEADS + 1, device="cuda")
    bias = torch.randn(HEADS, LENGTH, LENGTH, device="cuda")
    dot = fovea.Dot
    yield "causal and window 512", dot(), fovea.Causal() & fovea.Window(512, -1), lambda b, h, i, j: (i >= j) & (i - j <= 512), None
    yield "causal and documents of 600", dot(), fovea.Causal() & fovea.Documents(ids, ids), lambda b, h, i, j: (i >= j) & (ids[i] == ids[j]), None
    yield "prefix of 1,000", dot(), fovea.Prefix(1000), lambda b, h, i, j: (i >= j) | (j < 1000), None
    yield "blocks of 128, 2 of 5", dot(), fovea.Blocks(blocks, 128), lambda b, h, i, j: blocks[i // 128, j // 128], None
    yield "causal, ALiBi", dot().alibi(slopes), fovea.Causal(), causal, lambda s, b, h, i, j: s - slopes[h] * (i - j).abs()
    yield "causal, soft cap 20", dot().soft_cap(20.0), fovea.Causal(), causal, lambda s, b, h, i, j: 20 * torch.tanh(s / 20)
    yield "causal, bias", dot().bias(bias), fovea.Causal(), causal, lambda s, b, h, i, j: s + bias[h, i, j]


def dot():
    for width in (128, 64):
        inputs = [random(2, HEADS, LENGTH, width, dtype=torch.bfloat16) for _ in range(3)]
        for name, score, structure, allowed, change in dot_rows():
            mask = create_block_mask(allowed, None, None, LENGTH, LENGTH, device="cuda")
            ours = row(f"dot {width}, {name}", inputs, lambda q, k, v: fovea.attend(q, k, v, score, structure=structure))
            row("  FlexAttention", inputs, lambda q, k, v: flex(q, k, v, score_mod=change, block_mask=mask), expected=ours)
        ours = row(f"dot {width}, causal (libtorch's kernel)", inputs, lambda q, k, v: fovea.attend(q, k, v, structure=fovea.Causal()))
        row("  SDPA", inputs, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), expected=ours)


def long():
    inputs = [random(1, 8, 131072, 64, dtype=torch.bfloat16) for _ in range(3)]
    row("dot, window 1024, 131072 keys", inputs, lambda q, k, v: fovea.attend(q, k, v, structure=fovea.Causal() & fovea.Window(1024, -1)), 2)


def additive():
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


def gaussian():
    inputs = [torch.rand(1, 1, n, width, device="cuda", requires_grad=True) for n, width in ((16384, 3), (1000000, 3), (1000000, 1))]
    bandwidth = torch.tensor([0.1], device="cuda")
    with torch.no_grad():
        expected = gaussian_in_chunks(*inputs, 0.1)
        print(f"Gaussian, eager in chunks: forward {milliseconds(lambda: gaussian_in_chunks(*inputs, 0.1), 3):.3f}", flush=True)
    for kernel in ("gaussian", "laplace", "epanechnikov", "cauchy"):
        row(kernel, inputs, lambda q, k, v: fovea.attend(q, k, v, fovea.Kernel(kernel, bandwidth), fovea.KernelRatio()), 3,
            expected if kernel == "gaussian" else None)


def sorted_sparsemax(query, key, value):
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    scores = scores - scores.amax(-1, keepdim=True)
    largest = scores.sort(-1, descending=True)[0]
    sums, rank = largest.cumsum(-1), torch.arange(1, scores.shape[-1] + 1, device="cuda")
    count = (1 + rank * largest > sums).sum(-1, keepdim=True)
    return (scores - (sums.gather(-1, count - 1) - 1) / count).clamp_min(0) @ value


def normalisers():
    inputs = [random(4, 8, 2048, 64) for _ in range(3)]
    ours = row("sparsemax", inputs, lambda q, k, v: fovea.attend(q, k, v, normaliser=fovea.Sparsemax()))
    row("  sorted eager", inputs, sorted_sparsemax, expected=ours)
    for normaliser in (fovea.Entmax(), fovea.TopK(32), fovea.Sigmoid()):
        row(type(normaliser).__name__, inputs, lambda q, k, v: fovea.attend(q, k, v, normaliser=normaliser))
    slopes = torch.full((8,), 0.01, device="cuda")
    row("softmax, ALiBi", inputs, lambda q, k, v: fovea.attend(q, k, v, fovea.Dot().alibi(slopes)))


def graph():
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


def decode():
    query, key, value = (torch.randn(32, heads, length, 128, device="cuda", dtype=torch.bfloat16) for heads, length in ((32, 1), (8, 8192), (8, 8192)))
    print(f"decode, soft cap: forward {milliseconds(lambda: fovea.attend(query, key, value, fovea.Dot().soft_cap(20.0)), 5):.3f}", flush=True)


if __name__ == "__main__":
    torch.manual_seed(0)
    parts = (dot, long, additive, gaussian, normalisers, graph, decode)
    for part in [part for part in parts if not sys.argv[1:] or part.__name__ in sys.argv[1:]]:
        part()
