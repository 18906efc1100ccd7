"""Selected weights are those of the whole rows."""

import pytest
import torch
from cases import H, L, NORMALISERS, PACKED, S, SCORES, STRUCTURES, operands

import fovea


def whole(score, normaliser, structure, packed=False, **options):
    """Every weight, read off by attending to unit vectors."""
    query, key, _ = operands(score, packed)
    shape = (S, H, S) if packed else (2, H, S, S)
    eye = torch.eye(S, dtype=torch.float64)
    value = eye[:, None].expand(shape) if packed else eye.expand(shape)
    return fovea.attend(query, key, value, score_of(score), normaliser, structure, **options)


def score_of(name):
    return SCORES[name][2]()


@pytest.mark.parametrize("score", [name for name in SCORES if name != "relative"])
def test_of_each_score(score):
    query, key, _ = operands(score)
    got = fovea.weights(query, key, score_of(score))
    assert torch.allclose(got, whole(score, fovea.Softmax(), fovea.Dense()), atol=1e-12)


@pytest.mark.parametrize("normaliser", NORMALISERS)
def test_of_each_normaliser(normaliser):
    query, key, _ = operands("dot")
    got = fovea.weights(query, key, normaliser=NORMALISERS[normaliser]())
    assert torch.allclose(got, whole("dot", NORMALISERS[normaliser](), fovea.Dense()), atol=1e-12)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_of_each_structure(structure):
    query, key, _ = operands("dot")
    all_weights = whole("dot", fovea.Softmax(), STRUCTURES[structure]())
    chosen = dict(rows=[4, 1], heads=[1])
    got = fovea.weights(query, key, structure=STRUCTURES[structure](), **chosen)
    assert torch.allclose(got, all_weights[:, [1]][:, :, [4, 1]], atol=1e-12)
    sums = fovea.weights(query, key, structure=STRUCTURES[structure](), column_sums=True, **chosen)
    assert torch.allclose(sums, all_weights[:, [1]][:, :, [4, 1]].sum(2), atol=1e-12)
    values, indices = fovea.weights(query, key, structure=STRUCTURES[structure](), top_k=3, **chosen)
    expected = all_weights[:, [1]][:, :, [4, 1]].sort(dim=-1, descending=True, stable=True)
    assert torch.allclose(values, expected.values[..., :3], atol=1e-12)
    seen = indices >= 0
    assert torch.equal(indices[seen].long(), expected.indices[..., :3][seen])
    assert (values[~seen] == 0).all()


def test_of_a_graph_and_of_a_ragged_batch():
    query, key, _ = operands("dot", packed=True)
    graph = fovea.weights(query, key, structure=PACKED["graph"]())
    expected = whole("dot", fovea.Softmax(), PACKED["graph"](), packed=True).transpose(0, 1)
    assert torch.allclose(graph[0], expected, atol=1e-12)
    ragged = fovea.weights(query, key, structure=PACKED["ragged"]())
    everything = whole("dot", fovea.Softmax(), PACKED["ragged"](), packed=True).transpose(0, 1)
    assert ragged.shape == (2, H, 3, 4)
    assert torch.allclose(ragged[0, :, :2, :3], everything[:, :2, :3], atol=1e-12)
    assert torch.allclose(ragged[1], everything[:, 2:, 3:], atol=1e-12)
    assert (ragged[0, :, 2:] == 0).all() and (ragged[0, :, :, 3:] == 0).all()


def test_has_no_gradient_and_no_dropout():
    query, key, _ = operands("dot")
    assert not fovea.weights(query, key).requires_grad


@pytest.mark.parametrize(
    ("rows", "positions"),
    [
        (2, [2]), (-1, [4]), ([0, -2], [0, 3]), (slice(1, 4), [1, 2, 3]), (slice(None, None, -2), [4, 2, 0]), (slice(9, 12), []),
        (range(2), [0, 1]), (torch.tensor([-1, 1]), [4, 1]),
    ],
)  # fmt: skip
def test_rows_and_heads_are_chosen_as_python_does(rows, positions):
    query, key, _ = operands("dot")
    everything = fovea.weights(query, key)
    assert torch.equal(fovea.weights(query, key, rows=rows), everything[:, :, positions])
    assert torch.equal(fovea.weights(query, key, heads=-1), everything[:, [1]])


def test_the_end_of_a_ragged_batch_is_that_of_its_longest_sequence():
    query, key, _ = operands("dot", packed=True)
    ragged = PACKED["ragged"]()  # 2 and 3 queries
    everything = fovea.weights(query, key, structure=ragged)
    assert torch.equal(fovea.weights(query, key, structure=ragged, rows=slice(1, None)), everything[:, :, 1:])
    assert torch.equal(fovea.weights(query, key, structure=ragged, rows=-1), everything[:, :, [2]])


@pytest.mark.parametrize("structure", [fovea.Causal(), fovea.Where(lambda b, h, i, j: j <= i)])
def test_none_of_the_largest_is_not_all_weights(structure):
    query, key, _ = operands("dot")
    for wrong in (0, -1):
        with pytest.raises(ValueError, match=f"top_k: {wrong}, expected at least 1"):
            fovea.weights(query, key, structure=structure, top_k=wrong)


def test_weights_that_do_not_fit_are_named():
    query, key, _ = operands("dot")
    for wrong in (2**31, 2**40, 2**63 - 1):
        with pytest.raises(ValueError, match=f"top_k: {wrong}, expected 0 .. 2147483647"):
            fovea.weights(query, key, top_k=wrong)
    many = torch.zeros(1, 1, 1).expand(1, 1, 2**23, 1)
    with pytest.raises(MemoryError, match=r"weights: \[1, 1, 8388608, 8388608\] do not fit into memory; rows, heads and top_k choose fewer"):
        fovea.weights(many, many)
