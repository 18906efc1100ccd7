"""A step under a cache: with query_offset the last rows have what the same rows have in the whole. And scores that are not finite."""

import pytest
import torch

import fovea

B, H, L, E, EV = 2, 2, 23, 4, 3
STEPS = (1, 3, 17)


def tensor(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed + sum(shape)))


def operands():
    return tensor(B, H, L, E).requires_grad_(), tensor(B, H, L, E, seed=1), tensor(B, H, L, EV, seed=2)


SCORES = {
    "dot": lambda: fovea.Dot(),
    "alibi": lambda: fovea.Dot().alibi(tensor(H).abs()),
    "relative": lambda: fovea.Dot().relative(tensor(7, E), tensor(7, EV), 3),
}
STRUCTURES = {
    "dense": lambda: fovea.Dense(),
    "causal": lambda: fovea.Causal(),
    "window": lambda: fovea.Window(4, 1),
    "prefix": lambda: fovea.Prefix(5),
    "prefix_per_item": lambda: fovea.Prefix(torch.tensor([3, 9])),
    "strided": lambda: fovea.Strided(4),
    "fixed": lambda: fovea.Fixed(5, 2),
    "causal_and_window": lambda: fovea.Causal() & fovea.Window(3, -1),
    "first": lambda: fovea.First(3),
    "streaming": lambda: fovea.Causal() & (fovea.Window(3, 0) | fovea.First(2)),
    "beyond_window": lambda: fovea.Causal() & ~fovea.Window(3, 2),
}


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("score", SCORES)
def test_a_step_equals_the_last_rows_of_the_whole(score, structure):
    query, key, value = operands()
    chosen, seen = SCORES[score](), STRUCTURES[structure]()
    whole, lse = fovea.attend(query, key, value, chosen, structure=seen, return_lse=True, dropout_p=0.2, seed=3)
    weights = fovea.weights(query, key, chosen, structure=seen)
    for n in STEPS:
        last = query.detach()[:, :, -n:].clone().requires_grad_()
        for offset in (L - n, torch.tensor([L - n] * B)):
            got, got_lse = fovea.attend(
                last, key, value, chosen, structure=seen, return_lse=True, dropout_p=0.2, seed=3, query_offset=offset
            )
            assert torch.allclose(got, whole[:, :, -n:]) and torch.allclose(got_lse, lse[:, :, -n:])
            direction = tensor(B, H, n, EV, seed=7)
            (expected,) = torch.autograd.grad((whole[:, :, -n:] * direction).sum(), query, retain_graph=True)
            (step,) = torch.autograd.grad((got * direction).sum(), last)
            assert torch.allclose(step, expected[:, :, -n:])
            assert torch.allclose(fovea.weights(last, key, chosen, structure=seen, query_offset=offset), weights[:, :, -n:])


def test_the_composed_formula_has_the_same_positions():
    # Second derivatives go through it: they must be those of the same rows of the whole.
    query, key, value = operands()
    chosen = fovea.Dot().alibi(torch.tensor([0.3, 0.1], dtype=torch.float64))

    def second(queries, offset):
        out = fovea.attend(queries, key, value, chosen, structure=fovea.Window(6, 0), query_offset=offset)
        (first,) = torch.autograd.grad(out[:, :, -3:].square().sum(), queries, create_graph=True)
        return torch.autograd.grad(first[:, :, -3:].square().sum(), queries)[0][:, :, -3:]

    last = query.detach()[:, :, -3:].clone().requires_grad_()
    assert torch.allclose(second(last, L - 3), second(query, 0))


def test_items_of_their_own_lengths_end_where_each_ends():
    query, key, value = operands()
    lengths = torch.tensor([L, 14])
    whole = fovea.attend(query, key, value, structure=fovea.Window(5, 0), key_lengths=lengths)
    step = torch.stack([query[b, :, n - 1 : n] for b, n in enumerate(lengths)])
    got = fovea.attend(step, key, value, structure=fovea.Window(5, 0), key_lengths=lengths, query_offset=lengths - 1)
    assert torch.allclose(got, torch.stack([whole[b, :, n - 1 : n] for b, n in enumerate(lengths)]))


def test_packed_sequences_have_an_offset_each():
    query, key, value = tensor(10, H, E), tensor(10, H, E, seed=1), tensor(10, H, EV, seed=2)
    ends = torch.tensor([0, 6, 10])
    whole = fovea.attend(query, key, value, structure=fovea.Ragged(ends, ends) & fovea.Window(2, 0))
    last = torch.tensor([5, 9])
    step = fovea.Ragged(torch.tensor([0, 1, 2]), ends) & fovea.Window(2, 0)
    got = fovea.attend(query[last], key, value, structure=step, query_offset=torch.tensor([5, 3]))
    assert torch.allclose(got, whole[last])


