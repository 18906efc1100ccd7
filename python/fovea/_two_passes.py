"""Normalisers that need all scores of a row, over ranks: keys go round once for the largest scores, from which the weights follow, and again with the values.

A threshold leaves weight to few keys. So the first pass keeps the largest scores of each row; where they might be too few, it is made again with twice
as many. The weights of these candidates are exact then.
"""

from __future__ import annotations

import math
from typing import Any, Iterator, List, Optional, Tuple, Union

import torch
import torch.distributed as dist
from torch import Tensor

from ._attend import _flatten, _offset
from ._normalisers import Entmax, Hard, Normaliser, Sparsemax, TopK, Unnormalised
from ._ring import Plan, _arrived, _ring
from ._scores import Number, Score
from ._structures import Structure

THRESHOLD = (Sparsemax, Entmax, TopK, Hard)
_CANDIDATES = 64  # of a row at first
_EDGES = 1 << 20  # pairs of query and key whose rows are gathered at once
_weights = torch.ops.fovea.weights.default


def check(score: Score, normaliser: Normaliser) -> None:
    if score._kind != "dot" or score._modifiers:
        raise ValueError(f"score: {score!r}, expected Dot() with {type(normaliser).__name__}")
    if isinstance(normaliser, Entmax) and (isinstance(normaliser.alpha, Tensor) or normaliser.alpha == 1):
        raise ValueError(f"normaliser: {normaliser!r}, expected an alpha that is a number above 1")
    if isinstance(normaliser, Hard) and normaliser.sample:
        raise ValueError(f"normaliser: {normaliser!r}, expected Hard() without sample")


def attend(query: Tensor, key: Tensor, value: Tensor, plan: Plan, choices: Tuple[Score, Normaliser, Structure, Optional[Number]]) -> Tensor:
    scores, places = _candidates(query.detach(), key.detach(), plan, choices)
    scores = _Scores.apply(query, key, scores, places, plan, choices)  # type: ignore[no-untyped-call]
    out: Tensor = _Aggregate.apply(_weights_of(scores, choices[1]), value, places, plan)  # type: ignore[no-untyped-call]
    return out.to(query.dtype)


def _candidates(query: Tensor, key: Tensor, plan: Plan, choices: Tuple[Score, Normaliser, Structure, Optional[Number]]) -> Tuple[Tensor, Tensor]:
    """The largest scores of each row in descending order, and the positions of their keys, of equal ones the lower first."""
    normaliser = choices[1]
    count = normaliser.k if isinstance(normaliser, TopK) else 1 if isinstance(normaliser, Hard) else _CANDIDATES
    while True:
        count = min(count, plan.rows * plan.ranks)
        scores, places = _largest(query, key, plan, choices, count)
        if isinstance(normaliser, (TopK, Hard)) or count == plan.rows * plan.ranks:
            return scores, places
        # All that have weight are there if the last of a row has none, or if the row sees no more keys.
        short = ((_weights_of(scores, normaliser)[..., -1] > 0) & (places[..., -1] >= 0)).any().int()
        dist.all_reduce(short, dist.ReduceOp.MAX, group=plan.group)
        if not short.item():
            return scores, places
        count *= 2


