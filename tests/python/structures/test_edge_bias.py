"""A bias of the edges of a graph, beside the formula in libtorch's operations."""

import pytest
import torch

import fovea

N, H, E = 6, 2, 4
EDGES = torch.tensor([[0, 3, 1, 5, 2, 0, 4, 4, 1, 0], [2, 0, 0, 5, 2, 4, 4, 2, 2, 2]])  # the pair (0, 2) twice
NORMALISERS = {"softmax": fovea.Softmax(), "sparsemax": fovea.Sparsemax(), "sigmoid": fovea.Sigmoid()}


def problem(shape):
    made = torch.Generator().manual_seed(3)
    query, key, value = (torch.randn(N, H, E, dtype=torch.float64, generator=made, requires_grad=True) for _ in range(3))
    return query, key, value, torch.randn(*shape, dtype=torch.float64, generator=made, requires_grad=True)


def formula(query, key, value, bias, normaliser):
    """Edge by edge, each target's scores side by side."""
    out = []
    for target in range(N):
        edges = (EDGES[1] == target).nonzero().squeeze(1)
        scores = (query[target] * key[EDGES[0, edges]]).sum(-1) / E**0.5  # [edges, H]
        scores = scores + (bias[edges] if bias.dim() == 2 else bias[edges, None])
        if len(edges) == 0:
            out.append(torch.zeros(H, E, dtype=torch.float64))
            continue
        rows = scores.t().reshape(1, H, 1, -1)
        keys, values = torch.zeros(1, H, len(edges), 1, dtype=torch.float64), value[EDGES[0, edges]].transpose(0, 1).unsqueeze(0)
        out.append(fovea.attend(rows, keys, values, fovea.Location(), normaliser)[0, :, 0])
    return torch.stack(out)


@pytest.mark.parametrize("normaliser", NORMALISERS)
@pytest.mark.parametrize("shape", [(10,), (10, H)])
def test_the_formula_edge_by_edge(shape, normaliser):
    leaves = problem(shape)
    query, key, value, bias = leaves
    graph = fovea.Graph.from_edge_index(EDGES, N)
    out = fovea.attend(query, key, value, fovea.Dot().edge_bias(bias[graph.order]), NORMALISERS[normaliser], graph)
    expected = formula(query, key, value, bias, NORMALISERS[normaliser])
    torch.testing.assert_close(out, expected)
    gradient = torch.randn(N, H, E, dtype=torch.float64)
    for ours, theirs in zip(torch.autograd.grad(out, leaves, gradient), torch.autograd.grad(expected, leaves, gradient)):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("shape", [(10,), (10, H)])
def test_second_derivatives_vmap_and_compile(shape):
    query, key, value, bias = problem(shape)
    graph = fovea.Graph.from_edge_index(EDGES, N)

    def call(bias):
        return fovea.attend(query, key, value, fovea.Dot().soft_cap(3.0).edge_bias(bias), structure=graph)

    assert torch.autograd.gradcheck(call, (bias,)) and torch.autograd.gradgradcheck(call, (bias,))
    many = torch.stack([bias, -bias]).detach()
    torch.testing.assert_close(torch.func.vmap(call)(many)[1], call(-bias.detach()))
    shared = torch.func.vmap(lambda q: fovea.attend(q, key, value, fovea.Dot().edge_bias(bias), structure=graph))(torch.stack([query, 2 * query]))
    torch.testing.assert_close(shared[1], fovea.attend(2 * query, key, value, fovea.Dot().edge_bias(bias), structure=graph))
    torch.testing.assert_close(torch.compile(call, backend="aot_eager", fullgraph=True)(bias), call(bias))
    torch.library.opcheck(
        torch.ops.fovea.attend.default, (query, key, value, "dot|edge_bias:bias=@;softmax;graph:row_offsets=@,columns=@",
                                         [bias, graph.row_offsets, graph.columns])
    )  # fmt: skip


def test_weights_and_masks_know_the_bias():
    query, key, value, bias = problem((10,))
    graph = fovea.Graph.from_edge_index(EDGES, N)
    score = fovea.Dot().edge_bias(bias[graph.order])
    weights = fovea.weights(query, key, score, structure=graph)
    torch.testing.assert_close((weights[0] @ value.transpose(0, 1)).transpose(0, 1), fovea.attend(query, key, value, score, structure=graph))
    shut = torch.where(EDGES[0] < 1, 0.0, -torch.inf).to(torch.float64)  # as First(1) does
    masked = fovea.attend(query, key, value, fovea.Dot().edge_bias(shut[graph.order]), structure=graph)
    torch.testing.assert_close(masked, fovea.attend(query, key, value, structure=graph & fovea.First(1)))


def test_what_is_wrong_is_named():
    query, key, value, bias = problem((10, H))
    graph = fovea.Graph.from_edge_index(EDGES, N)
    with pytest.raises(ValueError, match=r"score.bias: shape \[9, 2\], expected \[10\] or \[10, 2\]"):
        fovea.attend(query, key, value, fovea.Dot().edge_bias(bias[:9]), structure=graph)
    with pytest.raises(RuntimeError, match="edge_bias without a graph"):
        fovea.attend(*(x.unsqueeze(0) for x in (query, key, value)), fovea.Dot().edge_bias(bias))
    assert repr(fovea.Dot().edge_bias(bias)) == "Dot(scale=None).edge_bias(bias=<tensor [10, 2] of float64>)"
