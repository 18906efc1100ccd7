"""Wrong arguments are named, with what was expected and what was got; combinations without meaning give their reason."""

import re

import numpy as np
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
        ({"query": randn(2, 5, 4)}, r"query: rank 3, expected 4, \[batch, heads, length, width\]; rank 3 is for packed .* ragged or graph"),
        ({"query": randn(5, 4)}, r"query: rank 2, expected 4, \[batch, heads, length, width\], or 3 for packed"),
        ({"key": randn(2, 2, 7, 4).float()}, "key: float32, expected float64"),
        ({"key": randn(2, 2, 7, 4).long()}, "key: Long, expected float32"),
        ({"query": randn(2, 2, 5, 4).to(torch.float8_e4m3fn)}, r"query: Float8_e4m3fn, expected float32.*; query\.to\(\.\.\.\) converts it"),
        ({"value": randn(2, 2, 6, 3)}, "value: size 6 .*expected 7"),
        ({"query": randn(2, 3, 5, 4)}, "key: 2 heads, expected a divisor of 3"),
        ({"key_lengths": torch.tensor([3, -1])}, r"key_lengths\[1\]: -1, expected between 0 and 7"),
        ({"key_lengths": torch.tensor([3, 8])}, r"key_lengths\[1\]: 8, expected between 0 and 7"),
        ({"key_lengths": torch.tensor([3.0, 4.0])}, "key_lengths: Float, expected int32"),
        ({"dropout_p": 1.0}, "dropout_p: 1.0.*below 1"),
        ({"score": fovea.Additive(randn(5))}, r"weight: shape \[5\], expected \[4\]"),
        ({"score": fovea.Kernel("gaussian", torch.tensor([-1.0], dtype=torch.float64))}, "bandwidth: -1.0.*, expected a positive"),
        ({"score": fovea.Dot().bias(randn(3, 7))}, "bias"),
        ({"score": fovea.Dot().bias(randn(5, 7).float())}, "bias: Float, expected Double"),
        ({"normaliser": fovea.Entmax(torch.tensor([torch.nan, 2], dtype=torch.float64))}, "alpha: nan, expected a finite number"),
        ({"scale": 1.0, "score": fovea.Cosine()}, "scale: cosine has none"),
        ({"scale": 1.0, "score": fovea.Dot(2.0)}, "scale: given twice"),
        ({"scale": torch.ones(3)}, r"scale: shape \[3\], expected one number or \[2\] \(heads\)"),
        ({"scale": torch.ones(2, 1, 2)}, r"scale: shape \[2, 1, 2\], expected one number, or \[H\]"),
    ],
)
def test_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        attend(**changes)


NOT_DENSE = {
    "a sparse tensor, expected a dense one; {}.to_dense()": torch.Tensor.to_sparse,
    "a quantised tensor of QInt8, expected a dense one; {}.dequantize()": lambda x: torch.quantize_per_tensor(x.float(), 0.1, 0, torch.qint8),
    "a tensor in oneDNN's layout, expected a dense one; {}.to_dense()": lambda x: x.float().to_mkldnn(),
}


