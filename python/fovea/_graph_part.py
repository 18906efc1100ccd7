"""Graphs too large for one machine: each rank holds some nodes, the edges into them, and for each layer the features of their neighbours."""

from __future__ import annotations

from typing import Any, List, Literal, Optional, Tuple

import torch
import torch.distributed as dist
from torch import Tensor

from . import _check
from ._structures import Graph

Method = Literal["contiguous", "edge_cut"]


def partition(graph: Graph, ranks: int, method: Method = "contiguous") -> Tensor:
    """Which rank holds each node: ``[nodes]``, int32.

    ``"contiguous"`` gives each rank a stretch of nodes, so nodes that see each other should have near numbers. ``"edge_cut"`` goes through the
    nodes once and gives each to the rank that holds most of its neighbours, and still has room: linear deterministic greedy (Stanton & Kliot
    2012), in blocks of nodes.

    Example::

        >>> graph = fovea.Graph(row_offsets=torch.tensor([0, 1, 2, 3, 4]), columns=torch.tensor([2, 3, 0, 1]))
        >>> fovea.distributed.partition(graph, 2).tolist()
        [0, 0, 1, 1]
    """
    nodes, device = graph.row_offsets.numel() - 1, graph.row_offsets.device
    if method == "contiguous":
        return (torch.arange(nodes, device=device) * ranks // max(1, nodes)).int()
    if method != "edge_cut":
        raise ValueError(f"method: {method!r}, expected 'contiguous' or 'edge_cut'")
    block = max(64, min(4096, nodes // 64))
    room = -(-nodes // ranks)
    owner = torch.full((nodes,), -1, dtype=torch.int32, device=device)
    load = torch.zeros(ranks, dtype=torch.int64, device=device)
    for first in range(0, nodes, block):
        end = min(first + block, nodes)
        begin, stop = int(graph.row_offsets[first]), int(graph.row_offsets[end])
        row = torch.repeat_interleave(torch.arange(end - first, device=device), graph.row_offsets[first : end + 1].diff())
        held = owner[graph.columns[begin:stop].long()].long()
        known = held >= 0
        count = torch.zeros(end - first, ranks, dtype=torch.float64, device=device)
        count.index_put_((row[known], held[known]), count.new_ones(int(known.sum())), accumulate=True)
        # Where no neighbour is held yet, the emptiest rank: the second term decides between equal ones.
        wish = (count * (1 - load / room) - 1e-6 * load / room).argsort(dim=1, descending=True, stable=True)
        owner[first:end] = _with_room(wish, load, room)
        load = torch.bincount(owner[:end].long(), minlength=ranks)
    return owner


def _with_room(wish: Tensor, load: Tensor, room: int) -> Tensor:
    """Each node's first wish among the ranks that have room, earlier nodes first."""
    chosen = wish[:, 0].clone()
    left = (room - load).tolist()
    for rank in range(len(left)):
        over = (chosen == rank).nonzero().flatten()[max(0, left[rank]) :]
        left[rank] -= int((chosen == rank).sum()) - over.numel()
        chosen[over] = -1
    for node in (chosen < 0).nonzero().flatten().tolist():
        rank = next(one for one in wish[node].tolist() if left[one] > 0)
        chosen[node] = rank
        left[rank] -= 1
    return chosen.int()


def edge_cut(graph: Graph, owner: Tensor) -> int:
    """Edges between nodes of different ranks.

    Example::

        >>> graph = fovea.Graph(row_offsets=torch.tensor([0, 1, 2]), columns=torch.tensor([1, 0]))
        >>> fovea.distributed.edge_cut(graph, torch.tensor([0, 1]))
        2
    """
    return int((torch.repeat_interleave(owner, graph.row_offsets.diff()) != owner[graph.columns.long()]).sum())


class GraphPart:
    """The part of a graph that this rank holds.

    Attributes:
        nodes: numbers of this rank's nodes in the whole graph, ascending.
        graph: the edges into them. A column below ``len(nodes)`` is one of them, the others are neighbours that other ranks hold.

    Example::

        >>> torch.distributed.init_process_group("gloo")  # doctest: +SKIP
        >>> part = fovea.distributed.GraphPart.of(graph, fovea.distributed.partition(graph, 4))  # doctest: +SKIP
        >>> x = features[part.nodes]  # doctest: +SKIP
        >>> x = layer((part.halo(x), x), part.graph)  # a layer such as fovea.nn.GATConv  # doctest: +SKIP
    """

    nodes: Tensor
    graph: Graph

    def __init__(self, nodes: Tensor, row_offsets: Tensor, columns: Tensor, owner: Tensor, group: Optional[Any] = None) -> None:
        """From this rank's own rows, whose ``columns`` are numbers of the whole graph: no rank needs all edges. Every rank calls it."""
        for name, tensor in (("nodes", nodes), ("row_offsets", row_offsets), ("columns", columns), ("owner", owner)):
            _check.tensor(name, tensor)
        ranks, rank = dist.get_world_size(group), dist.get_rank(group)
        if row_offsets.numel() != nodes.numel() + 1:
            raise ValueError(f"row_offsets: {row_offsets.numel()}, expected {nodes.numel() + 1}, one more than nodes")
        if nodes.numel() and not bool((owner[nodes.long()] == rank).all()):
            raise ValueError(f"nodes: some are not this rank's, expected those whose owner is {rank}")
        held = owner[columns.long()]
        if held.numel() and not 0 <= int(held.min()) <= int(held.max()) < ranks:
            raise ValueError(f"owner: {int(held.min())} to {int(held.max())}, expected 0 to {ranks - 1}, the ranks")
        self.group, self.nodes = group, nodes
        far = torch.unique(columns[held != rank]).long()
        far = far[owner[far].argsort(stable=True)]  # one rank after the other
        self.received = torch.bincount(owner[far].long(), minlength=ranks).tolist()
        local = torch.empty(owner.numel(), dtype=torch.int32, device=columns.device)
        local[nodes.long()] = torch.arange(nodes.numel(), dtype=torch.int32, device=columns.device)
        wanted, self.sent = self._asked(far)
        self.rows_sent = local[wanted].long()
        local[far] = torch.arange(nodes.numel(), nodes.numel() + far.numel(), dtype=torch.int32, device=columns.device)
        self.graph = Graph(row_offsets, local[columns.long()])

    @classmethod
    def of(cls, graph: Graph, owner: Tensor, group: Optional[Any] = None) -> GraphPart:
        """From a graph that every rank has whole."""
        nodes = (owner == dist.get_rank(group)).nonzero().flatten()
        starts, counts = graph.row_offsets[nodes].long(), graph.row_offsets.diff()[nodes].long()
        offsets = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
        places = torch.arange(int(offsets[-1]), device=offsets.device) + torch.repeat_interleave(starts - offsets[:-1], counts)
        return cls(nodes, offsets.to(graph.row_offsets.dtype), graph.columns[places], owner, group)

    def halo(self, features: Tensor) -> Tensor:
        """Features of this rank's nodes, and after them those of their neighbours on other ranks, with gradient.

        Example::

            >>> x = layer((part.halo(x), x), part.graph)  # doctest: +SKIP
        """
        _check.tensor("features", features)
        if features.shape[0] != self.nodes.numel():
            raise ValueError(f"features: {features.shape[0]} rows, expected {self.nodes.numel()}, this rank's nodes")
        return _Halo.apply(features, self)  # type: ignore[no-any-return, no-untyped-call]

    def _asked(self, far: Tensor) -> Tuple[Tensor, List[int]]:
        """Which nodes each other rank needs of this one."""
        counts = torch.tensor(self.received, device=far.device)
        asked = torch.empty_like(counts)
        dist.all_to_all_single(asked, counts, group=self.group)
        wanted = far.new_empty(int(asked.sum()))
        dist.all_to_all_single(wanted, far, asked.tolist(), self.received, group=self.group)
        return wanted, asked.tolist()

    def _exchange(self, rows: Tensor, received: List[int], sent: List[int]) -> Tensor:
        out = rows.new_empty(sum(received), *rows.shape[1:])
        dist.all_to_all_single(out, rows.contiguous(), received, sent, group=self.group)
        return out


class _Halo(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, part: GraphPart) -> Tensor:
        ctx.part = part
        return torch.cat([features, part._exchange(features[part.rows_sent], part.received, part.sent)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tuple[Tensor, None]:
        part: GraphPart = ctx.part
        own = part.nodes.numel()
        back = part._exchange(gradients[0][own:], part.sent, part.received)
        # In the order of the ranks, so that the sum is the same in each run.
        return gradients[0][:own].index_add(0, part.rows_sent, back), None
