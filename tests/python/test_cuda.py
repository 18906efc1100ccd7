"""CUDA tensors: libtorch's fused attention where it serves, kernels compiled at run time for nearly all else; all agree with the CPU.

Needs a CUDA device, a torch that sees it, and libfovea.so built against that torch (FOVEA_LIBRARY), nothing else of the project:

    cmake -B build-cuda -G Ninja -DFOVEA_SYSTEMS=OFF -DFOVEA_CUDA=ON && ninja -C build-cuda fovea
    FOVEA_LIBRARY=build-cuda/lib/libfovea.so PYTHONPATH=python python3 -m pytest -v tests/python/test_cuda.py
"""

import pytest
import torch
from cases import NORMALISERS, PACKED, SCORES, STRUCTURES, operands, parameters
from layouts import LAYOUTS

import fovea
from fovea._attend import _flatten

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def moved(choice, device):
    """The same choice with its tensors on a device."""
    for part in (*getattr(choice, "parts", (choice,)), *getattr(choice, "_modifiers", ())):
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor):
                object.__setattr__(part, name, value.detach().to(device).requires_grad_(value.requires_grad))
    return choice


def results(device, score, normaliser, structure, **options):
    packed = structure in PACKED
    choices = SCORES[score][2](), NORMALISERS[normaliser](), (PACKED if packed else STRUCTURES)[structure]()
    inputs = [x.detach().to(device).requires_grad_() for x in operands(score, packed)]
    choices = [moved(choice, device) for choice in choices]
    out = fovea.attend(*inputs, *choices, **options)
    outs = out if isinstance(out, tuple) else (out,)
    arrays = [array for _, _, array in parameters(*choices[:2])]
    # Weights of the loss from one device: float cosines differ from one to the other.
    weights = [torch.arange(x.numel(), dtype=torch.float64).cos().reshape(x.shape).to(x) for x in outs]
    loss = sum((x * w).sum() for x, w in zip(outs, weights) if x.requires_grad)
    gradients = torch.autograd.grad(loss, [*inputs, *arrays], allow_unused=True) if loss.requires_grad else []
    return [x.cpu() for x in (*outs, *(g for g in gradients if g is not None))]


def check(score="dot", normaliser="softmax", structure="dense", **options):
    ours = results("cuda", score, normaliser, structure, **options)
    expected = results("cpu", score, normaliser, structure, **options)
    assert len(ours) == len(expected)
    for a, b in zip(ours, expected):
        torch.testing.assert_close(a, b, atol=1e-9, rtol=1e-8)


@pytest.mark.parametrize("score", SCORES)
def test_each_score(score):
    check(score=score)


@pytest.mark.parametrize("normaliser", NORMALISERS)
def test_each_normaliser(normaliser):
    check(score="gaussian", normaliser=normaliser)


@pytest.mark.parametrize("structure", [*STRUCTURES, *PACKED])
def test_each_structure(structure):
    check(score="additive", structure=structure)


@pytest.mark.parametrize(
    "case",
    [
        {"score": "bilinear", "normaliser": "sparsemax", "structure": "causal_and_window"},
        {"score": "gated_additive", "normaliser": "entmax_trained", "structure": "documents"},
        {"score": "cauchy", "normaliser": "kernel_ratio", "structure": "keep"},
        {"score": "relative", "normaliser": "softmax_sink", "structure": "strided"},
        {"score": "cosine", "normaliser": "sigmoid", "structure": "ragged_causal"},
        {"score": "rank_one", "normaliser": "softmax", "structure": "graph"},
        {"score": "alibi", "normaliser": "top_k", "structure": "blocks"},
    ],
)
def test_combinations(case):
    check(**case)


def test_log_sum_exp_dropout_and_sampling():
    check(return_lse=True, dropout_p=0.3, seed=4)
    check(normaliser="hard", return_lse=True)
    check(score="bias", normaliser="top_k", return_lse=True)


