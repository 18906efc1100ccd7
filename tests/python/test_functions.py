"""Python functions as scores and masks: what the built-in choice gives, in blocks of any size, with gradients."""

import copy
import re

import pytest
import torch
from cases import NORMALISERS, PACKED, SCORES, STRUCTURES, B, E, H, L, S, operands, parameters, positive, tensor

import fovea
import fovea._functions


@pytest.fixture(params=["whole", "blocks of two rows"])
def blocks(request, monkeypatch):
    if request.param != "whole":
        monkeypatch.setattr(fovea._functions, "BLOCK", 2 * B * H * S)


def assert_same(ours, theirs, leaves):
    torch.testing.assert_close(ours, theirs)
    for a, b in zip(*(torch.autograd.grad(x.square().sum(), leaves, allow_unused=True, retain_graph=True) for x in (ours, theirs))):
        assert (a is None) == (b is None)
        if b is not None:
            torch.testing.assert_close(a, b)


def leaves_of(inputs, *choices):
    return [*inputs, *(value for _, _, value in parameters(*choices))]


@pytest.mark.parametrize("name", [name for name in SCORES if name not in ("relative",)])
def test_a_function_that_changes_nothing_leaves_every_score(name, blocks):
    inputs, score = operands(name), SCORES[name][2]()
    ours = fovea.attend(*inputs, score.apply(lambda e, b, h, i, j: e))
    assert_same(ours, fovea.attend(*inputs, score), leaves_of(inputs, score))


MASK = torch.zeros(L, S).double().masked_fill(torch.arange(L * S).view(L, S) % 3 == 0, -torch.inf)
ENDING = {
    "kernels that end": lambda: fovea.Kernel("epanechnikov", 2.5),
    "kernels that underflow": lambda: fovea.Kernel("gaussian", 0.02),
    "a bandwidth for each query": lambda: fovea.Kernel("tricube", positive(B, H, L)),
    "kernels with a bias": lambda: fovea.Kernel("gaussian", positive(H)).bias(tensor(H, L, S)).alibi(positive(H)),
    "a mask as bias": lambda: fovea.Dot().bias(MASK),
    "a cap, and a mask as bias": lambda: fovea.Kernel("quartic", 2.5).soft_cap(2.0).bias(MASK),
}


@pytest.mark.parametrize("name", ENDING)
@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax"])
def test_pairs_that_count_for_nothing_stay_so(name, normaliser, blocks):
    inputs, score, normaliser = operands("dot"), ENDING[name](), NORMALISERS[normaliser]()
    ours = fovea.attend(*inputs, score.apply(lambda e, b, h, i, j: e), normaliser)
    assert ours.isfinite().all()
    assert_same(ours, fovea.attend(*inputs, score, normaliser), leaves_of(inputs, score))


def test_a_bandwidth_for_each_query_of_one_item(blocks):
    one = [x[:1] for x in operands("dot")]
    score = fovea.Kernel("gaussian", positive(1, H, L))
    assert_same(fovea.attend(*one, score.apply(lambda e, b, h, i, j: e)), fovea.attend(*one, score), leaves_of(one, score))


def test_a_location_may_hide_keys(blocks):
    _, key, value = operands("location")
    rows = (tensor(B, H, L, S).detach() + MASK).requires_grad_()
    ours = fovea.attend(rows, key, value, fovea.Location().apply(lambda e, b, h, i, j: e))
    assert_same(ours, fovea.attend(rows, key, value, fovea.Location()), [rows, value])


@pytest.mark.parametrize("name", NORMALISERS)
def test_every_normaliser_takes_a_function(name, blocks):
    inputs, normaliser = operands("cosine"), NORMALISERS[name]()
    shifted = [x if n == 2 else (x.detach() + 3).requires_grad_() for n, x in enumerate(inputs)]  # no ratio of a sum near zero
    cosine = fovea.Function(lambda q, k: torch.nn.functional.normalize(q, dim=-1) @ torch.nn.functional.normalize(k, dim=-1).transpose(-1, -2))
    assert_same(fovea.attend(*shifted, cosine, normaliser), fovea.attend(*shifted, fovea.Cosine(), normaliser), leaves_of(shifted, normaliser))


