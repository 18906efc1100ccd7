"""The operators as libtorch wants them: opcheck, torch.compile without a graph break."""

import pytest
import torch
from cases import NORMALISERS, PACKED, SCORES, STRUCTURES, operands, parameters

import fovea
from fovea._attend import _flatten


def arguments(score="dot", normaliser="softmax", structure="dense", dtype=torch.float32):
    packed = structure in PACKED
    build = PACKED[structure] if packed else STRUCTURES[structure]
    query, key, value = operands(score, packed, dtype)
    choices = SCORES[score][2](), NORMALISERS[normaliser](), build()
    for part, name, array in parameters(*choices[:2]):
        object.__setattr__(part, name, array.detach().to(dtype).requires_grad_())
    return (query, key, value, *_flatten(query, *choices, None))


@pytest.mark.parametrize(
    "case",
    [
        {},
        {"score": "additive", "normaliser": "sparsemax", "structure": "ragged"},
        {"score": "bias", "normaliser": "softmax_sink", "structure": "causal_and_window"},
        {"score": "gaussian", "normaliser": "kernel_ratio", "structure": "keep"},
        {"normaliser": "entmax_trained", "structure": "graph"},
    ],
)
def test_opcheck(case):
    torch.library.opcheck(torch.ops.fovea.attend.default, arguments(**case))


def test_opcheck_with_log_sum_exp_dropout_and_lengths():
    extra = {"key_lengths": torch.tensor([3, 7]), "dropout_p": 0.2, "seed": torch.tensor(5), "return_lse": True}
    torch.library.opcheck(torch.ops.fovea.attend.default, arguments(), extra)


def test_opcheck_of_the_output_alone():
    query, key, value, text, *_ = arguments(structure="causal")
    torch.library.opcheck(torch.ops.fovea.attend_output.default, (query, key, value, text))


def test_opcheck_of_the_gradient_of_a_gradient():
    query, key, value, text, arrays, numbers = arguments(score="bias")
    query, key, value, *arrays = (x.detach() for x in (query, key, value, *arrays))
    d_output = torch.randn(*query.shape[:-1], value.shape[-1])
    given = ([torch.randn_like(query), torch.randn_like(arrays[0])], [0, 3])
    torch.library.opcheck(
        torch.ops.fovea.attend_double_backward.default,
        (*given, d_output, None, query, key, value, arrays, text, numbers, None, 0.0, None, [1, 0, 1, 1, 0, 1]),
    )


def test_opcheck_of_the_backward_operator():
    query, key, value, text, arrays, numbers = arguments(score="bias")
    output, lse, statistics, _ = torch.ops.fovea.attend(query, key, value, text, arrays, numbers, return_lse=True)
    # Second derivatives are taken eagerly, through the composed formula: they cannot be traced.
    query, key, value, output, statistics, *arrays = (x.detach() for x in (query, key, value, output, statistics, *arrays))
    inputs = (torch.randn_like(output), torch.randn_like(lse), query, key, value, arrays, text, numbers, None, 0.0, None, output,
              statistics, [1, 1, 1, 1])  # fmt: skip
    torch.library.opcheck(torch.ops.fovea.attend_backward.default, inputs)


def test_opcheck_of_weights():
    query, key, _, text, arrays, numbers = arguments(structure="causal")
    for extra in ({}, {"top_k": 2}, {"column_sums": True}, {"rows": torch.tensor([1, 3])}):
        torch.library.opcheck(torch.ops.fovea.weights.default, (query.detach(), key.detach(), text, arrays, numbers), extra)


@pytest.mark.parametrize("score", ["dot", "additive", "gaussian", "bias"])
def test_compiles_without_a_graph_break(score):
    query, key, value, *_ = arguments(score)
    weight = SCORES[score][2]()
    for part, name, array in parameters(weight):
        object.__setattr__(part, name, array.detach().float())

    def model(query, key, value):
        out, lse = fovea.attend(
            torch.tanh(query), key, value, weight, fovea.Softmax(), fovea.Causal(), return_lse=True
        )
        return out.square().sum() + lse.sum()

    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
    expected = torch.autograd.grad(model(query, key, value), (query, key, value))
    got = torch.autograd.grad(compiled(query, key, value), (query, key, value))
    for a, b in zip(expected, got):
        assert torch.allclose(a, b, atol=1e-6)