def _largest(query: Tensor, key: Tensor, plan: Plan, choices: Tuple[Score, Normaliser, Structure, Optional[Number]], count: int) -> Tuple[Tensor, Tensor]:
    score, _, structure, scale = choices
    scores = query.new_full((*query.shape[:3], count), -math.inf)
    places = torch.full((*query.shape[:3], count), -1, dtype=torch.int64, device=query.device)
    for step, piece, held in _ring(plan, key, key[..., :0]):  # no values yet
        rank = (plan.rank - step) % plan.ranks
        for q, offset in plan.pairs(plan.rank, rank, piece) if held else ():
            part = query[:, :, q]
            text, arrays, numbers = _flatten(part, score, Unnormalised(), plan.structure(structure, rank, q, piece), scale)
            most = min(count, piece.stop - piece.start)
            found, where = _weights(part, held[0], text, arrays or [None], numbers or None, None, None, None, None, most, False, _offset(offset), False)
            where = where.long()
            new = torch.where(where >= 0, found, torch.full_like(found, -math.inf))
            at = torch.where(where >= 0, where + plan.first(rank, piece), where)
            both, positions = torch.cat([scores[:, :, q], new], -1), torch.cat([places[:, :, q], at], -1)
            order = positions.argsort(dim=-1, stable=True)
            best = both.gather(-1, order).argsort(dim=-1, descending=True, stable=True)[..., :count]
            order = order.gather(-1, best)
            scores[:, :, q], places[:, :, q] = both.gather(-1, order), positions.gather(-1, order)
    return scores, places


def _weights_of(scores: Tensor, normaliser: Normaliser) -> Tensor:
    seen = scores > -math.inf
    if isinstance(normaliser, Hard):
        return seen.to(scores.dtype)
    if isinstance(normaliser, TopK):
        shifted = (scores - scores[..., :1].detach().clamp_min(-1e30)).masked_fill(~seen, -math.inf)
        mass = shifted.exp()
        return mass / mass.sum(-1, keepdim=True).clamp_min(1e-30)
    alpha = 2.0 if isinstance(normaliser, Sparsemax) else float(normaliser.alpha)  # type: ignore[attr-defined]
    return _EntmaxWeights.apply(scores, alpha)  # type: ignore[no-any-return, no-untyped-call]


class _EntmaxWeights(torch.autograd.Function):
    """max(0, (alpha - 1) e - tau)^(1 / (alpha - 1)) of scores in descending order; sparsemax is alpha 2."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, alpha: float) -> Tensor:
        z = (alpha - 1) * scores.double()
        top = z[..., :1].clamp_min(-1e300)
        low, high = top - 1, top.clone()
        for _ in range(60):  # halves the distance of tau to both
            middle = (low + high) / 2
            enough = (z - middle).clamp_min(0).pow(1 / (alpha - 1)).sum(-1, keepdim=True) >= 1
            low, high = torch.where(enough, middle, low), torch.where(enough, high, middle)
        weights = (z - low).clamp_min(0).pow(1 / (alpha - 1))
        weights = (weights / weights.sum(-1, keepdim=True).clamp_min(1e-300)).to(scores.dtype)
        ctx.save_for_backward(weights)
        ctx.alpha = alpha
        return weights

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors
        slope = torch.where(weights > 0, weights.clamp_min(1e-30).pow(2 - ctx.alpha), torch.zeros_like(weights))
        mean = (slope * gradients[0]).sum(-1, keepdim=True) / slope.sum(-1, keepdim=True).clamp_min(1e-30)
        return slope * (gradients[0] - mean), None


Edges = Tuple[Tensor, Tensor, Tensor]  # places in the candidates, and rows of queries and of the piece's keys, all as flat numbers


def _edges(chosen: Tensor, places: Tensor, first: int, piece: slice, heads: int) -> Iterator[Edges]:
    """Candidates that are keys of a piece."""
    size = piece.stop - piece.start
    flat = (chosen & (places >= first) & (places < first + size)).flatten().nonzero().flatten()
    batch, query_heads, rows, count = places.shape
    for some in flat.split(_EDGES):
        query = some // count
        head = query // rows
        key_head = head // query_heads * heads + head % query_heads * heads // query_heads
        yield some, query, key_head * size + places.flatten()[some] - first


class _Aggregate(torch.autograd.Function):
    """Sums of the candidates' values. Gradients of values go back to the ranks that hold them."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, value: Tensor, places: Tensor, plan: Plan) -> Tensor:
        ctx.plan = plan
        ctx.save_for_backward(weights, value, places)
        out = weights.new_zeros(*weights.shape[:3], value.shape[-1])
        flat, given = out.view(-1, value.shape[-1]), weights.flatten()
        for step, piece, held in _ring(plan, value, value[..., :0]):
            for some, query, key in _of_piece(plan, step, piece, held, weights > 0, places, value.shape[1]):
                flat.index_add_(0, query, given[some, None] * _rows(held[0])[key].to(out.dtype))
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tuple[Optional[Tensor], ...]:
        weights, value, places = ctx.saved_tensors
        d_weights = torch.zeros_like(weights)
        above, given = _rows(gradients[0].contiguous()), weights.flatten()

        def visit(held: Tensor, d_held: Tensor, some: Tensor, query: Tensor, key: Tensor) -> None:
            d_weights.view(-1)[some] = (above[query] * _rows(held)[key].to(above.dtype)).sum(-1)
            _rows(d_held).index_add_(0, key, given[some, None] * above[query])

        d_value = _visited(ctx.plan, value, weights > 0, places, weights.dtype, visit)
        return d_weights, d_value.to(value.dtype), None, None