def test_key_lengths_on_either_device_hide_whatever_padding_holds():
    torch.manual_seed(0)
    for score, structure in ((fovea.Dot(), fovea.Dense()), (fovea.Dot(), fovea.Causal()), (fovea.Cosine(1.0), fovea.Dense())):
        query, key, value = torch.randn(3, 3, 2, 7, 8).unbind(0)
        lengths = torch.tensor([5, 0, 7], dtype=torch.int32)
        key[0, :, 5:], value[0, :, 5:] = float("nan"), float("inf")
        expected, *expected_gradients = gradients_of(query, key, value, score, structure, lengths)
        for given in (lengths, lengths.cuda()):
            got, *gradients = gradients_of(query.cuda(), key.cuda(), value.cuda(), score, structure, given)
            for a, b in zip((got, *gradients), (expected, *expected_gradients)):
                torch.testing.assert_close(a.cpu(), b, atol=2e-5, rtol=1e-4)


def gradients_of(query, key, value, score, structure, lengths):
    inputs = [x.detach().clone().requires_grad_() for x in (query, key, value)]
    out = fovea.attend(*inputs, score, structure=structure, key_lengths=lengths)
    return out.detach(), *torch.autograd.grad(out.square().sum(), inputs)


def test_second_derivatives():
    query, key, value = (x.detach().cuda().requires_grad_() for x in operands("dot"))
    attend = lambda q, k, v: fovea.attend(q, k, v, fovea.Dot().soft_cap(2.0), fovea.Entmax())
    assert torch.autograd.gradgradcheck(attend, (query, key, value), fast_mode=True)


def test_selected_weights():
    query, key, _ = (x.detach() for x in operands("dot"))
    for options in ({}, {"rows": [3, 1]}, {"heads": [1]}, {"top_k": 2}, {"column_sums": True}):
        ours = fovea.weights(query.cuda(), key.cuda(), structure=fovea.Causal(), **options)
        expected = fovea.weights(query, key, structure=fovea.Causal(), **options)
        for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (ours, expected))):
            torch.testing.assert_close(a.cpu(), b)


def test_single_precision_agrees_with_the_cpu_through_either_path():
    torch.manual_seed(1)
    for score, structure in ((fovea.Dot(), fovea.Causal()), (fovea.Cosine(2.0), fovea.Window(40, 3))):
        query, key, value = torch.randn(3, 2, 4, 130, 64).unbind(0)
        expected = gradients_of(query, key, value, score, structure, None)
        got = gradients_of(query.cuda(), key.cuda(), value.cuda(), score, structure, None)
        for a, b in zip(got, expected):
            torch.testing.assert_close(a.cpu(), b, atol=2e-4, rtol=1e-3)


@pytest.mark.parametrize("structure", [fovea.Dense(), fovea.Causal()])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_dot_product_softmax_is_libtorchs_fused_attention(structure, dtype):
    inputs = [torch.randn(2, 4, 128, 64, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3)]
    said = fovea.explain_dispatch(*inputs, structure=structure)
    assert said.splitlines() == [
        "engine: tensors on cuda:0, it runs on the CPU",
        "sdpa: taken, libtorch's fused attention",
        "kernels: sdpa is faster",
        "composed: not fused",
    ]
    ours = fovea.attend(*inputs, structure=structure, strict=True)
    theirs = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=isinstance(structure, fovea.Causal))
    assert torch.equal(ours, theirs)
    for a, b in zip(*(torch.autograd.grad(x.float().sum(), inputs, retain_graph=True) for x in (ours, theirs))):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("place", ["offset", "rows", "heads", "lengths"])
def test_rows_that_do_not_start_at_whole_loads_serve_the_fused_kernels(place, dtype):
    """Memory-efficient attention of libtorch looks at the strides of heads and then refuses those of rows."""
    cut = {
        "offset": lambda x: x.flatten()[1 : 1 + 2 * 4 * 16 * 64].view(2, 4, 16, 64),
        "rows": lambda x: x[:, :, :16, 1:65],
        "heads": lambda x: x.flatten()[: 2 * 4 * 1025].view(2, 4, 1025)[..., :1024].view(2, 4, 16, 64),
        "lengths": lambda x: x[:, :, 1:17, :64],
    }[place]
    inputs = [cut(torch.randn(2, 4, 18, 66, device="cuda", dtype=dtype)).detach().requires_grad_() for _ in range(3)]
    plain = [x.detach().contiguous().requires_grad_() for x in inputs]
    lengths = torch.tensor([5, 16], device="cuda") if place == "lengths" else None
    for structure in (fovea.Dense(), fovea.Causal()):
        got, expected = (fovea.attend(*x, structure=structure, key_lengths=lengths, strict=True) for x in (inputs, plain))
        # Two fused kernels may serve, which round differently: a few units of the type's last place.
        close = {"atol": 8 * torch.finfo(dtype).eps, "rtol": 8 * torch.finfo(dtype).eps} if dtype != torch.float32 else {}
        torch.testing.assert_close(got, expected, **close)
        for a, b in zip(torch.autograd.grad(got.float().square().sum(), inputs), torch.autograd.grad(expected.float().square().sum(), plain)):
            torch.testing.assert_close(a, b, **close)


