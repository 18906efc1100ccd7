"""On a CUDA device: structures joined by | and ~ in fused kernels, pages read through their table, and both recorded into graphs."""

import pytest
import torch

import fovea

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

EXPRESSIONS = {
    "streaming": fovea.Causal() & (fovea.Window(60, 0) | fovea.First(4)),
    "first": fovea.First(70),
    "beyond a window": ~fovea.Window(30, 30) & fovea.Causal(),
    "not streaming": ~(fovea.Causal() & (fovea.Window(60, 0) | fovea.First(4))),
    "nothing": ~fovea.Dense(),
    "blocks or window": fovea.Blocks(torch.rand(5, 5, generator=torch.Generator().manual_seed(1)) > 0.5, 64) | fovea.Window(3, 3),
}


def moved(structure):
    return structure._changed(lambda part: fovea.Blocks(part.mask.cuda(), part.size) if isinstance(part, fovea.Blocks) else part)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("normaliser", [fovea.Softmax(), fovea.Sparsemax()], ids=["softmax", "sparsemax"])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_are_fused_and_agree_with_float64_on_the_cpu(name, normaliser, dtype):
    made = torch.Generator().manual_seed(3)
    rows = [torch.randn(1, heads, n, 64, generator=made).to(dtype) for heads, n in ((4, 300), (2, 310), (2, 310))]
    results = []
    for device, kind, strict in (("cuda", dtype, True), ("cpu", torch.float64, False)):
        inputs = [x.to(device, kind).requires_grad_() for x in rows]
        structure = moved(EXPRESSIONS[name]) if device == "cuda" else EXPRESSIONS[name]
        out = fovea.attend(*inputs, normaliser=normaliser, structure=structure, strict=strict)
        results.append([x.detach().double().cpu() for x in (out, *torch.autograd.grad(out.double().square().sum(), inputs))])
    bound = {torch.float64: 1e-9, torch.float32: 1e-4, torch.bfloat16: 5e-2}[dtype]
    for ours, theirs in zip(*results):
        assert (ours - theirs).norm() <= bound * theirs.norm() + 1e-12


def pages(dtype, queries=1, width=64, length=900, size=16):
    """A step of decoding on the device: pools with NaN where no key is, a table with anything past the keys."""
    made = torch.Generator().manual_seed(5)
    lengths = torch.tensor([length, 1, 0, length // 2])
    columns = -(-length // size)
    table = torch.randperm(4 * columns, generator=made).view(4, columns)
    pools = [torch.full((4 * columns, size, 2, width), torch.nan, dtype=dtype) for _ in range(2)]
    for pool in pools:
        for item, count in enumerate(lengths):
            for first in range(0, count, size):
                held = min(size, int(count) - first)
                pool[table[item, first // size], :held] = torch.randn(held, 2, width, generator=made).to(dtype)
    table[lengths[:, None] <= torch.arange(columns) * size] = -1
    query = torch.randn(4, 8, queries, width, generator=made).to(dtype)
    return query.cuda(), [pool.cuda() for pool in pools], table.cuda(), lengths.cuda()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("structure", [fovea.Dense(), fovea.Causal("bottom_right") & (fovea.Window(100, 0) | fovea.First(4))], ids=["dense", "streaming"])
@pytest.mark.parametrize("queries", [1, 4])
def test_a_step_reads_pages_through_the_table(dtype, structure, queries):
    query, pools, table, lengths = pages(dtype, queries)
    paged = fovea.Paged(table, lengths) & structure
    assert fovea.explain_dispatch(query, *pools, structure=paged).startswith("pages: read where they lie")
    out = fovea.attend(query, *pools, structure=paged, strict=True)
    wide = [pool.double().cpu() for pool in pools]
    expected = fovea.attend(query.double().cpu(), *wide, structure=fovea.Paged(table.cpu(), lengths.cpu()) & structure)
    assert (out.double().cpu() - expected).norm() <= (2e-2 if dtype == torch.bfloat16 else 3e-3) * expected.norm()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_other_calls_on_pages_are_copied_out_and_agree(dtype):
    query, pools, table, lengths = pages(dtype, 40)
    paged = fovea.Paged(table, lengths) & fovea.Causal("bottom_right")
    assert fovea.explain_dispatch(query, *pools, structure=paged).startswith("pages: keys and values are copied out")
    results = []
    for device in ("cuda", "cpu"):
        inputs = [x.detach().to(device).requires_grad_() for x in (query, *pools)]
        out = fovea.attend(*inputs, structure=fovea.Paged(table.to(device), lengths.to(device)) & fovea.Causal("bottom_right"))
        results.append([x.detach().cpu() for x in (out, *torch.autograd.grad(out.square().sum(), inputs))])
    for ours, theirs in zip(*results):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-3)


def replayed(call, change):
    """What a recorded call gives after its inputs changed, and what the call itself gives then."""
    call()  # compiles
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = call()
    change()
    graph.replay()
    return got, call()


def test_steps_with_lengths_offsets_and_pages_are_recorded_into_graphs():
    query, pools, table, lengths = pages(torch.bfloat16)
    paged = fovea.Paged(table, lengths) & fovea.Causal("bottom_right")
    got, expected = replayed(lambda: fovea.attend(query, *pools, structure=paged), lambda: lengths.sub_(1).clamp_(min=0))
    assert torch.equal(got, expected)
    offset = torch.tensor([700], device="cuda")
    cache = [torch.randn(4, 2, 1000, 64, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
    step = lambda: fovea.attend(query, *cache, structure=fovea.Causal() & fovea.Window(255, 0), query_offset=offset)
    got, expected = replayed(step, lambda: offset.add_(50))
    assert torch.equal(got, expected)
    held = torch.tensor([1000, 5, 0, 300], device="cuda")
    got, expected = replayed(lambda: fovea.attend(query, *cache, fovea.Dot().soft_cap(20.0), key_lengths=held), lambda: held.copy_(held.flip(0)))
    assert torch.equal(got, expected)
    got, expected = replayed(lambda: fovea.attend(query, *cache, structure=fovea.Causal(), query_offset=99), lambda: None)
    assert torch.equal(got, expected)


def test_streams_beside_each_other_do_not_mix():
    inputs = [torch.randn(2, 4, 512, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
    structure = EXPRESSIONS["streaming"]
    expected = [fovea.attend(x, *inputs[1:], structure=structure) for x in (inputs[0], 2 * inputs[0])]
    torch.cuda.synchronize()
    streams, found = [torch.cuda.Stream() for _ in range(2)], [None, None]
    for _ in range(20):
        for n, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                found[n] = fovea.attend((n + 1) * inputs[0], *inputs[1:], structure=structure)
    torch.cuda.synchronize()
    assert all(torch.equal(a, b) for a, b in zip(found, expected))
