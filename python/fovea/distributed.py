"""Attention over sequences too long for one machine: each rank of a process group holds a part of the rows.

Keys and values go from rank to rank; partial results are joined by their log-sum-exp (Liu, Zaharia & Abbeel 2023, Ring Attention; Milakov &
Gimelshein 2018). Besides its own rows a rank holds a few pieces of others'.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Literal, Optional, Sequence, Tuple, Union

import torch
import torch.distributed as dist
from torch import Tensor

from . import _check
from ._attend import _flatten, _multiplied, _offset
from ._normalisers import Normaliser, Softmax
from ._scores import Dot, Number, Score
from ._structures import Causal, Dense, Documents, Structure, Window, _All, _Any

__all__ = ["attend", "shard", "unshard"]

_PIECE = 1024  # rows that travel together
Layout = Literal["contiguous", "zigzag"]
_attend = torch.ops.fovea.attend.default
_backward = torch.ops.fovea.attend_backward.default


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: Score = Dot(),
    normaliser: Normaliser = Softmax(),
    structure: Structure = Dense(),
    scale: Optional[Number] = None,
    return_lse: bool = False,
    *,
    group: Optional[Any] = None,
    layout: Layout = "contiguous",
) -> Union[Tensor, Tuple[Tensor, Tensor]]:
    """:func:`fovea.attend` on rows that are divided among the ranks of a group, forward and backward.

    Every rank calls it with its own rows and gets the output of its own queries. Only pairs of ranks whose rows can meet exchange keys and
    values: under a window, neighbours. While one part is computed, the next one travels.

    Args:
        query: ``[B, H, L / ranks, E]``; key and value alike: rows of equal number on every rank.
        score: a score without arrays of its own.
        normaliser: :class:`fovea.Softmax` without a sink.
        structure: :class:`fovea.Dense`, :class:`fovea.Causal`, :class:`fovea.Window`, :class:`fovea.Documents` (with the ids of this rank's rows,
            the same for queries and keys), and what ``&``, ``|`` and ``~`` make of them.
        scale: as in :func:`fovea.attend`.
        return_lse: also return the log-sum-exp, differentiable.
        group: a process group of ``torch.distributed``; None: all ranks.
        layout: which rows a rank holds. ``"contiguous"``: one stretch. ``"zigzag"``: of twice as many stretches as ranks, the one of its
            own number, and that number counted from the end; under :class:`fovea.Causal` all ranks then have the same work. :func:`shard`
            divides rows so.

    Returns:
        ``[B, H, L / ranks, Ev]`` in the query's type; with ``return_lse`` a pair of it and ``[B, H, L / ranks]``.

    Example::

        >>> torch.distributed.init_process_group("gloo")  # doctest: +SKIP
        >>> rows = fovea.distributed.shard(sequence, layout="zigzag")  # doctest: +SKIP
        >>> out = fovea.distributed.attend(rows, rows, rows, structure=fovea.Causal(), layout="zigzag")  # doctest: +SKIP
    """
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        _check.tensor(name, tensor)
    if not isinstance(normaliser, Softmax) or normaliser.sink is not None:
        raise ValueError(f"normaliser: {normaliser!r}, expected Softmax() without a sink: others need all keys of a row at once")
    _check_structure(structure)
    _check.instance("score", score, Score, "Dot()")
    if _arrays_of(query, score):
        raise ValueError(f"score: {score!r}, expected one without arrays of its own")
    plan = _Plan.of(query, key, structure, group, layout)
    output, lse = _Ring.apply(_multiplied(query, score, scale), key, value, plan, (score, normaliser, structure, scale))  # type: ignore[no-untyped-call]
    return (output, lse) if return_lse else output


def shard(tensor: Tensor, dim: int = 2, *, group: Optional[Any] = None, layout: Layout = "contiguous") -> Tensor:
    """This rank's part of a tensor that every rank has whole.

    Example::

        >>> rows = fovea.distributed.shard(torch.randn(1, 2, 64, 8), layout="zigzag")  # doctest: +SKIP
    """
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    count = len(_stretches(0, ranks, layout)) * ranks
    if tensor.shape[dim] % count:
        raise ValueError(f"tensor: {tensor.shape[dim]} rows, expected a multiple of {count} ({layout}, {ranks} ranks)")
    parts = tensor.chunk(count, dim)
    return torch.cat([parts[i] for i in _stretches(rank, ranks, layout)], dim)


def unshard(tensor: Tensor, dim: int = 2, *, group: Optional[Any] = None, layout: Layout = "contiguous") -> Tensor:
    """The whole of what :func:`shard` divided, on every rank; without gradient.

    Example::

        >>> whole = fovea.distributed.unshard(rows, layout="zigzag")  # doctest: +SKIP
    """
    ranks = dist.get_world_size(group)
    own = tensor.detach().contiguous()
    all_ranks = [torch.empty_like(own) for _ in range(ranks)]
    dist.all_gather(all_ranks, own, group=group)
    parts: Dict[int, Tensor] = {}
    for rank, held in enumerate(all_ranks):
        stretches = _stretches(rank, ranks, layout)
        parts.update(zip(stretches, held.chunk(len(stretches), dim)))
    return torch.cat([parts[i] for i in sorted(parts)], dim)


def _stretches(rank: int, ranks: int, layout: str) -> List[int]:
    if layout == "contiguous":
        return [rank]
    if layout == "zigzag":
        return [rank, 2 * ranks - 1 - rank]
    raise ValueError(f"layout: {layout!r}, expected 'contiguous' or 'zigzag'")


def _arrays_of(query: Tensor, score: Score) -> List[Tensor]:
    arrays: List[Tensor] = []
    score._collect(arrays, [], query)
    return arrays


def _check_structure(structure: Structure) -> None:
    _check.instance("structure", structure, Structure, "Causal()")
    for kind in structure._kinds():
        if not isinstance(kind, (Dense, Causal, Window, Documents)):
            raise ValueError(f"structure: {type(kind).__name__}, expected Dense, Causal, Window, Documents or what &, | and ~ make of them")
        if isinstance(kind, Causal) and kind.alignment != "top_left":
            raise ValueError("structure: Causal('bottom_right'), expected Causal(): positions are those of the whole sequence")
        if isinstance(kind, Documents) and kind.query_ids.shape != kind.key_ids.shape:
            raise ValueError(f"structure: Documents of {list(kind.query_ids.shape)} and {list(kind.key_ids.shape)} ids, expected the same")


def _reach(structure: Structure) -> Tuple[float, float]:
    """How far before and after its own position a query can see at most."""
    if isinstance(structure, Causal):
        return math.inf, 0
    if isinstance(structure, Window):
        return (math.inf if structure.left < 0 else structure.left), (math.inf if structure.right < 0 else structure.right)
    if isinstance(structure, (_All, _Any)):
        reaches = [_reach(part) for part in structure.parts]
        join = min if isinstance(structure, _All) else max
        return join(left for left, _ in reaches), join(right for _, right in reaches)
    return math.inf, math.inf


@dataclass
class _Plan:
    """Who holds which rows, and who needs whose."""

    group: Optional[Any]
    rank: int
    ranks: int
    layout: str
    rows: int  # of each rank
    stretch: int  # of them, which follow each other
    reach: Tuple[float, float]
    key_ids: List[Optional[Tensor]]  # of each rank's rows, under Documents

    @staticmethod
    def of(query: Tensor, key: Tensor, structure: Structure, group: Optional[Any], layout: str) -> _Plan:
        rank, ranks = dist.get_rank(group), dist.get_world_size(group)
        count = len(_stretches(rank, ranks, layout))
        rows = query.shape[2]
        if key.shape[2] != rows or rows % count:
            raise ValueError(f"query: {rows} rows and key {key.shape[2]}, expected as many of each, a multiple of {count} ({layout})")
        ids: List[Optional[Tensor]] = [None] * ranks
        for kind in structure._kinds():
            if isinstance(kind, Documents):
                if ids[0] is not None:
                    raise ValueError("structure: Documents twice, expected once")
                own = kind.key_ids.contiguous()
                gathered = [torch.empty_like(own) for _ in range(ranks)]
                dist.all_gather(gathered, own, group=group)
                ids = list(gathered)
        return _Plan(group, rank, ranks, layout, rows, rows // count, _reach(structure), ids)

    def pieces(self) -> List[slice]:
        """Rows of a rank that travel together: few, so that what is underway takes little memory."""
        step = min(self.stretch, _PIECE)
        starts = [range(first, first + self.stretch, step) for first in range(0, self.rows, self.stretch)]
        return [slice(at, min(at + step, some.stop)) for some in starts for at in some]

    def meets(self, queries: int, keys: int, piece: slice) -> bool:
        """Whether a query of one rank can see a key of a piece of another."""
        return any(True for _ in self.pairs(queries, keys, piece))

    def pairs(self, queries: int, keys: int, piece: slice) -> Iterator[Tuple[slice, int]]:
        """Rows of the one that can see a piece of the other, and the first row's position counted from the piece's first."""
        place, within = divmod(piece.start, self.stretch)
        first_key = _stretches(keys, self.ranks, self.layout)[place] * self.stretch + within
        for i, number in enumerate(_stretches(queries, self.ranks, self.layout)):
            offset = number * self.stretch - first_key
            first, last = -offset - (self.stretch - 1), -offset + (piece.stop - piece.start) - 1  # key minus query
            if last >= -self.reach[0] and first <= self.reach[1]:
                yield slice(i * self.stretch, (i + 1) * self.stretch), offset

    def structure(self, given: Structure, keys: int, q: slice, k: slice) -> Structure:
        def of_rows(kind: Structure) -> Structure:
            if not isinstance(kind, Documents):
                return kind
            theirs = self.key_ids[keys]
            assert theirs is not None
            return Documents(kind.query_ids[..., q], theirs[..., k])

        return given._changed(of_rows)

    def send(self, step: int, piece: slice, tensors: Sequence[Tensor]) -> Tuple[List[Tensor], List[Any]]:
        """Sends a piece of keys and values `step` ranks on, and begins to receive that of `step` ranks before, where rows meet. Returns what
        will be received, and what to wait for."""
        to, source = (self.rank + step) % self.ranks, (self.rank - step) % self.ranks
        parts = [t[:, :, piece].contiguous() for t in tensors]
        received = [torch.empty_like(t) for t in parts] if self.meets(self.rank, source, piece) else []
        return received, self._begin(parts if self.meets(to, self.rank, piece) else [], to, received, source, tag=0)

    def send_back(self, step: int, piece: slice, tensors: Sequence[Tensor], like: Sequence[Tensor]) -> Tuple[List[Tensor], List[Any]]:
        """The other way round, with the gradients of what was received."""
        to, source = (self.rank - step) % self.ranks, (self.rank + step) % self.ranks
        received = [torch.empty_like(t[:, :, piece], memory_format=torch.contiguous_format) for t in like] if self.meets(source, self.rank, piece) else []
        return received, self._begin(tensors, to, received, source, tag=len(like))

    def _begin(self, sent: Sequence[Tensor], to: int, received: Sequence[Tensor], source: int, tag: int) -> List[Any]:
        calls = [dist.P2POp(dist.isend, t, self._peer(to), self.group, tag + i) for i, t in enumerate(sent)]
        calls += [dist.P2POp(dist.irecv, t, self._peer(source), self.group, tag + i) for i, t in enumerate(received)]
        return dist.batch_isend_irecv(calls) if calls else []

    def _peer(self, rank: int) -> int:
        return rank if self.group is None else dist.get_global_rank(self.group, rank)


def _wait(works: Sequence[Any]) -> None:
    for work in works:
        work.wait()


def _ring(plan: _Plan, key: Tensor, value: Tensor) -> Iterator[Tuple[int, slice, List[Tensor]]]:
    """Step by step and piece by piece, keys and values of the rank so many steps before; none where they do not meet this rank's queries.
    The next ones travel meanwhile."""
    pieces = plan.pieces()
    order = [(step, piece) for step in range(plan.ranks) for piece in pieces]
    works: List[Any] = []
    arriving: List[Tensor] = []
    for at, (step, piece) in enumerate(order):
        _wait(works)
        held = [key[:, :, piece], value[:, :, piece]] if step == 0 else arriving
        arriving, works = [], []
        if at + 1 < len(order) and order[at + 1][0] > 0:
            arriving, works = plan.send(*order[at + 1], (key, value))
        yield step, piece, held


def _join(output: Tensor, lse: Tensor, other: Tensor, other_lse: Tensor) -> None:
    """Adds the result over other keys, in place."""
    both = torch.logaddexp(lse, other_lse)
    safe = both.where(both > -math.inf, torch.zeros_like(both))
    output.mul_(torch.exp(lse - safe).unsqueeze(-1)).add_(other * torch.exp(other_lse - safe).unsqueeze(-1))
    lse.copy_(both)


class _Ring(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, plan: _Plan, choices: Tuple[Any, ...]) -> Tuple[Tensor, Tensor]:
        score, normaliser, structure, scale = choices
        real = torch.float64 if query.dtype == torch.float64 else torch.float32
        rows = query.shape[:3]
        output = torch.zeros(*rows, value.shape[-1], dtype=real)
        lse = torch.full(rows, -math.inf, dtype=real)
        for step, piece, held in _ring(plan, key, value):
            rank = (plan.rank - step) % plan.ranks
            for q, offset in plan.pairs(plan.rank, rank, piece) if held else ():
                part = query[:, :, q]
                text, arrays, numbers = _flatten(part, score, normaliser, plan.structure(structure, rank, q, piece), scale)
                found = _attend(part, *held, text, arrays or [None], numbers or None, None, 0.0, None, True, False, _offset(offset), False)
                _join(output[:, :, q], lse[:, :, q], found[0].to(real), found[1].to(real))
        ctx.plan, ctx.choices = plan, choices
        output = output.to(query.dtype)
        ctx.save_for_backward(query, key, value, output, lse)
        return output, lse

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tuple[Optional[Tensor], ...]:
        d_output, d_lse = gradients
        query, key, value, output, lse = ctx.saved_tensors
        score, normaliser, structure, scale = ctx.choices
        plan: _Plan = ctx.plan
        seen = lse > -math.inf
        # The engine's statistics of a softmax: a weight is exp(score - first) * second. A second of 1 would say that a row has one key.
        statistics = torch.zeros(*lse.shape, 4, dtype=lse.dtype)
        statistics[..., 0] = (lse + 1).where(seen, torch.zeros_like(lse))
        statistics[..., 1] = seen.to(lse.dtype) * math.e
        d_query, d_key, d_value = (torch.zeros(t.shape, dtype=lse.dtype) for t in (query, key, value))
        back: Tuple[slice, List[Tensor], List[Any]] = (slice(0), [], [])
        for step, piece, held in _ring(plan, key, value):
            rank = (plan.rank - step) % plan.ranks
            d_held = [d_key[:, :, piece], d_value[:, :, piece]] if step == 0 else [torch.zeros(t.shape, dtype=lse.dtype) for t in held]
            for q, offset in plan.pairs(plan.rank, rank, piece) if held else ():
                part = query[:, :, q]
                text, arrays, numbers = _flatten(part, score, normaliser, plan.structure(structure, rank, q, piece), scale)
                found = _backward(d_output[:, :, q], d_lse[:, :, q], part, *held, arrays, text, numbers, None, 0.0, None, output[:, :, q],
                                  statistics[:, :, q], [1, 1, 1] + [0] * len(arrays), _offset(offset))  # fmt: skip
                d_query[:, :, q] += found[0]
                d_held[0] += found[1]
                d_held[1] += found[2]
            if step > 0:
                _arrived((d_key, d_value), *back)
                back = (piece, *plan.send_back(step, piece, d_held, (d_key, d_value)))
        _arrived((d_key, d_value), *back)
        return d_query.to(query.dtype), d_key.to(key.dtype), d_value.to(value.dtype), None, None


def _arrived(sums: Sequence[Tensor], piece: slice, arriving: Sequence[Tensor], works: Sequence[Any]) -> None:
    _wait(works)
    for total, part in zip(sums, arriving):
        total[:, :, piece] += part