def test_compiles_with_choices_made_inside():
    query, key, value, *_ = arguments("additive")
    weight = torch.randn(4, requires_grad=True)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def model(query, key, value, weight):
        structure = fovea.Causal() & fovea.Window(3, -1)
        return fovea.attend(query, key, value, fovea.Additive(weight).soft_cap(5.0), fovea.Entmax(1.5), structure)

    expected = fovea.attend(
        query, key, value, fovea.Additive(weight).soft_cap(5.0), fovea.Entmax(1.5), fovea.Causal() & fovea.Window(3, -1)
    )
    assert torch.equal(model(query, key, value, weight), expected)


def test_compiles_to_machine_code():
    query, key, value, *_ = arguments()
    compiled = torch.compile(lambda q, k, v: fovea.attend(q.tanh(), k, v).square().sum(), fullgraph=True)  # inductor
    got = torch.autograd.grad(compiled(query, key, value), (query, key, value))
    expected = torch.autograd.grad(fovea.attend(query.tanh(), key, value).square().sum(), (query, key, value))
    for a, b in zip(got, expected):
        torch.testing.assert_close(a, b)


def test_second_derivatives_of_a_compiled_call_are_libtorchs_to_refuse():
    query, key, value, *_ = arguments()
    model = lambda q: fovea.attend(q, key, value).square().sum()
    (first,) = torch.autograd.grad(model(query), query, create_graph=True)
    assert torch.autograd.grad(first.sum(), query)[0].isfinite().all()  # eagerly they are there
    (first,) = torch.autograd.grad(torch.compile(model, backend="aot_eager")(query), query, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        torch.autograd.grad(first.sum(), query)


def test_compiled_dropout_draws_a_new_seed_each_call():
    query, key, value, *_ = arguments()
    compiled = torch.compile(lambda q, k, v: fovea.attend(q, k, v, dropout_p=0.5), fullgraph=True, backend="aot_eager")
    assert not torch.equal(compiled(query, key, value), compiled(query, key, value))


def test_meta_tensors_have_the_shapes_of_real_ones():
    query, key, value, text, arrays, numbers = arguments("additive", structure="ragged")
    real = torch.ops.fovea.attend(query, key, value, text, arrays, numbers, return_lse=False)
    meta = torch.ops.fovea.attend(*(x.to("meta") for x in (query, key, value)), text, [x.to("meta") for x in arrays], numbers)
    assert [(x.shape, x.dtype) for x in real] == [(x.shape, x.dtype) for x in meta]


@pytest.mark.parametrize("make", [lambda n: fovea.Window(n, 0), lambda n: fovea.Prefix(n), lambda n: fovea.Causal() & fovea.Strided(n + 1)])
def test_a_whole_number_that_varies_does_not_compile_again_for_each(make):
    torch._dynamo.reset()
    query, key, value, *_ = arguments()
    graphs = 0

    def backend(graph, inputs):
        nonlocal graphs
        graphs += 1
        return graph.forward

    compiled = torch.compile(lambda n: fovea.attend(query, key, value, structure=make(n)), fullgraph=True, backend=backend)
    for n in range(2, 40):  # more than libtorch compiles one function for
        assert torch.equal(compiled(n), fovea.attend(query, key, value, structure=make(n)))
    assert graphs <= 3


def test_a_number_that_varies_compiles():
    torch._dynamo.reset()
    query, key, value, *_ = arguments()
    compiled = torch.compile(lambda x: fovea.attend(query, key, value, fovea.Dot(x).soft_cap(x + 1.0)), fullgraph=True, backend="aot_eager")
    for x in (0.5, 0.25, 1.5):
        torch.testing.assert_close(compiled(x), fovea.attend(query, key, value, fovea.Dot(x).soft_cap(x + 1.0)))


def test_vmap_makes_one_call_where_it_can():
    query, key, value, *_ = (x.detach() if isinstance(x, torch.Tensor) else x for x in arguments())

    def calls(count, **options):
        many = torch.randn(count, *query.shape)
        with torch.profiler.profile() as profile:
            torch.vmap(lambda q: fovea.attend(q, key, value, **options))(many)
        return sum(event.name == "fovea::attend" for event in profile.events())

    assert calls(3) == calls(12)
    assert calls(12, dropout_p=0.5, seed=1) > calls(3, dropout_p=0.5, seed=1)  # drawn by position: item by item
