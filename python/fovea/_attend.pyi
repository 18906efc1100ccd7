# What the functions of _attend.py return, by what they are asked for: a tensor, or a tuple with what else was wanted.
from typing import List, Literal, Optional, Sequence, Tuple, Union, overload

from torch import Tensor

from ._normalisers import Normaliser
from ._scores import Score
from ._structures import Structure

Indices = Union[int, slice, Sequence[int], Tensor]

@overload
def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: Score = ...,
    normaliser: Normaliser = ...,
    structure: Structure = ...,
    scale: Optional[Union[float, Tensor]] = ...,
    dropout_p: float = ...,
    key_lengths: Optional[Tensor] = ...,
    return_lse: Literal[False] = ...,
    *,
    seed: Optional[int] = ...,
    strict: bool = ...,
    return_empty_rows: Literal[False] = ...,
    allow_empty_rows: bool = ...,
    query_offset: Union[int, Tensor] = ...,
    check_finite: bool = ...,
) -> Tensor: ...
@overload
def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: Score = ...,
    normaliser: Normaliser = ...,
    structure: Structure = ...,
    scale: Optional[Union[float, Tensor]] = ...,
    dropout_p: float = ...,
    key_lengths: Optional[Tensor] = ...,
    *,
    return_lse: Literal[True],
    seed: Optional[int] = ...,
    strict: bool = ...,
    return_empty_rows: Literal[False] = ...,
    allow_empty_rows: bool = ...,
    query_offset: Union[int, Tensor] = ...,
    check_finite: bool = ...,
) -> Tuple[Tensor, Tensor]: ...
@overload
def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: Score = ...,
    normaliser: Normaliser = ...,
    structure: Structure = ...,
    scale: Optional[Union[float, Tensor]] = ...,
    dropout_p: float = ...,
    key_lengths: Optional[Tensor] = ...,
    return_lse: Literal[False] = ...,
    *,
    seed: Optional[int] = ...,
    strict: bool = ...,
    return_empty_rows: Literal[True],
    allow_empty_rows: bool = ...,
    query_offset: Union[int, Tensor] = ...,
    check_finite: bool = ...,
) -> Tuple[Tensor, Tensor]: ...
@overload
def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: Score = ...,
    normaliser: Normaliser = ...,
    structure: Structure = ...,
    scale: Optional[Union[float, Tensor]] = ...,
    dropout_p: float = ...,
    key_lengths: Optional[Tensor] = ...,
    *,
    return_lse: Literal[True],
    seed: Optional[int] = ...,
    strict: bool = ...,
    return_empty_rows: Literal[True],
    allow_empty_rows: bool = ...,
    query_offset: Union[int, Tensor] = ...,
    check_finite: bool = ...,
) -> Tuple[Tensor, Tensor, Tensor]: ...
@overload
def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: Score = ...,
    normaliser: Normaliser = ...,
    structure: Structure = ...,
    scale: Optional[Union[float, Tensor]] = ...,
    dropout_p: float = ...,
    key_lengths: Optional[Tensor] = ...,
    return_lse: bool = ...,
    *,
    seed: Optional[int] = ...,
    strict: bool = ...,
    return_empty_rows: bool = ...,
    allow_empty_rows: bool = ...,
    query_offset: Union[int, Tensor] = ...,
    check_finite: bool = ...,
) -> Union[Tensor, Tuple[Tensor, ...]]: ...
@overload
def weights(
    query: Tensor,
    key: Tensor,
    score: Score = ...,
    normaliser: Normaliser = ...,
    structure: Structure = ...,
    scale: Optional[Union[float, Tensor]] = ...,
    key_lengths: Optional[Tensor] = ...,
    *,
    rows: Optional[Indices] = ...,
    heads: Optional[Indices] = ...,
    top_k: None = ...,
    column_sums: bool = ...,
    seed: Optional[int] = ...,
    query_offset: Union[int, Tensor] = ...,
    check_finite: bool = ...,
) -> Tensor: ...
@overload
def weights(
    query: Tensor,
    key: Tensor,
    score: Score = ...,
    normaliser: Normaliser = ...,
    structure: Structure = ...,
    scale: Optional[Union[float, Tensor]] = ...,
    key_lengths: Optional[Tensor] = ...,
    *,
    rows: Optional[Indices] = ...,
    heads: Optional[Indices] = ...,
    top_k: int,
    column_sums: bool = ...,
    seed: Optional[int] = ...,
    query_offset: Union[int, Tensor] = ...,
    check_finite: bool = ...,
) -> Tuple[Tensor, Tensor]: ...
def explain_dispatch(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: Score = ...,
    normaliser: Normaliser = ...,
    structure: Structure = ...,
    scale: Optional[Union[float, Tensor]] = ...,
    dropout_p: float = ...,
    key_lengths: Optional[Tensor] = ...,
    return_lse: bool = ...,
    *,
    query_offset: Union[int, Tensor] = ...,
) -> str: ...
def _calls(score: Score, normaliser: Normaliser, structure: Structure) -> bool: ...
def _flatten(
    query: Tensor, score: Score, normaliser: Normaliser, structure: Structure, scale: Optional[Union[float, Tensor]] = ...
) -> Tuple[str, List[Tensor], List[int]]: ...
def _multiplied(query: Tensor, score: Score, scale: Optional[Union[float, Tensor]]) -> Tensor: ...
def _offset(offset: Union[int, Tensor]) -> Optional[Tensor]: ...
