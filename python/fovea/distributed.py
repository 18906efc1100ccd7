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

from . import _check
from ._attend import _calls, _flatten, _multiplied
from ._attend import attend as _whole_attend
from ._graph_part import GraphPart, edge_cut, partition
from ._normalisers import Normaliser, Softmax
from ._scores import Dot, Number, Score
from ._structures import Dense, Documents, Structure

__all__ = ["GraphPart", "attend", "edge_cut", "partition", "shard", "unshard"]

Layout = Literal["contiguous", "zigzag"]
_sizes: Tuple[int, ...] = ()  # the operator's piece and candidates, where a test makes them smaller
_over_ranks = torch.ops.fovea.attend_over_ranks.default
_stretches = torch.ops.fovea.stretches_of_rank.default


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
            alone also :class:`fovea.Sparsemax`, :class:`fovea.Entmax`, :class:`fovea.TopK` and :class:`fovea.Hard`, for which keys go round twice, on the CPU.
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
    _check.instance("normaliser", normaliser, Normaliser, "Softmax()")
    if return_lse and not isinstance(normaliser, Softmax):
        raise ValueError(f"return_lse: {normaliser!r} has no log-sum-exp, expected Softmax()")
    if _calls(score, normaliser, structure):
        raise ValueError("score, structure: a Python function among them, expected choices that the library knows by name")
    text, arrays, numbers = _flatten(query, score, normaliser, structure, scale)
    ranks: Any = dist.group.WORLD if group is None else group
    output, lse = _over_ranks(_multiplied(query, score, scale), key, value, text, arrays or [None], numbers or None, ranks.group_name, layout, *_sizes)
    return (output, lse) if return_lse else output


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
        places = _stretches(rank, ranks, layout)
        parts.update(zip(places, held.chunk(len(places), dim)))
    return torch.cat([parts[i] for i in sorted(parts)], dim)


def _arrays_of(query: Tensor, score: Score) -> List[Tensor]:
    arrays: List[Tensor] = []
    score._collect(arrays, [], query)
    return arrays
