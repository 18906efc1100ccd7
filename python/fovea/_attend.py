"""The operation itself, and what it can tell about a call."""

from __future__ import annotations

import dataclasses
from typing import List, Optional, Sequence, Tuple, Union

import torch

from ._normalisers import Hard, Normaliser, Softmax
from ._scores import Bilinear, Dot, Score
from ._structures import Dense, Structure

Indices = Union[Sequence[int], torch.Tensor]


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score: Score = Dot(),
    normaliser: Normaliser = Softmax(),
    structure: Structure = Dense(),
    scale: Optional[float] = None,
    dropout_p: float = 0.0,
    key_lengths: Optional[torch.Tensor] = None,
    return_lse: bool = False,
    *,
    seed: Optional[int] = None,
    strict: bool = False,
    return_empty_rows: bool = False,
    allow_empty_rows: bool = True,
) -> Union[torch.Tensor, Tuple[torch.Tensor, ...]]:
    r"""Attention: :math:`o_i = \sum_{j \in N(i)} a_{ij} v_j`, :math:`a_i = \mathrm{normalise}(\mathrm{score}(q_i, k_j), j \in N(i))`.

    Args:
        query: ``[B, H, L, E]``; with :class:`Ragged` or :class:`Graph`, packed ``(total, H, E)``.
        key: ``[B, Hkv, S, E]``, ``H`` a multiple of ``Hkv``.
        value: ``[B, Hkv, S, Ev]``.
        score: what a pair is worth.
        normaliser: how a row of scores becomes weights.
        structure: which pairs may meet, :math:`N(i)`.
        scale: of a :class:`Dot` or :class:`Bilinear` score that leaves it open.
        dropout_p: share of the weights dropped; survivors are scaled by ``1 / (1 - p)``. 0 at evaluation.
        key_lengths: int ``[B]``: item ``b`` sees keys ``j < key_lengths[b]`` only.
        return_lse: also return the log-sum-exp ``[B, H, L]``, differentiable (softmax, top-k; for :class:`Hard` the
            log-probability of the choice).
        seed: of dropout and sampling; the same seed gives the same choices. None draws one from torch's generator.
        strict: raise rather than take a path that is not fused; the message gives every reason.
        return_empty_rows: also return how many queries saw no key (an int64 scalar); their output and gradient are zero.
        allow_empty_rows: False raises where a query sees no key (and breaks a compiled graph, which cannot raise on a number).

    Returns:
        ``[B, H, L, Ev]`` (packed: ``(total, H, Ev)``) in the query's type, or a tuple of it and what else was asked for.

    Second derivatives work, through a composed formula that holds ``O(B H L S)`` numbers.
    """
    text, arrays = _flatten(query, score, normaliser, structure, scale)
    outputs = torch.ops.fovea.attend(
        query, key, value, text, arrays, key_lengths, dropout_p, _seed(seed, normaliser, dropout_p), return_lse, strict
    )
    if not allow_empty_rows and (empty := outputs[3].item()):
        raise ValueError(f"structure: {empty} rows without a key, expected none (allow_empty_rows is False)")
    wanted = [outputs[0]]
    if return_lse:
        wanted.append(outputs[1])
    if return_empty_rows:
        wanted.append(outputs[3])
    return wanted[0] if len(wanted) == 1 else tuple(wanted)


def weights(
    query: torch.Tensor,
    key: torch.Tensor,
    score: Score = Dot(),
    normaliser: Normaliser = Softmax(),
    structure: Structure = Dense(),
    scale: Optional[float] = None,
    key_lengths: Optional[torch.Tensor] = None,
    *,
    rows: Optional[Indices] = None,
    heads: Optional[Indices] = None,
    top_k: Optional[int] = None,
    column_sums: bool = False,
    seed: Optional[int] = None,
) -> Union[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]]:
    r"""Some of the weights :math:`a_{ij}`, before dropout; holds no more than it returns. Not differentiable.

    Args:
        rows: query positions, or None for all; within each sequence for :class:`Ragged`.
        heads: heads, or None for all.
        top_k: the largest of each row only, in descending order.
        column_sums: sums over the chosen rows, :math:`\sum_i a_{ij}`.

    Returns:
        ``[B, heads, rows, S]``; with ``column_sums`` ``[B, heads, S]``; with ``top_k`` two tensors ``[B, heads, rows, top_k]``:
        weights, and int32 key positions, -1 where a row sees fewer keys.
    """
    text, arrays = _flatten(query, score, normaliser, structure, scale)
    chosen, indices = torch.ops.fovea.weights(
        query, key, text, arrays, key_lengths, _seed(seed, normaliser, 0.0), _indices(rows, query), _indices(heads, query),
        top_k or 0, column_sums,
    )  # fmt: skip
    return (chosen, indices) if top_k else chosen


def explain_dispatch(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score: Score = Dot(),
    normaliser: Normaliser = Softmax(),
    structure: Structure = Dense(),
    scale: Optional[float] = None,
    dropout_p: float = 0.0,
    key_lengths: Optional[torch.Tensor] = None,
    return_lse: bool = False,
) -> str:
    """The path this call of :func:`attend` takes, and why each faster one declined; one line a candidate."""
    text, arrays = _flatten(query, score, normaliser, structure, scale)
    said: str = torch.ops.fovea.explain_dispatch(query, key, value, text, arrays, key_lengths, dropout_p, return_lse)
    return said


def _flatten(
    query: torch.Tensor, score: Score, normaliser: Normaliser, structure: Structure, scale: Optional[float]
) -> Tuple[str, List[torch.Tensor]]:
    for name, value, base in (("score", score, Score), ("normaliser", normaliser, Normaliser), ("structure", structure, Structure)):
        if not isinstance(value, base):
            raise TypeError(f"{name}: {type(value).__name__}, expected a {base.__name__} such as fovea.{_EXAMPLES[name]}")
    arrays: List[torch.Tensor] = []
    texts = [part._text(arrays, query) for part in (_scaled(score, scale), normaliser, structure)]
    return ";".join(texts), arrays


_EXAMPLES = {"score": "Dot()", "normaliser": "Softmax()", "structure": "Causal()"}


def _scaled(score: Score, scale: Optional[float]) -> Score:
    if scale is None:
        return score
    if not isinstance(score, (Dot, Bilinear)):
        raise ValueError(f"scale: {score.kind} has none; dot and bilinear have")
    if score.scale is not None:
        raise ValueError("scale: given twice, in the score and in the call")
    scaled = dataclasses.replace(score, scale=float(scale))
    object.__setattr__(scaled, "_modifiers", score._modifiers)
    return scaled


def _seed(seed: Optional[int], normaliser: Normaliser, dropout_p: float) -> Optional[torch.Tensor]:
    if seed is not None:
        wrapped = (int(seed) + 2**63) % 2**64 - 2**63  # the operator takes 64 bits with a sign
        return torch.tensor(wrapped, dtype=torch.int64)
    if dropout_p > 0 or (isinstance(normaliser, Hard) and normaliser.sample):
        return torch.randint(2**63 - 1, (), dtype=torch.int64)
    return None


def _indices(indices: Optional[Indices], query: torch.Tensor) -> Optional[torch.Tensor]:
    if indices is None or isinstance(indices, torch.Tensor):
        return indices
    return torch.tensor(list(indices), dtype=torch.int32, device=query.device)
