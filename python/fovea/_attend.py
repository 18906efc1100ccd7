"""The operation itself, and what it can tell about a call."""

from __future__ import annotations

import inspect
import math
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor

from . import _check
from ._normalisers import Hard, Normaliser, Softmax
from ._scores import Dot, Number, Score, _Scaled
from ._structures import Dense, Graph, Ragged, Structure

Indices = Union[int, slice, Sequence[int], torch.Tensor]

_attend_output = torch.ops.fovea.attend_output.default
_attend = torch.ops.fovea.attend.default
_weights = torch.ops.fovea.weights.default


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score: Score = Dot(),
    normaliser: Normaliser = Softmax(),
    structure: Structure = Dense(),
    scale: Optional[Number] = None,
    dropout_p: float = 0.0,
    key_lengths: Optional[torch.Tensor] = None,
    return_lse: bool = False,
    *,
    seed: Optional[int] = None,
    strict: bool = False,
    return_empty_rows: bool = False,
    allow_empty_rows: bool = True,
    query_offset: Union[int, torch.Tensor] = 0,
    check_finite: bool = False,
    **unknown: object,
) -> Union[torch.Tensor, Tuple[torch.Tensor, ...]]:
    r"""Attention: :math:`o_i = \sum_{j \in N(i)} a_{ij} v_j`, :math:`a_i = \mathrm{normalise}(\mathrm{score}(q_i, k_j), j \in N(i))`.

    Args:
        query: ``[B, H, L, E]``; with :class:`Ragged` or :class:`Graph`, packed ``(total, H, E)``; or, as key and value, a NestedTensor
            ``[B, H, lengths, E]`` with ``layout=torch.jagged``; then the output is nested too.
        key: ``[B, Hkv, S, E]``, ``H`` a multiple of ``Hkv``.
        value: ``[B, Hkv, S, Ev]``.
        score: the score of a pair of query and key.
        normaliser: how a row of scores becomes weights.
        structure: which pairs are allowed, :math:`N(i)`.
        scale: scale of a :class:`Dot` or :class:`Bilinear` score that gives none itself: a number; or a tensor, one element or ``[H]``, which has
            a gradient (the query is multiplied by it).
        dropout_p: probability of dropping a weight; kept weights are scaled by ``1 / (1 - p)``. Pass 0 at evaluation.
        key_lengths: int ``[B]``: item ``b`` sees keys ``j < key_lengths[b]`` only.
        return_lse: also return the log-sum-exp ``[B, H, L]``, differentiable (softmax, top-k; for :class:`Hard` the
            log-probability of the choice).
        seed: seed of dropout and sampling. None draws one from torch's generator.
        strict: raise instead of taking a path that is not fused; the message gives every reason.
        return_empty_rows: also return how many queries saw no key (an int64 scalar); their output and gradient are zero.
        allow_empty_rows: False raises where a query sees no key (and breaks a compiled graph, which cannot raise on a number).
        query_offset: the position of query row 0 among the keys: a number, or int ``[B]``, one for each item. When decoding with a cache it is
            the number of keys before the query. Every structure and modifier that depends on positions uses it. Arrays with a row for
            each query (masks, ids, biases) are indexed by the row of the query, without the offset.
        check_finite: False: a query that sees a score of NaN or +infinity has output, log-sum-exp and gradient NaN, and changes no other
            query. True: raise, naming the first such item, head and row.

    Returns:
        ``[B, H, L, Ev]`` (packed: ``(total, H, Ev)``) in the query's type, or a tuple of it and the other requested results.

    Second derivatives and forward mode work, by a composed formula that stores ``O(B H L S)`` numbers; ``torch.func`` works too.

    Example::

        >>> query, key, value = (torch.randn(2, 4, 128, 64, requires_grad=True) for _ in range(3))
        >>> out = fovea.attend(query, key, value)  # dot product, softmax, every pair
        >>> out = fovea.attend(query, key, value, normaliser=fovea.Entmax(1.5), structure=fovea.Causal() & fovea.Window(left=32))
        >>> out, lse = fovea.attend(query, key, value, fovea.Dot().soft_cap(30.0), return_lse=True)
        >>> out.sum().backward()
    """
    if key_lengths is None and seed is None and type(dropout_p) is float and dropout_p == 0.0:
        if type(query_offset) is int and query_offset == 0 and allow_empty_rows:
            if not (return_lse or return_empty_rows or strict or check_finite or unknown):
                # Most calls: choices that are a text and nothing else, and the output alone.
                a = getattr(score, "_whole_score", None) if scale is None else _whole_with(score, scale)
                b, c = getattr(normaliser, "_whole_normaliser", None), getattr(structure, "_whole_structure", None)
                if a and b and c and isinstance(query, Tensor) and isinstance(key, Tensor) and isinstance(value, Tensor) and not query.is_nested:
                    output: Tensor = _attend_output(query, key, value, f"{a};{b};{c}")
                    return output
    if unknown:
        raise _check.unknown_argument("attend", unknown, _ATTEND)
    _operands(("query", "key", "value"), query, key, value)
    if key_lengths is not None:
        _check.tensor("key_lengths", key_lengths)
    if type(dropout_p) is not float:
        dropout_p = _check.number("dropout_p", dropout_p)
    if scale is not None:
        scale = _check.scale_of("scale", scale)
    if query.is_nested:
        options = dict(score=score, normaliser=normaliser, scale=scale, dropout_p=dropout_p, seed=seed, strict=strict, return_lse=return_lse)
        options.update(return_empty_rows=return_empty_rows, allow_empty_rows=allow_empty_rows, query_offset=query_offset, check_finite=check_finite)
        return _nested().attend_nested(query, key, value, structure, key_lengths, **options)
    if _calls(score, normaliser, structure):
        if strict:
            raise RuntimeError("strict: a score or a mask is a Python function, which no fused path takes")
        parts = (query, key, value, _scaled_by(score, scale), normaliser, structure, key_lengths, query_offset, dropout_p, seed, bool(check_finite))
        output_, sums, empty = _functions().attend_in_blocks(*parts, return_lse=bool(return_lse))
        return _wanted((output_, sums, sums, empty), return_lse, return_empty_rows, allow_empty_rows)
    text, arrays, numbers = _flatten(query, score, normaliser, structure, scale)
    query = _multiplied(query, score, scale)
    outputs = _attend(
        query, key, value, text, arrays or [None], numbers or None, key_lengths, dropout_p, _seed(seed, normaliser, dropout_p), bool(return_lse),
        bool(strict), _offset(query_offset), bool(check_finite),
    )  # fmt: skip
    return _wanted(outputs, return_lse, return_empty_rows, allow_empty_rows)