@pytest.mark.parametrize("name", STRUCTURES)
def test_every_structure_beside_a_function(name, blocks):
    inputs, structure = operands("dot"), STRUCTURES[name]()
    whole = fovea.Where(lambda b, h, i, j: i == i)
    assert_same(fovea.attend(*inputs, structure=structure & whole), fovea.attend(*inputs, structure=structure), inputs)
    assert_same(fovea.attend(*inputs, fovea.Dot().apply(lambda e, *places: e), structure=structure), fovea.attend(*inputs, structure=structure), inputs)


@pytest.mark.parametrize("offset", [0, 2, torch.tensor([1, 2])], ids=str)
def test_positions_count_from_the_offset(offset, blocks):
    inputs, slopes = operands("dot"), positive(H)
    rule = fovea.Where(lambda b, h, i, j: (j <= i) & (i - j <= 3))
    penalty = fovea.Dot().apply(lambda e, b, h, i, j: e - slopes[h] * (i - j).abs())
    for ours, theirs in (
        ({"structure": rule}, {"structure": fovea.Causal() & fovea.Window(3, -1)}),
        ({"score": penalty}, {"score": fovea.Dot().alibi(slopes)}),
        ({"score": penalty.bias(torch.ones(L, S).double()), "structure": rule}, {"score": fovea.Dot().alibi(slopes), "structure": fovea.Causal() & fovea.Window(3, -1)}),
    ):
        leaves = [*inputs, slopes] if "score" in ours else inputs
        assert_same(fovea.attend(*inputs, query_offset=offset, **ours), fovea.attend(*inputs, query_offset=offset, **theirs), leaves)


def test_what_a_function_uses_has_gradients_and_is_shared_by_copies(blocks):
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.slope = torch.nn.Parameter(torch.tensor(0.3))
            score = fovea.Dot().apply(lambda e, b, h, i, j: e - self.slope * (i - j).abs())
            self.attention = fovea.nn.MultiheadAttention(8, 2, batch_first=True, score=score)

        def forward(self, x):
            return self.attention(x, x, x)[0]

    layer, x = Layer(), torch.randn(2, 5, 8)
    layer(x).square().sum().backward()
    assert layer.slope.grad != 0
    other, before = copy.deepcopy(layer), layer(x)
    with torch.no_grad():
        other.slope.add_(1)
    assert torch.equal(other(x), before)  # its function is the other layer's
    with torch.no_grad():
        layer.slope.add_(1)
    assert not torch.equal(other(x), before)


def test_grouped_heads_lengths_statistics_and_dropout(blocks):
    query, key, value = tensor(B, 4, L, E), tensor(B, 2, S, E, seed=1), tensor(B, 2, S, E, seed=2)
    lengths = torch.tensor([4, 0])
    options = dict(key_lengths=lengths, return_lse=True, return_empty_rows=True, dropout_p=0.3, seed=5)
    score = fovea.Function(lambda q, k: q @ k.transpose(-1, -2) / E**0.5)
    for a, b in zip(fovea.attend(query, key, value, score, **options), fovea.attend(query, key, value, **options)):
        torch.testing.assert_close(a, b)
    with pytest.raises(ValueError, match="rows without a key"):
        fovea.attend(query, key, value, score, key_lengths=lengths, allow_empty_rows=False)


@pytest.mark.parametrize("name", NORMALISERS)
def test_a_log_sum_exp_is_given_or_refused_as_without_a_function(name, blocks):
    inputs = operands("dot")
    made = NORMALISERS[name]()

    def outcome(score):
        try:
            return fovea.attend(*inputs, score, made, return_lse=True)[1]
        except (RuntimeError, ValueError) as error:
            return str(error)

    plain, called = outcome(fovea.Dot()), outcome(fovea.Function(lambda q, k: q @ k.transpose(-1, -2) / E**0.5))
    if isinstance(plain, str):
        assert isinstance(called, str) and "log-sum-exp" in plain and "log-sum-exp" in called
    else:
        torch.testing.assert_close(called, plain)