@pytest.mark.parametrize("message", NOT_DENSE)
@pytest.mark.parametrize("argument", ["query", "key", "value"])
def test_an_operand_that_is_not_dense_is_named_with_what_makes_it_so(argument, message):
    given = dict(zip(("query", "key", "value"), operands("dot")))
    given[argument] = NOT_DENSE[message](given[argument])
    calls = [fovea.attend, lambda **arguments: fovea.attend(**arguments, return_lse=True), fovea.explain_dispatch]
    if argument != "value":
        calls.append(lambda query, key, value: fovea.weights(query, key))
    for call in calls:
        with pytest.raises(ValueError, match=f"^{argument}: {re.escape(message.format(argument))} makes one$"):
            call(**given)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("mask", lambda: attend(structure=fovea.Causal() & fovea.Keep(torch.ones(5, 7, dtype=torch.bool).to_sparse()))),
        ("bias", lambda: attend(score=fovea.Dot().bias(randn(5, 7).to_sparse_csr()))),
        ("weight", lambda: attend(score=fovea.Additive(randn(4).to_sparse()))),
        ("key_lengths", lambda: attend(key_lengths=torch.tensor([3, 4]).to_sparse())),
        ("query_offset", lambda: attend(query_offset=torch.tensor([3, 4]).to_sparse())),
        ("scale", lambda: attend(scale=randn(2).to_sparse())),
        ("rows", lambda: fovea.weights(*operands("dot")[:2], rows=torch.tensor([1]).to_sparse())),
        ("arcs", lambda: fovea.tree_marginals(randn(1, 4, 4).to_sparse())),
        ("key", lambda: fovea.nn.MultiheadAttention(4, 2)(randn(5, 4), randn(7, 4).to_sparse(), randn(7, 4))),
        ("attn_mask", lambda: fovea.nn.MultiheadAttention(4, 2)(randn(5, 4), randn(5, 4), randn(5, 4), attn_mask=torch.eye(5).to_sparse())),
        ("query", lambda: fovea.nn.AdditiveAttention(4, 4, 3)(randn(1, 5, 4).to_sparse(), randn(1, 7, 4))),
        ("instances", lambda: fovea.nn.MultipleInstance(4, 3)(randn(2, 5, 4).to_sparse())),
        ("scores", lambda: fovea.nn.fenchel_young_loss(randn(3, 4).to_sparse(), torch.tensor([0, 1, 2]))),
        ("query", lambda: fovea.attend(randn(1, 1, 5, 4).to_sparse(), randn(1, 1, 7, 4), randn(1, 1, 7, 4), fovea.Dot().apply(lambda e, *places: e))),
    ],
)  # fmt: skip
def test_an_argument_that_is_sparse_is_named(name, make):
    with pytest.raises(ValueError, match=rf"^{name}: a sparse tensor, expected a dense one; {name}.to_dense\(\) makes one$"):
        make()


def test_a_sparse_gradient_is_named():
    query, key, value = operands("dot")
    output = fovea.attend(query.requires_grad_(), key, value)
    with pytest.raises(RuntimeError, match="d_output: a sparse tensor, expected a dense one"):
        output.backward(torch.ones_like(output).to_sparse())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": None}, "value: None, expected a torch.Tensor$"),
        ({"query": np.ones((2, 2, 5, 4))}, r"query: numpy.ndarray, expected a torch.Tensor; torch.from_numpy\(query\) makes one"),
        ({"key": [[1.0]]}, r"key: list, expected a torch.Tensor; torch.tensor\(key\) makes one"),
        ({"key_lengths": [3, 4]}, r"key_lengths: list, expected a torch.Tensor; torch.tensor\(key_lengths\) makes one"),
        ({"dropout_p": "x"}, "dropout_p: str 'x', expected a number"),
        ({"dropout_p": None}, "dropout_p: None, expected a number"),
        ({"scale": "big"}, "scale: str 'big', expected a number"),
        ({"seed": 1.5}, "seed: 1.5, expected a whole number"),
        ({"score": "dot"}, r"score: str 'dot', expected a Score such as fovea.Dot\(\)"),
        ({"score": fovea.Softmax()}, r"score: fovea.Softmax, expected a Score such as fovea.Dot\(\)"),
        ({"score": torch.ones(5, 7, dtype=torch.bool)}, r"score: a tensor \[5, 7\] of bool, expected a Score such as .*structure=fovea.Keep\(mask\)"),
        ({"query_offset": [1, 2]}, r"query_offset: list, expected a torch.Tensor; torch.tensor\(query_offset\) makes one"),
        ({"structure": fovea.Causal}, r"structure: the class Causal, expected a Structure such as Causal\(\)"),
        ({"is_causal": True}, r"attend: no argument 'is_causal'; structure=fovea.Causal\(\) is what it does"),
        ({"attn_mask": None}, r"attend: no argument 'attn_mask'; structure=fovea.Keep\(mask\) .*score=fovea.Dot\(\).bias\(mask\)"),
        ({"normalizer": fovea.Softmax()}, "attend: no argument 'normalizer'; it is spelt normaliser"),
        ({"structur": fovea.Causal()}, "attend: no argument 'structur'; did you mean structure?"),
        ({"xyz": 1}, "attend: no argument 'xyz'; expected some of query, key, value, score"),
    ],
)
def test_of_a_wrong_type_is_named_with_what_to_do(changes, message):
    with pytest.raises(TypeError, match=message):
        attend(**changes)