def _wanted(outputs: Sequence[torch.Tensor], return_lse: bool, return_empty_rows: bool, allow_empty_rows: bool) -> Union[Tensor, Tuple[Tensor, ...]]:
    """What a call asked for, of the operator's outputs."""
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
    scale: Optional[Number] = None,
    key_lengths: Optional[torch.Tensor] = None,
    *,
    rows: Optional[Indices] = None,
    heads: Optional[Indices] = None,
    top_k: Optional[int] = None,
    column_sums: bool = False,
    seed: Optional[int] = None,
    query_offset: Union[int, torch.Tensor] = 0,
    check_finite: bool = False,
    **unknown: object,
) -> Union[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]]:
    r"""Some of the weights :math:`a_{ij}`, before dropout; no others are stored. Not differentiable.

    Args:
        rows: rows of the query: one, a list, a slice, or None for all; negative ones count from the end. Within each sequence for
            :class:`Ragged`, where the end is that of the longest.
        heads: heads, likewise.
        top_k: the largest of each row only, in descending order.
        column_sums: sums over the chosen rows, :math:`\sum_i a_{ij}`.
        query_offset, check_finite: as for :func:`attend`; a row of scores that are not all finite has weights of NaN at the keys it sees.

    Returns:
        ``[B, heads, rows, S]``; with ``column_sums`` ``[B, heads, S]``; with ``top_k`` two tensors ``[B, heads, rows, top_k]``:
        weights, and int32 key positions, -1 where a row sees fewer keys.

    Example::

        >>> query, key = torch.randn(1, 2, 6, 8), torch.randn(1, 2, 9, 8)
        >>> last = fovea.weights(query, key, rows=-1, heads=[0])  # [1, 1, 1, 9]
        >>> largest, where = fovea.weights(query, key, top_k=3)
    """
    if unknown:
        raise _check.unknown_argument("weights", unknown, _WEIGHTS)
    _operands(("query", "key"), query, key)
    if key_lengths is not None:
        _check.tensor("key_lengths", key_lengths)
    if top_k is not None:
        top_k = _check.count("top_k", top_k)
    if scale is not None:
        scale = _check.scale_of("scale", scale)
    if query.is_nested:
        raise ValueError("query: a NestedTensor, expected [B, H, L, E]: the weights of several lengths have no shape; those of each of query.unbind() do")
    if _calls(score, normaliser, structure):
        places = _indices("rows", rows, query.shape[2], torch.device("cpu"))
        chosen_rows = None if places is None else places.tolist()
        parts = (_scaled_by(score, scale), normaliser, structure, key_lengths, query_offset)
        return _functions().weights_in_blocks(query, key, *parts, chosen_rows, heads, top_k, bool(column_sums), seed, bool(check_finite))
    text, arrays, numbers = _flatten(query, score, normaliser, structure, scale)
    row_places = None if rows is None else _indices("rows", rows, _longest(query, structure), query.device)
    head_places = None if heads is None else _indices("heads", heads, query.shape[1], query.device)
    count = 0 if top_k is None else top_k
    chosen, indices = _weights(
        _multiplied(query, score, scale), key, text, arrays or [None], numbers or None, key_lengths, _seed(seed, normaliser, 0.0), row_places, head_places,
        count, bool(column_sums), _offset(query_offset), bool(check_finite),
    )  # fmt: skip
    return (chosen, indices) if count else chosen