class _Scores(torch.autograd.Function):
    """The candidates' scores, which are known; their gradients are those of the dot product."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, scores: Tensor, places: Tensor, plan: Plan, choices: Tuple[Any, ...]) -> Tensor:
        score, _, _, scale = choices
        given: Union[None, float, Tensor] = score.scale if scale is None else scale
        if isinstance(given, Tensor):
            raise ValueError("scale: a tensor, expected a number with a normaliser that needs two passes")
        ctx.plan, ctx.scale = plan, 1 / math.sqrt(query.shape[-1]) if given is None else float(given)
        ctx.save_for_backward(query, key, places)
        return scores.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tuple[Optional[Tensor], ...]:
        query, key, places = ctx.saved_tensors
        d_scores = (gradients[0] * ctx.scale).flatten()
        d_query = d_scores.new_zeros(query.shape)
        rows, d_rows = _rows(query.contiguous()).to(d_scores.dtype), d_query.view(-1, query.shape[-1])

        def visit(held: Tensor, d_held: Tensor, some: Tensor, at: Tensor, other: Tensor) -> None:
            d_rows.index_add_(0, at, d_scores[some, None] * _rows(held)[other].to(d_scores.dtype))
            _rows(d_held).index_add_(0, other, d_scores[some, None] * rows[at])

        d_key = _visited(ctx.plan, key, gradients[0] != 0, places, d_scores.dtype, visit)
        return d_query.to(query.dtype), d_key.to(key.dtype), None, None, None, None


def _rows(tensor: Tensor) -> Tensor:
    return tensor.view(-1, tensor.shape[-1]) if tensor.is_contiguous() else tensor.reshape(-1, tensor.shape[-1])


def _of_piece(plan: Plan, step: int, piece: slice, held: List[Tensor], chosen: Tensor, places: Tensor, heads: int) -> Iterator[Edges]:
    if held:
        yield from _edges(chosen, places, plan.first((plan.rank - step) % plan.ranks, piece), piece, heads)


def _visited(plan: Plan, rows: Tensor, chosen: Tensor, places: Tensor, dtype: torch.dtype, visit: Any) -> Tensor:
    """Takes the rows around the ring once; returns their gradients, to which `visit` adds."""
    total = torch.zeros(rows.shape, dtype=dtype, device=rows.device)
    back: Tuple[slice, List[Tensor], List[Any]] = (slice(0), [], [])
    for step, piece, held in _ring(plan, rows, rows[..., :0]):
        d_held = [torch.zeros(t.shape, dtype=dtype, device=t.device) for t in held]
        for edges in _of_piece(plan, step, piece, held, chosen, places, rows.shape[1]):
            visit(held[0], d_held[0], *edges)
        if step == 0:
            total[:, :, piece] += d_held[0]
            continue
        _arrived((total, total[..., :0]), *back)
        back = (piece, *plan.send_back(step, piece, d_held, (total, total[..., :0])))
    _arrived((total, total[..., :0]), *back)
    return total
