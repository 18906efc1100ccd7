"""What an operator says it returns (meta) is what it returns, however the operands lie in memory: eagerly, checked by libtorch, compiled."""

import pytest
import torch
from layouts import LAYOUTS
from torch._subclasses.fake_tensor import FakeTensorMode

import fovea
from fovea._attend import _flatten

B, H, L, S, E, EV = 2, 3, 5, 7, 8, 4
CASES = {
    "dense": lambda lay: (fovea.Dot(), fovea.Softmax(), fovea.Dense()),
    "bilinear": lambda lay: (fovea.Bilinear(lay(H, E, E).detach().requires_grad_()), fovea.Sparsemax(), fovea.Causal()),
    "bias": lambda lay: (fovea.Dot().bias(lay(B, H, L, S).detach().requires_grad_()), fovea.Softmax(), fovea.Window(2, 1)),
    "ragged": lambda lay: (fovea.Dot(), fovea.Softmax(), fovea.Ragged(torch.tensor([0, 2, L]), torch.tensor([0, 3, S]))),
}


@pytest.fixture(autouse=True)
def nothing_compiled_before():
    torch._dynamo.reset()


def operands(layout, packed=False):
    lay = LAYOUTS[layout]
    shapes = ((L, H, E), (S, H, E), (S, H, EV)) if packed else ((B, H, L, E), (B, H, S, E), (B, H, S, EV))
    return [lay(*shape).detach().requires_grad_() for shape in shapes]


def attend_arguments(layout, case):
    query, key, value = operands(layout, case == "ragged")
    return query, key, value, *_flatten(query, *CASES[case](LAYOUTS[layout]), None)


def backward_arguments(layout, case, d_layout="contiguous"):
    query, key, value, text, arrays, numbers = attend_arguments(layout, case)
    output, lse, statistics, _ = torch.ops.fovea.attend(query, key, value, text, arrays, numbers, return_lse=True)
    d_output = LAYOUTS[d_layout](*output.shape)
    # Without a gradient of its own: second derivatives are taken eagerly and cannot be traced.
    query, key, value, output, statistics, *arrays = (x.detach() for x in (query, key, value, output, statistics, *arrays))
    return (d_output, torch.randn_like(lse), query, key, value, arrays, text, numbers, None, 0.0, None, output, statistics,
            [1] * 3 + [int(array.is_floating_point()) for array in arrays])  # fmt: skip


def said(tensor):
    return tensor.shape, tensor.dtype, [s for s, n in zip(tensor.stride(), tensor.shape) if n > 1]


def flat(results):
    return [x for result in results for x in (result if isinstance(result, (list, tuple)) else [result])]


def assert_meta_agrees(operator, arguments, **extra):
    real = flat(operator(*arguments, **extra))
    meta = flat(mapped(operator, on_meta, arguments, extra))
    assert [said(x) for x in real] == [said(x) for x in meta]
    with FakeTensorMode() as mode:
        fake = flat(mapped(operator, mode.from_tensor, arguments, extra))
        assert [said(x) for x in real] == [said(x) for x in fake]


def on_meta(tensor):
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def mapped(operator, function, arguments, extra):
    """The operator's answer where a function was applied to every tensor it takes."""
    arguments, extra = torch.utils._pytree.tree_map_only(torch.Tensor, function, (arguments, extra))
    return operator(*arguments, **extra)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CASES)
def test_meta_gives_the_layout_of_the_kernels(layout, case):
    with torch.no_grad():
        arguments = attend_arguments(layout, case)
        assert_meta_agrees(torch.ops.fovea.attend, arguments)
        if case == "dense":
            assert_meta_agrees(torch.ops.fovea.attend, arguments, return_lse=True)
        query, key, _, text, arrays, numbers = arguments
        if case != "ragged":  # a ragged batch's weights have the shape of its longest sequence, which meta cannot see
            for extra in ({}, {"top_k": 2}, {"column_sums": True}, {"rows": torch.tensor([1, 3])}, {"heads": torch.tensor([2])}):
                assert_meta_agrees(torch.ops.fovea.weights, (query, key, text, arrays, numbers), **extra)
        if case in ("dense", "bias"):
            assert_meta_agrees(torch.ops.fovea.attend_backward, backward_arguments(layout, case))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_opcheck_of_each_operator(layout):
    torch.library.opcheck(torch.ops.fovea.attend.default, attend_arguments(layout, "bias"))
    for d_layout in ("contiguous", "transposed"):
        torch.library.opcheck(torch.ops.fovea.attend_backward.default, backward_arguments(layout, "bias", d_layout))
    query, key, _, text, arrays, numbers = attend_arguments(layout, "bias")
    query, key, *arrays = (x.detach() for x in (query, key, *arrays))
    torch.library.opcheck(torch.ops.fovea.weights.default, (query, key, text, arrays, numbers), {"top_k": 2})