def explain_dispatch(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score: Score = Dot(),
    normaliser: Normaliser = Softmax(),
    structure: Structure = Dense(),
    scale: Optional[Number] = None,
    dropout_p: float = 0.0,
    key_lengths: Optional[torch.Tensor] = None,
    return_lse: bool = False,
    *,
    query_offset: Union[int, torch.Tensor] = 0,
    **unknown: object,
) -> str:
    """The path that this call of :func:`attend` takes, and why each faster path declines; one line for each path.

    Example::

        >>> query = torch.randn(1, 2, 6, 8)
        >>> print(fovea.explain_dispatch(query, query, query, structure=fovea.Causal()))
    """
    if unknown:
        raise _check.unknown_argument("explain_dispatch", unknown, _EXPLAIN)
    _operands(("query", "key", "value"), query, key, value)
    if key_lengths is not None:
        _check.tensor("key_lengths", key_lengths)
    dropout_p = _check.number("dropout_p", dropout_p)
    if scale is not None:
        scale = _check.scale_of("scale", scale)
    if _calls(score, normaliser, structure):
        return "python: a score or a mask is a Python function, called on blocks of queries and slow; fused paths take none"
    text, arrays, numbers = _flatten(query, score, normaliser, structure, scale)
    said: str = torch.ops.fovea.explain_dispatch(
        query, key, value, text, arrays, numbers, key_lengths, dropout_p, bool(return_lse), _offset(query_offset)
    )
    return said


def _calls(score: Score, normaliser: Normaliser, structure: Structure) -> bool:
    """Whether a Python function is among the choices."""
    return (getattr(score, "_calls", False) or getattr(structure, "_calls", False)) and isinstance(normaliser, Normaliser)


def _functions() -> Any:
    from . import _functions as found  # which calls this module

    return found


def _nested() -> Any:
    from . import _nested as found  # likewise

    return found


def _scaled_by(score: Score, scale: Optional[Number]) -> Score:
    if scale is not None:
        raise ValueError("scale: given in the call, expected in the score where a function is among the choices")
    return score


def _names(function: Callable[..., object]) -> Tuple[str, ...]:
    return tuple(name for name in inspect.signature(function).parameters if name != "unknown")


_ATTEND, _WEIGHTS, _EXPLAIN = _names(attend), _names(weights), _names(explain_dispatch)


def _flatten(
    query: torch.Tensor, score: Score, normaliser: Normaliser, structure: Structure, scale: Optional[Number] = None
) -> Tuple[str, List[torch.Tensor], List[int]]:
    """The choices as the operators take them: a text, and lists of the tensors and the whole numbers it leaves open."""
    _check.instance("score", score, Score, "Dot()")
    _check.instance("normaliser", normaliser, Normaliser, "Softmax()")
    _check.instance("structure", structure, Structure, "Causal()")
    arrays: List[torch.Tensor] = []
    numbers: List[int] = []
    score._collect(arrays, numbers, query)
    normaliser._collect(arrays, numbers, query)
    structure._collect(arrays, numbers, query)
    written = score._written() if scale is None else _written_with(score, scale)
    return written + ";" + normaliser._text + ";" + structure._text, arrays, numbers