def test_what_libtorch_has_no_fused_kernel_for_is_ours():
    inputs = [torch.randn(1, 2, 64, 64, device="cuda", dtype=torch.float64) for _ in range(3)]
    said = fovea.explain_dispatch(*inputs)
    assert "sdpa: no fused kernel for this type and shape" in said and "kernels: taken, fused" in said
    theirs = torch.nn.functional.scaled_dot_product_attention(*inputs)
    torch.testing.assert_close(fovea.attend(*inputs, strict=True), theirs, atol=1e-12, rtol=1e-10)


def test_strict_is_served_by_kernels_compiled_for_the_choice():
    query, key, value = (x.detach().cuda() for x in operands("dot"))
    said = fovea.explain_dispatch(query, key, value, normaliser=fovea.Sparsemax(), structure=fovea.Window(1, 1))
    assert said.splitlines() == [
        "engine: tensors on cuda:0, it runs on the CPU",
        "sdpa: normaliser sparsemax; structure window",
        "kernels: taken, fused, compiled for this combination",
        "composed: not fused; for second derivatives only",
    ]
    fovea.attend(query, key, value, normaliser=fovea.Sparsemax(), structure=fovea.Window(1, 1), strict=True)


def test_strict_refuses_to_fall_back_with_every_reason():
    query, key, value = (x.detach().cuda() for x in operands("dot"))
    score = fovea.Dot()
    for _ in range(5):
        score = score.bias(torch.zeros(1, device="cuda", dtype=torch.float64))
    fovea.attend(query, key, value, score)
    with pytest.raises(RuntimeError, match="(?s)sdpa: modifier bias.*kernels: more than 4 modifiers"):
        fovea.attend(query, key, value, score, strict=True)


