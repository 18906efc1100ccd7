"""Wrong arguments are named, with what was expected and what was got; combinations without meaning give their reason."""

import pytest
import torch
from cases import operands

import fovea


def attend(**changes):
    query, key, value = operands("dot")
    arguments = {"query": query, "key": key, "value": value, **changes}
    return fovea.attend(**arguments)


def randn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"key": randn(2, 2, 7, 6)}, "key: width 6, expected 4"),
        ({"query": randn(2, 5, 4)}, "query: rank 3, expected 4"),
        ({"key": randn(2, 2, 7, 4).float()}, "key: float32, expected float64"),
        ({"key": randn(2, 2, 7, 4).long()}, "key: Long, expected float32"),
        ({"value": randn(2, 2, 6, 3)}, "value: size 6 .*expected 7"),
        ({"query": randn(2, 3, 5, 4)}, "key: 2 heads, expected a divisor of 3"),
        ({"key_lengths": torch.tensor([3, -1])}, r"key_lengths\[1\]: -1, expected between 0 and 7"),
        ({"key_lengths": torch.tensor([3, 8])}, r"key_lengths\[1\]: 8, expected between 0 and 7"),
        ({"key_lengths": torch.tensor([3.0, 4.0])}, "key_lengths: Float, expected int32"),
        ({"dropout_p": 1.0}, "dropout_p: 1.0.*below 1"),
        ({"score": fovea.Additive(randn(5))}, r"weight: shape \[5\], expected \[4\]"),
        ({"score": fovea.Kernel("gaussian", torch.nan)}, "bandwidth: nan, expected a positive"),
        ({"score": fovea.Kernel("gausian")}, "unknown 'gausian', expected one of gaussian"),
        ({"score": fovea.Dot().bias(randn(3, 7))}, "bias"),
        ({"score": fovea.Dot().bias(randn(5, 7).float())}, "bias: Float, expected Double"),
        ({"normaliser": fovea.TopK(9)}, "k: 9, expected at most 7"),
        ({"normaliser": fovea.Entmax(0.5)}, "alpha: 0.5.*above 1"),
        ({"structure": fovea.Keep(randn(5, 7))}, "mask: float64, expected bool"),
        ({"structure": fovea.Window(-2, 0)}, "left: -2, expected at least -1"),
        ({"scale": 1.0, "score": fovea.Cosine()}, "scale: cosine has none"),
        ({"scale": 1.0, "score": fovea.Dot(2.0)}, "scale: given twice"),
    ],
)
def test_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        attend(**changes)


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        (([0, 3, 2], [0, 3, 7]), r"query_offsets\[2\]: 2, expected at least 3"),
        (([0, 2, 6], [0, 3, 7]), r"query_offsets\[2\]: 6, expected at most 5"),
        (([0, 2, 5], [0, 3, 6]), "key_offsets: ends at 6, expected 7"),
        (([1, 2, 5], [0, 3, 7]), r"query_offsets\[0\]: 1, expected 0"),
    ],
)
def test_offsets_are_checked(offsets, message):
    query, key, value = operands("dot", packed=True)
    with pytest.raises(ValueError, match=message):
        fovea.attend(query, key, value, structure=fovea.Ragged(*map(torch.tensor, offsets)))


def test_a_graphs_columns_are_checked():
    query, key, value = operands("dot", packed=True)
    offsets = torch.tensor([0, 1, 1, 1, 1, 2])
    with pytest.raises(ValueError, match=r"columns\[1\]: 7, expected between 0 and 6"):
        fovea.attend(query, key, value, structure=fovea.Graph(offsets, torch.tensor([0, 7])))
    with pytest.raises(ValueError, match="columns: a number beyond 32 bits"):
        fovea.attend(query, key, value, structure=fovea.Graph(offsets, torch.tensor([0, 2**40])))


def test_combinations_without_meaning_say_why():
    with pytest.raises(RuntimeError, match="Silverman's kernel goes negative"):
        attend(score=fovea.Kernel("silverman"))
    with pytest.raises(RuntimeError, match="order"):
        attend(score=fovea.Dot().bias(randn(5, 7)).soft_cap(2.0))
    with pytest.raises(RuntimeError, match="no log-sum-exp"):
        attend(normaliser=fovea.Sparsemax(), return_lse=True)


def test_a_choice_of_the_wrong_kind_is_a_type_error():
    with pytest.raises(TypeError, match=r"score: str, expected a Score such as fovea.Dot\(\)"):
        attend(score="dot")


def test_a_selection_out_of_range_is_named():
    query, key, _ = operands("dot")
    with pytest.raises(ValueError, match=r"rows: outside 0 \.\. 4"):
        fovea.weights(query, key, rows=[5])
    with pytest.raises(ValueError, match="column_sums: given with top_k"):
        fovea.weights(query, key, top_k=2, column_sums=True)


def test_the_operators_text_is_checked():
    query, key, value = operands("dot")
    for text in ("", "dot", "dot;softmax", "dot;softmax;dense;more", "dot:scale=x;softmax;dense", "dot|custom:handle=9;softmax;dense",
                 "bilinear:weight=@0;softmax;dense", "dot;softmax;window:left", "dot;softmax;window:middle=1"):  # fmt: skip
        with pytest.raises(ValueError):
            torch.ops.fovea.attend(query, key, value, text, [])
    with pytest.raises(ValueError, match="arrays: 1 given, expected 0"):
        torch.ops.fovea.attend(query, key, value, "dot;softmax;dense", [query])
