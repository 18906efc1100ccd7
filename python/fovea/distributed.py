"""Attention over sequences and graphs too long for one machine: each rank of a process group holds a part of the rows.

Keys and values go from rank to rank; partial results are joined by their log-sum-exp (Liu, Zaharia & Abbeel 2023, Ring Attention; Milakov &
Gimelshein 2018). Besides its own rows a rank holds a few pieces of others'.
"""

from __future__ import annotations

import sys
from typing import Any, Dict, List, Literal, Optional, Tuple, Union

import torch
import torch.distributed as dist
from torch import Tensor

from . import _check, _two_passes
from ._attend import _multiplied
from ._attend import attend as _whole_attend
from ._graph_part import GraphPart, edge_cut, partition
from ._normalisers import Normaliser, Sigmoid, Softmax, Uniform, Unnormalised
from ._ring import Plan, Ring, stretches
from ._scores import Additive, Bilinear, Constant, Cosine, Dot, GatedAdditive, Kernel, Number, RankOne, Score, _Alibi, _SoftCap
from ._structures import Causal, Dense, Documents, Structure, Window

__all__ = ["GraphPart", "attend", "edge_cut", "partition", "shard", "unshard"]

Layout = Literal["contiguous", "zigzag"]
_SCORES = (Dot, Bilinear, Additive, GatedAdditive, Kernel, Cosine, RankOne, Constant)


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
        score: one whose arrays, if it has any, are of no row: not :class:`fovea.Location`, ``bias`` or ``relative``. The gradient of such an
            array is that of this rank's queries; the sum over ranks is that of the whole call.
        normaliser: :class:`fovea.Softmax` (the gradient of a sink is that of this rank's rows),
            :class:`fovea.KernelRatio`, :class:`fovea.Unnormalised`, :class:`fovea.Uniform`, :class:`fovea.Sigmoid`. With :class:`fovea.Dot`
            alone also :class:`fovea.Sparsemax`, :class:`fovea.Entmax`, :class:`fovea.TopK` and :class:`fovea.Hard`, for which keys go round twice.
        structure: :class:`fovea.Dense`, :class:`fovea.Causal`, :class:`fovea.Window`, :class:`fovea.Documents` (with the ids of this rank's rows,
            the same for queries and keys), and what ``&``, ``|`` and ``~`` make of them.
        scale: as in :func:`fovea.attend`.
        return_lse: also return the log-sum-exp, differentiable.
        group: a process group of ``torch.distributed``; None: all ranks. A ``DTensor`` has a mesh of its own: of those that are sharded along their
            rows, ``Shard(2)``, keys and values go round; along the batch or the heads each rank attends alone; the result is sharded alike.
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
    if _is_dtensor(query):
        return _of_dtensors(query, key, value, score, normaliser, structure, scale, return_lse, layout)
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        _check.tensor(name, tensor)
    if query.device.type != "cpu":  # whose backward kernels may make the statistics of a row again, from the keys of one part alone
        raise ValueError(f"query: on {query.device}, expected the CPU: gradients on other devices do not know the keys of other ranks")
    _check.instance("normaliser", normaliser, Normaliser, "Softmax()")
    if return_lse and not isinstance(normaliser, Softmax):
        raise ValueError(f"return_lse: {normaliser!r} has no log-sum-exp, expected Softmax()")
    _check_structure(structure)
    _check_score(score)
    if isinstance(normaliser, _two_passes.THRESHOLD):
        _two_passes.check(score, normaliser)
    plan = Plan.of(query, key, structure, group, layout)
    if isinstance(normaliser, _two_passes.THRESHOLD):
        return _two_passes.attend(query, key, value, plan, (score, normaliser, structure, scale))
    if isinstance(normaliser, Softmax):
        output, lse = _ring_of(query, key, value, plan, (score, Softmax(), structure, scale))
        if normaliser.sink is not None:
            output, lse = _with_sink(output, lse, normaliser.sink)
        return (output, lse) if return_lse else output
    if isinstance(normaliser, (Unnormalised, Sigmoid)):
        return _ring_of(query, key, value, plan, (score, normaliser, structure, scale))[0]
    # A mean: the sum of the weights is one more column of the sum of weighted values.
    weighed = (Constant(), Unnormalised(), structure, None) if isinstance(normaliser, Uniform) else (score, Unnormalised(), structure, scale)
    sums = _ring_of(query, key, torch.cat([value, torch.ones_like(value[..., :1])], -1), plan, weighed)[0]
    total, mass = sums[..., :-1], sums[..., -1:]
    none = mass == 0
    return (total / mass.masked_fill(none, 1)).masked_fill(none, 0)


def _is_dtensor(tensor: Any) -> bool:
    known = sys.modules.get("torch.distributed.tensor")  # whoever has one has loaded it
    return known is not None and isinstance(tensor, known.DTensor)


def _of_dtensors(query: Any, key: Any, value: Any, score: Score, normaliser: Normaliser, structure: Structure, scale: Optional[Number], return_lse: bool,
                 layout: Layout) -> Union[Tensor, Tuple[Tensor, Tensor]]:  # fmt: skip
    """Each rank has a part of all of them, along the same dimension."""
    mesh, placements = query.device_mesh, query.placements
    for name, tensor in (("key", key), ("value", value)):
        if not _is_dtensor(tensor) or tensor.device_mesh != mesh or tensor.placements != placements:
            raise ValueError(f"{name}: {getattr(tensor, 'placements', 'no DTensor')}, expected {placements} on {mesh} (the query's)")
    (placement,) = placements if mesh.ndim == 1 else (None,)
    dim = getattr(placement, "dim", None)
    if placement is None or not (placement.is_shard() and dim in (0, 1, 2) or placement.is_replicate()):
        raise ValueError(f"query: placements {placements} on a mesh of {mesh.ndim} dimensions, expected Shard(0), Shard(1), Shard(2) or Replicate() on one")
    own: Tuple[Tensor, Tensor, Tensor] = (query.to_local(), key.to_local(), value.to_local())
    found: Any
    if dim == 2:
        found = attend(*own, score, normaliser, structure, scale, return_lse, group=mesh.get_group(), layout=layout)
    elif dim is not None and (_arrays_of(own[0], score) or any(isinstance(kind, Documents) for kind in structure._kinds())):
        raise ValueError(f"query: {placement}, expected Shard(2): arrays of {score!r} and {structure!r} are of the whole batch")
    else:
        whole: Any = _whole_attend  # whose overloads ask for a constant return_lse
        found = whole(*own, score, normaliser, structure, scale, return_lse=return_lse)
    wrap: Any = type(query).from_local
    shared: Any = tuple(wrap(one, mesh, placements) for one in found) if return_lse else wrap(found, mesh, placements)
    return shared  # type: ignore[no-any-return]


def _ring_of(query: Tensor, key: Tensor, value: Tensor, plan: Plan, choices: Tuple[Score, Normaliser, Structure, Optional[Number]]) -> Tuple[Tensor, Tensor]:
    score, _, _, scale = choices
    arrays = _arrays_of(query, score)
    output, lse = Ring.apply(_multiplied(query, score, scale), key, value, plan, choices, *arrays)  # type: ignore[no-untyped-call]
    return output, lse


def _with_sink(output: Tensor, lse: Tensor, sink: Union[float, Tensor]) -> Tuple[Tensor, Tensor]:
    """A key of that score and without a value, seen by every query."""
    column = torch.as_tensor(sink, dtype=lse.dtype, device=lse.device).reshape(-1, 1)
    both = torch.logaddexp(lse, column.expand(lse.shape[1], lse.shape[2]))
    return output * torch.exp(lse - both).unsqueeze(-1).to(output.dtype), both


def _names(kinds: Tuple[type, ...]) -> str:
    return ", ".join(kind.__name__ for kind in kinds)


def shard(tensor: Tensor, dim: int = 2, *, group: Optional[Any] = None, layout: Layout = "contiguous") -> Tensor:
    """This rank's part of a tensor that every rank has whole.

    Example::

        >>> rows = fovea.distributed.shard(torch.randn(1, 2, 64, 8), layout="zigzag")  # doctest: +SKIP
    """
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    count = len(stretches(0, ranks, layout)) * ranks
    if tensor.shape[dim] % count:
        raise ValueError(f"tensor: {tensor.shape[dim]} rows, expected a multiple of {count} ({layout}, {ranks} ranks)")
    parts = tensor.chunk(count, dim)
    return torch.cat([parts[i] for i in stretches(rank, ranks, layout)], dim)


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
        places = stretches(rank, ranks, layout)
        parts.update(zip(places, held.chunk(len(places), dim)))
    return torch.cat([parts[i] for i in sorted(parts)], dim)


def _arrays_of(query: Tensor, score: Score) -> List[Tensor]:
    arrays: List[Tensor] = []
    score._collect(arrays, [], query)
    return arrays


def _check_score(score: Score) -> None:
    _check.instance("score", score, Score, "Dot()")
    if not isinstance(score, _SCORES):
        raise ValueError(f"score: {score!r}, expected one of {_names(_SCORES)}")
    for modifier in score._modifiers:
        if not isinstance(modifier, (_Alibi, _SoftCap)):
            raise ValueError(f"score: {modifier!r}, expected alibi or soft_cap: others have numbers for rows that other ranks hold")


def _check_structure(structure: Structure) -> None:
    _check.instance("structure", structure, Structure, "Causal()")
    for kind in structure._kinds():
        if not isinstance(kind, (Dense, Causal, Window, Documents)):
            raise ValueError(f"structure: {type(kind).__name__}, expected Dense, Causal, Window, Documents or what &, | and ~ make of them")
        if isinstance(kind, Causal) and kind.alignment != "top_left":
            raise ValueError("structure: Causal('bottom_right'), expected Causal(): positions are those of the whole sequence")
        if isinstance(kind, Documents) and kind.query_ids.shape != kind.key_ids.shape:
            raise ValueError(f"structure: Documents of {list(kind.query_ids.shape)} and {list(kind.key_ids.shape)} ids, expected the same")
