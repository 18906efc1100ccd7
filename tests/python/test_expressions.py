"""Structures as a language: &, | and ~ against the boolean mask that the same expression makes of masks, forward and backward."""

import random

import pytest
import torch
from cases import B, H, L, S, operands, tensor

import fovea

I, J = torch.arange(L).view(L, 1), torch.arange(S).view(1, S)
MASK = torch.arange(B * L * S).reshape(B, 1, L, S) % 3 != 0
#: Structures, and their definitions as masks.
KINDS = [
    (fovea.Dense(), torch.ones(L, S, dtype=torch.bool)),
    (fovea.Causal(), J <= I),
    (fovea.Window(2, 1), (J >= I - 2) & (J <= I + 1)),
    (fovea.First(2), (J < 2).expand(L, S)),
    (fovea.Prefix(3), (J <= I) | (J < 3)),
    (fovea.Strided(2), (J <= I) & ((I - J <= 2) | ((I - J) % 2 == 0))),
    (fovea.Keep(MASK), MASK),
    (fovea.Where(lambda b, h, i, j: (i + j) % 4 == 0), (I + J) % 4 == 0),
]


def drawn(draw, depth, kinds):
    if depth == 0:
        return draw.choice(kinds)
    (a, x), (b, y) = drawn(draw, depth - 1, kinds), drawn(draw, draw.randrange(depth), kinds)
    return draw.choice([(a & b, x & y), (a | b, x | y), (~a, ~x)])


def assert_same_as_mask(structure, mask, normaliser):
    inputs = operands("dot")
    ours, theirs = (fovea.attend(*inputs, normaliser=normaliser, structure=s) for s in (structure, fovea.Keep(mask)))
    torch.testing.assert_close(ours, theirs)
    direction = tensor(*ours.shape, seed=5).detach()
    for a, b in zip(*(torch.autograd.grad((x * direction).sum(), inputs) for x in (ours, theirs))):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("seed", range(60))
def test_every_expression_is_the_boolean_mask(seed):
    draw = random.Random(seed)
    structure, mask = drawn(draw, 1 + seed % 3, KINDS if seed % 5 == 0 else KINDS[:-1])
    assert_same_as_mask(structure, mask, draw.choice([fovea.Softmax(), fovea.Sparsemax(), fovea.Sigmoid()]))


def test_de_morgan_and_twice_not():
    query, key, value = operands("dot")
    a, b = fovea.Window(2, 0), fovea.First(2)

    def out(structure):
        return fovea.attend(query, key, value, structure=structure)

    torch.testing.assert_close(out(~(a | b)), out(~a & ~b))
    torch.testing.assert_close(out(~(a & b)), out(~a | ~b))
    torch.testing.assert_close(out(~~a), out(a))
    torch.testing.assert_close(out(fovea.Causal() | fovea.First(3)), out(fovea.Prefix(3)))
    assert not out(~fovea.Dense()).any()  # no query sees a key: zeros, not NaN


@pytest.mark.parametrize("n", [1, 3])
def test_a_step_of_streaming_llm_reads_two_ranges(n):
    keys, heads = 3000, 2
    query, key, value = (torch.randn(1, heads, keys, 16, generator=torch.Generator().manual_seed(s)) for s in range(3))
    streaming = fovea.Causal() & (fovea.Window(1020, 0) | fovea.First(4))
    key[:, :, 4 : keys - n - 1020] = float("nan")  # what no one sees may hold anything
    step = fovea.attend(query[:, :, -n:], key, value, structure=streaming, query_offset=keys - n)
    key[:, :, 4 : keys - n - 1020] = 0
    whole = fovea.attend(query, key, value, structure=streaming)
    torch.testing.assert_close(step, whole[:, :, -n:])
    assert "decode" in str(fovea.explain_dispatch(query[:, :, -n:], key, value, structure=streaming, query_offset=keys - n))


def test_shows_itself_as_it_was_written():
    assert repr(fovea.Causal() & (fovea.Window(1020, 0) | fovea.First(4))) == "Causal(alignment='top_left') & (Window(left=1020, right=0) | First(count=4))"
    assert repr(~(fovea.First(1) | fovea.First(2)) & ~fovea.First(3)) == "~(First(count=1) | First(count=2)) & ~First(count=3)"


def test_packed_structures_stand_in_and_only():
    graph = fovea.Graph(torch.tensor([0, 1]), torch.tensor([0]))
    for write, operator in ((lambda: graph | fovea.Causal(), "|"), (lambda: ~graph, "~"), (lambda: ~(fovea.Causal() & graph), "~")):
        with pytest.raises(ValueError, match="Graph inside \\" + operator + ", expected it in & only"):
            write()
    with pytest.raises(TypeError):
        fovea.Causal() | True
    with pytest.raises(ValueError, match="First.count: -1, expected at least 0"):
        fovea.First(-1)


def test_a_graph_keeps_the_edges_that_an_expression_keeps():
    query, key, value = (torch.randn(5, H, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(s)) for s in range(3))
    rows, columns = torch.tensor([0, 2, 4, 7, 9, 12]), torch.tensor([0, 3, 1, 4, 0, 2, 4, 1, 3, 0, 3, 4])
    out = fovea.attend(query, key, value, structure=fovea.Graph(rows, columns) & (fovea.First(1) | ~fovea.Causal()))
    kept = [[c for c in columns[rows[i] : rows[i + 1]].tolist() if c < 1 or c > i] for i in range(5)]
    offsets = torch.tensor([0, *torch.tensor([len(k) for k in kept]).cumsum(0).tolist()])
    torch.testing.assert_close(out, fovea.attend(query, key, value, structure=fovea.Graph(offsets, torch.tensor(sum(kept, [])))))


def test_traces_and_compiles():
    query, key, value = (x.detach().float() for x in operands("dot"))

    def call(q, k, v, left):
        return fovea.attend(q, k, v, structure=fovea.Causal() & (fovea.Window(left, 0) | fovea.First(1)))

    compiled = torch.compile(call, backend="eager", fullgraph=True)
    for left in (1, 2):
        torch.testing.assert_close(compiled(query, key, value, left), call(query, key, value, left))


def test_a_key_without_rows_may_lie_anyhow():
    query = torch.randn(1, 1, 3, 4)
    key = torch.empty(1, 1, 4, 6).transpose(-1, -2)[:, :, :0]
    assert key.shape == (1, 1, 0, 4) and key.stride(-1) == 6
    assert not fovea.attend(query, key, key).any()


@pytest.mark.parametrize("joined", [lambda a, b: a and b, lambda a, b: a or b, lambda a, b: not a], ids=["and", "or", "not"])
def test_python_s_own_words_are_refused(joined):
    with pytest.raises(TypeError, match="join structures with &, | and ~"):
        joined(fovea.Causal(), fovea.Window(3, 0))


def test_a_mask_beside_a_structure_is_told_of_keep():
    for write in (lambda: fovea.Causal() & MASK, lambda: MASK & fovea.Causal(), lambda: fovea.Causal() | MASK, lambda: MASK | fovea.Causal()):
        with pytest.raises(TypeError, match=r"structure: a tensor .* of bool, expected a Structure; fovea.Keep\(mask\) makes one"):
            write()
    with pytest.raises(TypeError, match="unsupported operand"):
        fovea.Causal() & 3
