"""How keys and values go from rank to rank, and partial results are joined."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import torch
import torch.distributed as dist
from torch import Tensor

from ._attend import _flatten, _offset
from ._normalisers import Softmax
from ._structures import Causal, Documents, Structure, Window, _All, _Any

_PIECE = 1024  # rows that travel together
_attend = torch.ops.fovea.attend.default
_backward = torch.ops.fovea.attend_backward.default


def stretches(rank: int, ranks: int, layout: str) -> List[int]:
    if layout == "contiguous":
        return [rank]
    if layout == "zigzag":
        return [rank, 2 * ranks - 1 - rank]
    raise ValueError(f"layout: {layout!r}, expected 'contiguous' or 'zigzag'")


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
class Plan:
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
    def of(query: Tensor, key: Tensor, structure: Structure, group: Optional[Any], layout: str) -> Plan:
        rank, ranks = dist.get_rank(group), dist.get_world_size(group)
        count = len(stretches(rank, ranks, layout))
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
        return Plan(group, rank, ranks, layout, rows, rows // count, _reach(structure), ids)

    def pieces(self) -> List[slice]:
        """Rows of a rank that travel together: few, so that what is underway takes little memory."""
        step = min(self.stretch, _PIECE)
        starts = [range(first, first + self.stretch, step) for first in range(0, self.rows, self.stretch)]
        return [slice(at, min(at + step, some.stop)) for some in starts for at in some]

    def meets(self, queries: int, keys: int, piece: slice) -> bool:
        """Whether a query of one rank can see a key of a piece of another."""
        return any(True for _ in self.pairs(queries, keys, piece))

    def first(self, rank: int, piece: slice) -> int:
        """The position in the whole sequence of the first row of a rank's piece."""
        place, within = divmod(int(piece.start), self.stretch)
        return stretches(rank, self.ranks, self.layout)[place] * self.stretch + within

    def pairs(self, queries: int, keys: int, piece: slice) -> Iterator[Tuple[slice, int]]:
        """Rows of the one that can see a piece of the other, and the first row's position counted from the piece's first."""
        first_key = self.first(keys, piece)
        for i, number in enumerate(stretches(queries, self.ranks, self.layout)):
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


def _ring(plan: Plan, key: Tensor, value: Tensor) -> Iterator[Tuple[int, slice, List[Tensor]]]:
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


class Ring(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, plan: Plan, choices: Tuple[Any, ...], *own: Tensor) -> Tuple[Tensor, Tensor]:
        score, normaliser, structure, scale = choices
        real = torch.float64 if query.dtype == torch.float64 else torch.float32
        rows = query.shape[:3]
        joined = isinstance(normaliser, Softmax)  # otherwise results over other keys are just added
        output = torch.zeros(*rows, value.shape[-1], dtype=real, device=query.device)
        lse = torch.full(rows, -math.inf, dtype=real, device=query.device)
        for step, piece, held in _ring(plan, key, value):
            rank = (plan.rank - step) % plan.ranks
            for q, offset in plan.pairs(plan.rank, rank, piece) if held else ():
                part = query[:, :, q]
                text, arrays, numbers = _flatten(part, score, normaliser, plan.structure(structure, rank, q, piece), scale)
                found = _attend(part, *held, text, arrays or [None], numbers or None, None, 0.0, None, joined, False, _offset(offset), False)
                if joined:
                    _join(output[:, :, q], lse[:, :, q], found[0].to(real), found[1].to(real))
                else:
                    output[:, :, q] += found[0]
        ctx.plan, ctx.choices = plan, choices
        output = output.to(query.dtype)
        ctx.save_for_backward(query, key, value, output, lse, *own)
        return output, lse

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tuple[Optional[Tensor], ...]:
        d_output, d_lse = gradients
        query, key, value, output, lse, *own = ctx.saved_tensors
        score, normaliser, structure, scale = ctx.choices
        plan: Plan = ctx.plan
        seen = lse > -math.inf
        # The engine's statistics of a softmax: a weight is exp(score - first) * second. A second of 1 would say that a row has one key.
        # Weights that are not normalised need none.
        statistics = lse.new_zeros(*lse.shape, 4)
        joined = isinstance(normaliser, Softmax)
        if joined:
            statistics[..., 0] = (lse + 1).where(seen, torch.zeros_like(lse))
            statistics[..., 1] = seen.to(lse.dtype) * math.e
        wanted = [int(needed) for needed in ctx.needs_input_grad[5:]]
        d_own = [torch.zeros_like(t) if needed else None for t, needed in zip(own, wanted)]
        d_query, d_key, d_value = (lse.new_zeros(t.shape) for t in (query, key, value))
        back: Tuple[slice, List[Tensor], List[Any]] = (slice(0), [], [])
        for step, piece, held in _ring(plan, key, value):
            rank = (plan.rank - step) % plan.ranks
            d_held = [d_key[:, :, piece], d_value[:, :, piece]] if step == 0 else [lse.new_zeros(t.shape) for t in held]
            for q, offset in plan.pairs(plan.rank, rank, piece) if held else ():
                part = query[:, :, q]
                text, arrays, numbers = _flatten(part, score, normaliser, plan.structure(structure, rank, q, piece), scale)
                found = _backward(d_output[:, :, q], d_lse[:, :, q] if joined else None, part, *held, arrays, text, numbers, None, 0.0, None, output[:, :, q],
                                  statistics[:, :, q], [1, 1, 1] + wanted + [0] * (len(arrays) - len(own)), _offset(offset))  # fmt: skip
                for total, more in zip(d_own, found[3]):
                    if total is not None:
                        total += more
                d_query[:, :, q] += found[0]
                d_held[0] += found[1]
                d_held[1] += found[2]
            if step > 0:
                _arrived((d_key, d_value), *back)
                back = (piece, *plan.send_back(step, piece, d_held, (d_key, d_value)))
        _arrived((d_key, d_value), *back)
        return d_query.to(query.dtype), d_key.to(key.dtype), d_value.to(value.dtype), None, None, *d_own


def _arrived(sums: Sequence[Tensor], piece: slice, arriving: Sequence[Tensor], works: Sequence[Any]) -> None:
    _wait(works)
    for total, part in zip(sums, arriving):
        total[:, :, piece] += part