def test_weights(blocks):
    query, key, _ = (x.detach() for x in operands("dot"))
    rule, causal = fovea.Where(lambda b, h, i, j: j <= i), fovea.Causal()
    for options in ({}, {"rows": [0, -1]}, {"rows": 2, "heads": 1}, {"column_sums": True}):
        torch.testing.assert_close(fovea.weights(query, key, structure=rule, **options), fovea.weights(query, key, structure=causal, **options))
    for a, b in zip(*(fovea.weights(query, key, structure=s, top_k=2) for s in (rule, causal))):
        torch.testing.assert_close(a, b)


def test_a_flex_attention_is_moved_over():
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    inputs = [x.detach() for x in (tensor(2, 2, 16, 8), tensor(2, 2, 16, 8, seed=1), tensor(2, 2, 16, 8, seed=2))]
    modify = lambda e, b, h, i, j: torch.where((i - j) % 2 == 0, e, 2 * e) + h
    keep = lambda b, h, i, j: (i >= j) | (j < 3)
    theirs = flex.flex_attention(*inputs, score_mod=modify, block_mask=flex.create_block_mask(keep, None, None, 16, 16, device="cpu"))
    torch.testing.assert_close(fovea.attend(*inputs, fovea.Dot().apply(modify), structure=fovea.Where(keep)), theirs)


def test_a_block_of_scores_is_all_that_is_held(monkeypatch):
    monkeypatch.setattr(fovea._functions, "BLOCK", 2 * B * H * S)
    seen, inputs = [], operands("dot")
    ours = fovea.attend(*inputs, fovea.Function(lambda q, k: seen.append(q.shape[2]) or q @ k.transpose(-1, -2)))
    assert seen == [2, 2, 1]
    ours.sum().backward()
    assert seen == [2, 2, 1] + sorted(seen[3:], key=seen[3:].index) and len(seen) == 6  # backward computes each again


def test_what_is_wrong_is_named():
    inputs = operands("dot")
    for call, kind, said in (
        (lambda: fovea.Function(3), TypeError, "Function.function: 3, expected a function"),
        (lambda: fovea.attend(*inputs, fovea.Function(lambda q, k: 1.0)), TypeError, "Function.function: gave 1.0, expected a tensor"),
        (lambda: fovea.attend(*inputs, structure=fovea.Where(lambda b, h, i, j: i - j)), TypeError, "Where.function: gave .*expected bool"),
        (lambda: fovea.attend(*inputs, fovea.Dot().apply(abs), strict=True), RuntimeError, "strict: a score or a mask is a Python function"),
        (lambda: fovea.attend(*inputs, fovea.Dot().apply(abs), scale=2.0), ValueError, "scale: given in the call, expected in the score"),
        (lambda: fovea.attend(*operands("dot", True), structure=PACKED["graph"]() & fovea.Where(abs)), ValueError, "query: packed, expected"),
    ):
        with pytest.raises(kind, match=said):
            call()
    assert "slow" in fovea.explain_dispatch(*inputs, structure=fovea.Where(lambda b, h, i, j: i >= j))
    assert "Where(" in repr(fovea.Causal() & fovea.Where(abs))
    assert repr(fovea.Dot().apply(abs).soft_cap(2.0)).startswith("Dot(scale=None).apply(<built-in function abs>).soft_cap")


def test_it_compiles():
    inputs = operands("dot")
    score, rule = fovea.Dot().apply(lambda e, b, h, i, j: e - (i - j).abs()), fovea.Where(lambda b, h, i, j: j <= i)
    model = lambda q, k, v: fovea.attend(q, k, v, score, structure=rule).square().sum()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    for a, b in zip(*(torch.autograd.grad(f(*inputs), inputs) for f in (compiled, model))):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("choice", [fovea.Function, fovea.Where])
def test_the_example_in_the_help_runs(choice):
    exec("\n".join(re.findall(r"^ *>>> (.*)$", choice.__doc__, re.M)), {"torch": torch, "fovea": fovea})