def test_a_number_too_large_and_a_bias_of_too_many_dimensions_are_named():
    with pytest.raises(ValueError, match="^scale: a whole number beyond the largest float, expected a number$"):
        attend(scale=10**400)
    with pytest.raises(ValueError, match="^bias: rank 5, expected at most 4$"):
        attend(score=fovea.Dot().bias(torch.zeros(1, 1, 1, 5, 7).double()))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: fovea.Kernel("gausian"), ValueError, "Kernel.name: unknown 'gausian', expected one of gaussian"),
        (lambda: fovea.Causal(True), ValueError, "Causal.alignment: unknown True, expected one of top_left, bottom_right"),
        (lambda: fovea.Entmax("1.5"), TypeError, "Entmax.alpha: str '1.5', expected a number"),
        (lambda: fovea.Entmax(torch.ones(2, 3)), ValueError, r"Entmax.alpha: shape \[2, 3\], expected a number, \[1\] or \[H\]"),
        (lambda: fovea.Dot().alibi([0.5, 0.25]), TypeError, r"alibi.slopes: list, expected a torch.Tensor; torch.tensor\(slopes\) makes one"),
        (lambda: fovea.Dot().bias(np.ones(3)), TypeError, r"bias.bias: numpy.ndarray, .*torch.from_numpy\(bias\) makes one"),
        (lambda: fovea.Additive(None), TypeError, "Additive.weight: None, expected a torch.Tensor"),
        (lambda: fovea.TopK(2.5), TypeError, "TopK.k: 2.5, expected a whole number"),
        (lambda: fovea.TopK(True), TypeError, "TopK.k: True, expected a whole number"),
        (lambda: fovea.Window("3"), TypeError, "Window.left: str '3', expected a whole number"),
        (lambda: fovea.Hard(sample="yes"), TypeError, "Hard.sample: str 'yes', expected True or False"),
        (lambda: fovea.Dot(scale=[1.0]), TypeError, "Dot.scale: list, expected a number"),
        (lambda: fovea.Dot().soft_cap("30"), TypeError, "soft_cap.cap: str '30', expected a number"),
        (lambda: fovea.Ragged([0, 2], [0, 3]), TypeError, r"Ragged.query_offsets: list, .*torch.tensor\(query_offsets\) makes one"),
    ],
)  # fmt: skip
def test_a_choice_checks_itself_when_it_is_made(make, error, message):
    with pytest.raises(error, match=message):
        make()