def test_the_bottom_right_is_an_offset_for_everything_that_counts_positions():
    query, key, value = operands()
    chosen = fovea.Dot().alibi(torch.tensor([0.3, 0.1], dtype=torch.float64))
    whole = fovea.attend(query, key, value, chosen, structure=fovea.Causal() & fovea.Window(4, -1))
    structure = fovea.Causal("bottom_right") & fovea.Window(4, -1)
    assert torch.allclose(fovea.attend(query[:, :, -3:], key, value, chosen, structure=structure), whole[:, :, -3:])
    with pytest.raises(RuntimeError, match="query_offset with causal to the bottom right"):
        fovea.attend(query[:, :, -3:], key, value, structure=structure, query_offset=L - 3)


def test_vmap_maps_an_offset():
    query, key, value = (x.detach() for x in operands())
    offsets = torch.tensor([4, 11, 20])

    def one(offset):
        return fovea.attend(query[:, :, :2], key, value, structure=fovea.Window(3, 0), query_offset=offset)

    got = torch.vmap(one)(offsets)
    assert torch.allclose(got, torch.stack([one(int(n)) for n in offsets]))


def test_an_offset_that_varies_is_one_compiled_graph():
    query, key, value = (x.detach() for x in operands())
    graphs = 0

    def count(graph, _):
        nonlocal graphs
        graphs += 1
        return graph

    @torch.compile(backend=count, fullgraph=True, dynamic=True)
    def step(x, n):
        return fovea.attend(x, key, value, structure=fovea.Window(3, 0), query_offset=n)

    for n in (5, 6, 9, 20):
        x = query[:, :, :1]
        assert torch.allclose(step(x, n), fovea.attend(x, key, value, structure=fovea.Window(3, 0), query_offset=n))
    assert graphs == 1


@pytest.mark.parametrize(
    ("offset", "error", "says"),
    [
        (torch.tensor([1, 2, 3]), ValueError, "query_offset: size 3 in dimension 0, expected 2"),
        (torch.tensor([1.0, 2.0]), ValueError, "query_offset: Float, expected int32 or int64"),
        (1.5, TypeError, "query_offset: .*expected a whole number"),
        (2**40, ValueError, "query_offset: a number beyond 32 bits"),
    ],
)
def test_a_wrong_offset_is_named(offset, error, says):
    query, key, value = operands()
    with pytest.raises(error, match=says):
        fovea.attend(query, key, value, structure=fovea.Causal(), query_offset=offset)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_score_that_is_not_finite_is_nan_in_its_own_row(bad):
    query, key, value = operands()
    bias = torch.zeros(B, H, L, L, dtype=torch.float64)
    bias[1, 0, 7, 2] = bad
    bias.requires_grad_()
    out, lse = fovea.attend(query, key, value, fovea.Dot().bias(bias), structure=fovea.Causal(), return_lse=True)
    none = torch.zeros(B, H, L, L, dtype=torch.float64)  # the same path, so the same bits
    clean, clean_lse = fovea.attend(query, key, value, fovea.Dot().bias(none), structure=fovea.Causal(), return_lse=True)
    spoiled = torch.zeros(B, H, L, dtype=torch.bool)
    spoiled[1, 0, 7] = True
    assert out[spoiled].isnan().all() and torch.equal(out[~spoiled], clean[~spoiled])
    assert lse[spoiled].isnan().all() and torch.equal(lse[~spoiled], clean_lse[~spoiled])
    # libtorch's attention gives the same rows.
    mask = torch.ones(L, L, dtype=torch.bool).tril()
    theirs = torch.nn.functional.scaled_dot_product_attention(query, key, value, bias.masked_fill(~mask, -torch.inf))
    assert torch.equal(theirs.isnan().any(-1), spoiled)
    (d_query,) = torch.autograd.grad(out.sum(), query)
    assert d_query[spoiled].isnan().all() and not d_query[~spoiled].isnan().any()
    with pytest.raises(ValueError, match="batch 1, head 0, query 7"):
        fovea.attend(query, key, value, fovea.Dot().bias(bias), structure=fovea.Causal(), check_finite=True)
    with pytest.raises(ValueError, match="batch 1, head 0, query 7"):
        fovea.weights(query, key, fovea.Dot().bias(bias), structure=fovea.Causal(), check_finite=True)
    weights = fovea.weights(query, key, fovea.Dot().bias(bias), structure=fovea.Causal())
    assert weights[1, 0, 7, :8].isnan().all() and (weights[1, 0, 7, 8:] == 0).all() and not weights[~spoiled].isnan().any()