def _written_with(score: Score, scale: Number) -> str:
    if not isinstance(score, _Scaled):
        raise ValueError(f"scale: {score._kind} has none; dot and bilinear have")
    if score.scale is not None:
        raise ValueError("scale: given twice, in the score and in the call")
    return score._written_with(1.0 if isinstance(scale, torch.Tensor) else scale)


def _whole_with(score: Score, scale: Number) -> Optional[str]:
    """The whole score with a call's scale as a text, where it can be one; what is wrong is said by who writes the rest."""
    if type(scale) is float and -math.inf < scale < math.inf and isinstance(score, _Scaled) and score.scale is None and score._whole_score:
        return score._written_with(scale)
    return None


def _multiplied(query: torch.Tensor, score: Score, scale: Optional[Number]) -> torch.Tensor:
    """The query, times the scale where that is a tensor: its gradient is then libtorch's."""
    if scale is None and isinstance(score, _Scaled):
        scale = score.scale
    if not isinstance(scale, torch.Tensor):
        return query
    if scale.device != query.device and (scale.dim() > 0 or scale.device.type != "cpu"):  # libtorch takes one number from the CPU anywhere
        raise ValueError(f"scale: on {scale.device}, expected {query.device} (the query's)")
    if scale.numel() == 1:
        return query * scale.reshape(())
    if scale.shape[0] != query.shape[1]:
        raise ValueError(f"scale: shape {list(scale.shape)}, expected one number or [{query.shape[1]}] (heads)")
    return (query * scale.reshape(-1, *(1,) * (query.dim() - 2))).to(query.dtype)


def _operands(names: Sequence[str], *tensors: object) -> None:
    for name, tensor in zip(names, tensors):
        _check.tensor(name, tensor)


def _seed(seed: Optional[int], normaliser: Normaliser, dropout_p: float) -> Optional[torch.Tensor]:
    if seed is not None:
        wrapped = (int(_check.whole("seed", seed)) + 2**63) % 2**64 - 2**63  # the operator takes 64 bits with a sign
        return torch.tensor(wrapped, dtype=torch.int64, device="cpu")
    if dropout_p > 0 or (isinstance(normaliser, Hard) and normaliser.sample):
        return torch.randint(2**63 - 1, (), dtype=torch.int64, device="cpu")
    return None


def _offset(offset: Union[int, torch.Tensor]) -> Optional[torch.Tensor]:
    """As the operators take it: a tensor, so that a number that varies makes one graph; None for 0. On the CPU, whatever torch's default is."""
    if isinstance(offset, torch.Tensor):
        return offset
    if isinstance(offset, (list, tuple)):
        _check.tensor("query_offset", offset)  # which says how to make one
    if type(offset) is int and offset == 0:
        return None
    first = _check.whole("query_offset", offset)
    _check.within("query_offset", first, _check.IN_64_BITS)
    return torch.tensor([first], dtype=torch.int64, device="cpu")


def _indices(name: str, indices: Optional[Indices], size: int, device: torch.device) -> Optional[torch.Tensor]:
    """Positions as a tensor, negative ones counted from the end."""
    if indices is None:
        return None
    if isinstance(indices, torch.Tensor):
        if indices.dim() > 1 or not _check.WHOLE_TENSOR.holds(indices):
            raise ValueError(f"{name}: {_check.said(indices)}, expected a list of whole numbers")
        indices = _check.counted(_check.dense(name, indices).reshape(-1))
        return torch.where(indices < 0, indices + size, indices)
    if isinstance(indices, slice):
        chosen = list(range(*indices.indices(size)))
    else:
        given: Any = indices if isinstance(indices, (list, tuple, range)) or hasattr(indices, "__len__") else [indices]
        chosen = [_check.whole(name, index) for index in given]
    for index in chosen:
        if not -size <= index < size:
            raise ValueError(f"{name}: {index}, expected {-size} .. {size - 1}")
    return torch.tensor([index % size for index in chosen], dtype=torch.int32, device=device)


def _longest(query: torch.Tensor, structure: Structure) -> int:
    """Queries of the longest sequence."""
    for part in structure._parts():
        if isinstance(part, Ragged):
            offsets = part.query_offsets
            return int(offsets.diff().max()) if offsets.numel() > 1 else 0
        if isinstance(part, Graph):
            return query.shape[0]
    return query.shape[2] if query.dim() == 4 else 0
