"""A user's file that test_types.py gives to a type checker; it is not run."""

from typing import Tuple

import torch
from typing_extensions import assert_type

import fovea

query = torch.randn(1, 2, 5, 8)
ids = torch.tensor([0, 0, 1, 1, 1])

score = fovea.Additive(torch.randn(8), activation="leaky_relu").bias(torch.randn(5, 5)).soft_cap(3.0)
assert_type(score, fovea.Score)
structure = fovea.Window(3, -1) & fovea.Documents(ids, ids) & fovea.Causal("bottom_right")
assert_type(structure, fovea.Structure)

out = fovea.attend(query, query, query, score, fovea.Entmax(1.5), structure, key_lengths=torch.tensor([4]))
assert_type(out, torch.Tensor)
assert_type(fovea.attend(query, query, query, return_lse=True), Tuple[torch.Tensor, torch.Tensor])
assert_type(fovea.attend(query, query, query, return_empty_rows=True), Tuple[torch.Tensor, torch.Tensor])
everything = fovea.attend(query, query, query, return_lse=True, return_empty_rows=True, dropout_p=0.1, seed=3, strict=True)
assert_type(everything, Tuple[torch.Tensor, torch.Tensor, torch.Tensor])

assert_type(fovea.weights(query, query, rows=[0, 2], heads=torch.tensor([1])), torch.Tensor)
assert_type(fovea.weights(query, query, top_k=2), Tuple[torch.Tensor, torch.Tensor])
assert_type(fovea.attend(query, query, query, structure=fovea.Prefix(ids), query_offset=4, check_finite=True), torch.Tensor)
assert_type(fovea.weights(query, query, query_offset=ids), torch.Tensor)
assert_type(fovea.explain_dispatch(query, query, query, scale=0.5), str)
assert_type(fovea.simd_target(), str)
assert_type(fovea.__version__, str)

# Each of these is a mistake; without an error here the checker would say that the comment is not needed.
fovea.Kernel("gausian")  # type: ignore[arg-type]
fovea.Causal("left_top")  # type: ignore[arg-type]
fovea.attend(query, query, query, fovea.Softmax())  # type: ignore[call-overload]
fovea.attend(query, query, query, normalizer=fovea.Softmax())  # type: ignore[call-overload]
fovea.Causal() & fovea.Softmax()  # type: ignore[operator]