NAN, INF = float("nan"), float("inf")
BOOLS, WHOLE, REAL = torch.ones(2, dtype=torch.bool), torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.float64)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fovea.Dot(NAN), "Dot.scale: nan, expected a finite number"),
        (lambda: fovea.Dot(np.float32("inf")), "Dot.scale: inf, expected a finite number"),
        (lambda: fovea.Bilinear(REAL, NAN), "Bilinear.scale: nan, expected a finite number"),
        (lambda: fovea.Bilinear(WHOLE), r"Bilinear.weight: a tensor \[2\] of int64, expected a tensor of a floating-point type"),
        (lambda: fovea.Additive(REAL, negative_slope=NAN), "Additive.negative_slope: nan, expected a finite number"),
        (lambda: fovea.RankOne(INF), "RankOne.negative_slope: inf, expected a finite number"),
        (lambda: fovea.Kernel("gaussian", -1.0), "Kernel.bandwidth: -1.0, expected a positive finite number"),
        (lambda: fovea.Kernel("gaussian", 0), "Kernel.bandwidth: 0.0, expected a positive finite number"),
        (lambda: fovea.Kernel("box", NAN), "Kernel.bandwidth: nan, expected a positive finite number"),
        (lambda: fovea.Cosine(INF), "Cosine.beta: inf, expected a finite number"),
        (lambda: fovea.Dot().soft_cap(0), "soft_cap.cap: 0.0, expected a positive finite number"),
        (lambda: fovea.Dot().soft_cap(NAN), "soft_cap.cap: nan, expected a positive finite number"),
        (lambda: fovea.Dot().relative(None, None, -1), "relative.clip: -1, expected at least 0"),
        (lambda: fovea.Dot().bias(BOOLS), r"bias.bias: a tensor \[2\] of bool, expected .*; fovea.Keep\(mask\) takes a bool one"),
        (lambda: fovea.Dot().alibi(WHOLE), r"alibi.slopes: a tensor \[2\] of int64, expected a tensor of a floating-point type"),
        (lambda: fovea.Softmax(NAN), "Softmax.sink: nan, expected a number other than NaN"),
        (lambda: fovea.Entmax(0.5), "Entmax.alpha: 0.5, expected a finite number, at least 1"),
        (lambda: fovea.Entmax(NAN), "Entmax.alpha: nan, expected a finite number, at least 1"),
        (lambda: fovea.Entmax(WHOLE), r"Entmax.alpha: a tensor \[2\] of int64, expected a tensor of a floating-point type"),
        (lambda: fovea.TopK(0), "TopK.k: 0, expected at least 1"),
        (lambda: fovea.TopK(2**64), "TopK.k: 18446744073709551616, expected a number of 64 bits"),
        (lambda: fovea.Window(-2), r"Window.left: -2, expected at least -1 \(unbounded\)"),
        (lambda: fovea.Window(0, -2), r"Window.right: -2, expected at least -1 \(unbounded\)"),
        (lambda: fovea.Prefix(-1), "Prefix.length: -1, expected at least 0"),
        (lambda: fovea.Prefix(REAL), r"Prefix.length: a tensor \[2\] of float64, expected a whole number, or whole numbers \[B\]"),
        (lambda: fovea.Strided(0), "Strided.stride: 0, expected at least 1"),
        (lambda: fovea.Fixed(0), "Fixed.stride: 0, expected at least 1"),
        (lambda: fovea.Fixed(4, -1), "Fixed.summary: -1, expected at least 0"),
        (lambda: fovea.Fixed(4, 5), r"Fixed.summary: 5, expected at most 4 \(the stride\)"),
        (lambda: fovea.Blocks(BOOLS, 0), "Blocks.size: 0, expected at least 1"),
        (lambda: fovea.Blocks(WHOLE), r"Blocks.mask: a tensor \[2\] of int64, expected a tensor of bool"),
        (lambda: fovea.Keep(REAL), r"Keep.mask: a tensor \[2\] of float64, expected a tensor of bool"),
        (lambda: fovea.Documents(REAL, WHOLE), r"Documents.query_ids: a tensor \[2\] of float64, expected a tensor of whole numbers"),
        (lambda: fovea.Ragged(WHOLE, BOOLS), r"Ragged.key_offsets: a tensor \[2\] of bool, expected a tensor of whole numbers"),
        (lambda: fovea.Graph(WHOLE, REAL), r"Graph.columns: a tensor \[2\] of float64, expected a tensor of whole numbers"),
    ],
)  # fmt: skip
def test_a_choice_of_a_number_out_of_range_is_refused_when_it_is_made(make, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        make()


def test_a_number_beyond_64_bits_is_named():
    query, key, _ = operands("dot")
    with pytest.raises(ValueError, match="^query_offset: 9223372036854775808, expected a number of 64 bits$"):
        attend(query_offset=2**63, structure=fovea.Causal())
    with pytest.raises(ValueError, match="^top_k: 9223372036854775808, expected a number of 64 bits$"):
        fovea.weights(query, key, top_k=2**63)


def test_the_ends_of_the_ranges_are_in_them():
    query, key, value = operands("dot")
    for chosen in (fovea.Window(-1, 0), fovea.Window(0, -1), fovea.Prefix(0), fovea.Strided(1), fovea.Fixed(3, 0), fovea.Fixed(3, 3), fovea.Window(2**63 - 1)):
        assert fovea.attend(query, key, value, structure=chosen).isfinite().all()
    for chosen in (fovea.TopK(1), fovea.TopK(2**63 - 1), fovea.Entmax(1), fovea.Softmax(-INF)):
        assert fovea.attend(query, key, value, normaliser=chosen).isfinite().all()


def test_the_operator_refuses_the_numbers_that_the_choices_do():
    """A number that a trace cannot judge comes to the operator as it is."""
    query, key, value = operands("dot")
    for text, numbers, name in (
        ("dot;top_k:k=#;dense", [0], "k: 0"),
        ("dot;entmax:alpha=0.5;dense", [], "alpha: 0.5"),
        ("dot|soft_cap:cap=0;softmax;dense", [], "cap: 0"),
        ("dot:scale=nan;softmax;dense", [], "scale: nan"),
        ("dot;softmax;window:left=#", [-2], "left: -2"),
        ("dot;softmax;prefix:length=#", [-1], "length: -1"),
        ("dot;softmax;strided:stride=#", [0], "stride: 0"),
        ("dot;softmax;fixed:stride=#,summary=#", [4, 5], "summary: 5"),
    ):
        with pytest.raises(ValueError, match=name):
            torch.ops.fovea.attend(query, key, value, text, [], numbers)


def test_other_functions_know_their_arguments_too():
    query, key, value = operands("dot")
    with pytest.raises(TypeError, match="weights: no argument 'value'"):
        fovea.weights(query, key, value=value)
    with pytest.raises(TypeError, match="weights: no argument 'is_causal'; structure=fovea.Causal"):
        fovea.weights(query, key, is_causal=True)
    with pytest.raises(TypeError, match="explain_dispatch: no argument 'attn_mask'"):
        fovea.explain_dispatch(query, key, value, attn_mask=None)
    with pytest.raises(TypeError, match="dropout_p: str 'x', expected a number"):
        fovea.explain_dispatch(query, key, value, dropout_p="x")
    with pytest.raises(TypeError, match="key_lengths: list, expected a torch.Tensor"):
        fovea.explain_dispatch(query, key, value, key_lengths=[1, 2])


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


def test_a_selection_out_of_range_is_named():
    query, key, _ = operands("dot")
    for rows in (5, [0, 5], -6):
        with pytest.raises(ValueError, match=r"rows: (5|-6), expected -5 \.\. 4"):
            fovea.weights(query, key, rows=rows)
    with pytest.raises(ValueError, match=r"heads: 2, expected 0 \.\. 1"):
        fovea.weights(query, key, heads=torch.tensor([2]))
    with pytest.raises(TypeError, match="rows: 1.5, expected a whole number"):
        fovea.weights(query, key, rows=[1.5])
    with pytest.raises(ValueError, match=r"rows: a tensor \[5\] of bool, expected a list of whole numbers"):
        fovea.weights(query, key, rows=torch.ones(5, dtype=torch.bool))
    with pytest.raises(ValueError, match="column_sums: given with top_k"):
        fovea.weights(query, key, top_k=2, column_sums=True)


def test_the_operators_text_is_checked():
    query, key, value = operands("dot")
    for text in ("", "dot", "dot;softmax", "dot;softmax;dense;more", "dot:scale=x;softmax;dense", "dot|custom:handle=9;softmax;dense",
                 "bilinear:weight=@;softmax;dense", "bilinear:weight=x;softmax;dense", "dot;softmax;window:left=#", "dot;softmax;window:left", "dot;softmax;window:middle=1"):  # fmt: skip
        with pytest.raises(ValueError):
            torch.ops.fovea.attend(query, key, value, text, [])
    with pytest.raises(ValueError, match="arrays: 1 given, expected 0"):
        torch.ops.fovea.attend(query, key, value, "dot;softmax;dense", [query])