def check_compiled(layout, backend, **options):
    inputs = operands(layout)

    def model(query, key, value):
        out, lse = fovea.attend(query, key, value, structure=fovea.Causal(), return_lse=True)
        joined = out.transpose(1, 2).reshape(B, -1, H * EV)  # as a transformer joins its heads
        return joined.square().sum() + lse.sum()

    compiled = torch.compile(model, fullgraph=True, backend=backend, **options)
    for a, b in zip(*(torch.autograd.grad(f(*inputs), inputs) for f in (compiled, model))):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_without_a_graph_break(layout, dynamic):
    check_compiled(layout, "aot_eager", dynamic=dynamic)


def test_a_transformers_heads_compile_to_machine_code():
    with torch._inductor.config.patch(fx_graph_cache=False):  # what another run compiled would say nothing of this library
        check_compiled("transposed", "inductor")


def test_weights_compile():
    query, key, _ = operands("transposed")
    compiled = torch.compile(lambda q, k: fovea.weights(q, k, top_k=2)[0] * 2, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(query, key), fovea.weights(query, key, top_k=2)[0] * 2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_traced_cuda_call_saves_the_statistics_of_one_that_runs(layout):
    # The kernels save what the engine does, of the same shape. A trace needs no device, so this runs anywhere.
    arguments = attend_arguments(layout, "dense")
    expected = torch.ops.fovea.attend(*arguments)[2]
    with FakeTensorMode(), torch.no_grad():
        on_cuda = lambda x: torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="cuda")
        output, _, statistics, _ = mapped(torch.ops.fovea.attend, on_cuda, arguments, {})
    assert output.is_cuda and statistics.is_cuda
    assert statistics.shape == expected.shape and statistics.stride() == expected.stride()
    assert said(output) == said(torch.ops.fovea.attend(*arguments)[0])


@pytest.mark.parametrize("name", ["key", "value", "key_lengths", "weight", "seed"])
def test_a_meta_tensor_among_real_ones_is_named(name):
    tensors = {"query": torch.randn(B, H, L, E), "key": torch.randn(B, H, S, E), "value": torch.randn(B, H, S, E)}
    extra = {"key_lengths": torch.tensor([3, 4]), "seed": torch.tensor(3)}
    weight = torch.randn(E, device="meta" if name == "weight" else "cpu")
    meta = lambda given: {n: x.to("meta") if n == name else x for n, x in given.items()}
    with pytest.raises(ValueError, match=f"{name}: on meta, expected cpu"):
        torch.ops.fovea.attend(*meta(tensors).values(), "additive:weight=@;softmax;dense", [weight], dropout_p=0.1, **meta(extra))
    if name != "value":
        tensors.pop("value")
        with pytest.raises(ValueError, match=f"{name}: on meta, expected cpu"):
            torch.ops.fovea.weights(*meta(tensors).values(), "additive:weight=@;softmax;dense", [weight], **meta(extra))


@pytest.mark.parametrize("given", [lambda scale: {"scale": scale}, lambda scale: {"score": fovea.Dot(scale)}])
def test_a_meta_scale_is_named(given):
    query = torch.randn(B, H, L, E)
    for shape in ((), (H,)):
        with pytest.raises(ValueError, match="scale: on meta, expected cpu"):
            fovea.attend(query, query, query, **given(torch.empty(shape, device="meta")))


def test_real_tensors_among_meta_ones_are_named():
    query, key = torch.randn(B, H, L, E, device="meta"), torch.randn(B, H, S, E)
    with pytest.raises(ValueError, match="key: on cpu, expected meta"):
        fovea.attend(query, key, key)