def on_both(score, normaliser, structure, shape, key_shape, dtype, **options):
    """Output and gradients on the device, and on the CPU in float64 from the same rows."""
    torch.manual_seed(2)
    rows = [torch.randn(s, dtype=torch.float64).to(dtype) for s in (shape, key_shape, key_shape)]
    found = []
    for device, kind in (("cuda", dtype), ("cpu", torch.float64)):
        inputs = [x.to(device, kind).requires_grad_() for x in rows]
        choices = (moved(c(torch.float32 if device == "cuda" else torch.float64), device) for c in (score, normaliser, structure))
        out = fovea.attend(*inputs, *choices, strict=device == "cuda", **options)
        loss = (out.double() * torch.arange(out.numel(), dtype=torch.float64).cos().reshape(out.shape).to(device)).sum()
        found.append([x.detach().double().cpu() for x in (out, *torch.autograd.grad(loss, inputs))])
    return zip(*found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("width", [64, 128, 40])
@pytest.mark.parametrize("structure", ["causal_window", "lengths", "documents"])
def test_longer_rows_agree_with_float64(structure, width, dtype):
    """Several tiles of queries and keys, on tensor cores where rows are of 16 bits and whole pieces."""
    structures = {
        "causal_window": lambda _: fovea.Causal() & fovea.Window(100, -1),
        "lengths": lambda _: fovea.Dense(),
        "documents": lambda _: fovea.Documents(torch.arange(300) // 90, torch.arange(333) // 100),
    }
    options = {"key_lengths": torch.tensor([333, 150])} if structure == "lengths" else {}
    score = lambda kind: fovea.Dot().soft_cap(5.0).alibi(torch.tensor([0.01, 0.02, 0.03, 0.04], dtype=kind))
    for a, b in on_both(score, lambda _: fovea.Softmax(), structures[structure], (2, 4, 300, width), (2, 2, 333, width), dtype, **options):
        assert (a - b).norm() / b.norm() < {torch.float32: 2e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}[dtype]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("width", [64, 128])
@pytest.mark.parametrize("normaliser", [fovea.Sparsemax(), fovea.Entmax(1.5), fovea.Entmax(1.2), fovea.TopK(32), fovea.TopK(70)])
@pytest.mark.parametrize("spread", [1.0, 0.01])
def test_thresholds_of_longer_rows_agree_with_float64(spread, normaliser, width, dtype):
    """Rows with weight for few keys and for many, where lists on tensor cores hold them and where not."""
    score, structure = (lambda _: fovea.Dot(spread / 8)), (lambda _: fovea.Causal() & fovea.Window(250, -1))
    for a, b in on_both(score, lambda _: normaliser, structure, (2, 4, 300, width), (2, 2, 333, width), dtype):
        assert (a - b).norm() / b.norm() < {torch.bfloat16: 2e-2, torch.float16: 3e-3}[dtype]


@pytest.mark.parametrize("structure", [fovea.Dense(), fovea.Causal(), fovea.Window(2, 1)])
def test_gradients_inside_torch_func(structure):
    """Where forward is libtorch's and backward ours."""
    inputs = [torch.randn(2, 4, 32, 64) for _ in range(3)]
    loss = lambda q, k, v: fovea.attend(q, k, v, structure=structure).square().sum()
    for a, b in zip(*(torch.func.grad(loss, (0, 1, 2))(*(x.to(device) for x in inputs)) for device in ("cuda", "cpu"))):
        torch.testing.assert_close(a.cpu(), b, atol=2e-4, rtol=1e-3)


def test_dropout_draws_the_bits_of_the_cpu():
    ones = lambda _: fovea.Constant()
    for a, b in on_both(ones, lambda _: fovea.Uniform(), lambda _: fovea.Window(3, 3), (2, 2, 100, 8), (2, 2, 100, 8), torch.float32, dropout_p=0.4, seed=9):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


def test_the_same_call_has_the_same_bits():
    inputs = [torch.randn(2, 4, 300, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
    bias = torch.randn(4, 1, 300, device="cuda", requires_grad=True)
    def run():
        out = fovea.attend(*inputs, fovea.Dot().bias(bias), structure=fovea.Window(64, 64))
        return [out, *torch.autograd.grad(out.float().square().sum(), [*inputs, bias])]
    for a, b in zip(run(), run()):
        assert torch.equal(a, b)


def test_kernels_are_captured_in_a_graph():
    inputs = [torch.randn(2, 4, 300, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
    call = lambda: fovea.attend(*inputs, fovea.Dot().soft_cap(5.0), structure=fovea.Window(64, 64))
    expected = call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = call()
    got.zero_()
    graph.replay()
    assert torch.equal(got, expected)


def test_bad_input_is_named_as_on_the_cpu():
    query, key, value = (x.detach().cuda() for x in operands("dot"))
    with pytest.raises(ValueError, match="key: width 3, expected 4"):
        fovea.attend(query, key[..., :3], value, normaliser=fovea.Sparsemax())
    with pytest.raises(ValueError, match="weight: on cpu, expected cuda:0"):
        fovea.attend(query, key, value, fovea.Additive(torch.ones(4, dtype=torch.float64)))
    # Through the fused path too, wherever the lengths lie, and whether a gradient is wanted or not.
    for dtype in (torch.float64, torch.float32):
        for lengths in (torch.tensor([1, 9]), torch.tensor([1, 9], device="cuda")):
            for grad in (True, False):
                with torch.set_grad_enabled(grad), pytest.raises(ValueError, match=r"key_lengths\[1\]: 9, expected between 0 and 7"):
                    fovea.attend(query.to(dtype), key.to(dtype), value.to(dtype), key_lengths=lengths)


def test_a_graph_is_checked_again_when_its_arrays_change():
    offsets, columns = torch.tensor([0, 2, 3], device="cuda"), torch.tensor([0, 1, 1], device="cuda")
    offsets, columns = offsets.int(), columns.int()
    inputs = [torch.randn(2, 1, 4, device="cuda", requires_grad=True) for _ in range(3)]

    def run():
        out = fovea.attend(*inputs, structure=fovea.Graph(offsets, columns))
        return [out, *torch.autograd.grad(out.square().sum(), inputs)]

    first = run()
    assert all(torch.equal(a, b) for a, b in zip(run(), first))
    columns[2] = 0
    changed = [x.detach().cpu().requires_grad_() for x in inputs]
    out = fovea.attend(*changed, structure=fovea.Graph(offsets.cpu(), columns.cpu()))
    for a, b in zip(run(), [out, *torch.autograd.grad(out.square().sum(), changed)]):
        torch.testing.assert_close(a.cpu(), b, atol=1e-5, rtol=1e-4)
    columns[0] = 2
    with pytest.raises(ValueError, match=r"columns\[0\]: 2, expected between 0 and 1"):
        run()


@pytest.mark.parametrize("score", [lambda _: fovea.Dot().soft_cap(20.0), lambda kind: fovea.Dot().alibi(torch.full((8,), 0.01, dtype=kind))])
@pytest.mark.parametrize("structure", [fovea.Dense(), fovea.Window(500, -1)])
def test_one_query_against_many_keys_agrees_with_float64(score, structure):
    lengths = {"key_lengths": torch.tensor([1500, 700])}
    results = on_both(score, lambda _: fovea.Softmax(), lambda _: structure, (2, 8, 1, 128), (2, 2, 1500, 128), torch.bfloat16, query_offset=torch.tensor([1499, 699]), **lengths)
    for a, b in results:
        assert (a - b).norm() / b.norm() < 2e-2


def test_memory_is_bounded_in_a_long_sequence():
    shape = (1, 8, 8192, 64)
    inputs = [torch.randn(shape, device="cuda", requires_grad=True) for _ in range(3)]
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    fovea.attend(*inputs, normaliser=fovea.Sparsemax(), structure=fovea.Causal()).sum().backward()
    # One 8 x 8192 x 8192 float32 matrix alone would take 2.1 GB.
    assert torch.cuda.max_memory_allocated() - before < 1.5e9


@pytest.mark.parametrize("score", [fovea.Dot(), fovea.Dot().soft_cap(3.0)])
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_without_a_graph_break(score, dynamic):
    inputs = [torch.randn(2, 4, 32, 64, device="cuda", requires_grad=True) for _ in range(3)]
    model = lambda q, k, v: fovea.attend(q.sin(), k, v, score, fovea.Softmax(), fovea.Causal()).square().sum()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for a, b in zip(*(torch.autograd.grad(f(*inputs), inputs) for f in (compiled, model))):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("score", [fovea.Dot(), fovea.Dot().soft_cap(3.0)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_traced_as_it_is_run(layout, score):
    lay = LAYOUTS[layout]
    inputs = [lay(2, 4, n, 16, device="cuda").detach().requires_grad_() for n in (8, 12, 12)]
    text, arrays, numbers = _flatten(inputs[0], score, fovea.Softmax(), fovea.Causal(), None)
    torch.library.opcheck(torch.ops.fovea.attend.default, (*inputs, text, arrays, numbers))
    output, lse, statistics, _ = torch.ops.fovea.attend(*inputs, text, arrays, numbers, return_lse=True)
    plain = [x.detach() for x in inputs]
    torch.library.opcheck(
        torch.ops.fovea.attend_backward.default,
        (torch.randn_like(output), torch.randn_like(lse), *plain, arrays, text, numbers, None, 0.0, None, output.detach(), statistics, [1, 1, 1]),
    )
    torch.library.opcheck(torch.ops.fovea.weights.default, (*plain[:2], text, arrays, numbers), {"top_k": 2})
    torch._dynamo.reset()
    model = lambda q, k, v: fovea.attend(q, k, v, score, structure=fovea.Causal()).transpose(1, 2).flatten(2).square().sum()
    compiled = torch.compile(model, fullgraph=True, backend="inductor" if layout == "transposed" else "aot_eager")
    for a, b in zip(*(torch.autograd.grad(f(*inputs), inputs) for f in (compiled, model))):
        torch.testing.assert_close(a, b)
