"""Graph attention (Velickovic et al. 2018; Brody et al. 2022) under the names of ``torch_geometric.nn``."""

from __future__ import annotations

import math
from typing import Any, Optional, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import _check
from .._attend import attend
from .._scores import Additive, RankOne, Score
from .._structures import Graph, sorted_edges

_UNKNOWN = -1  # columns, until the first call
Nodes = Union[Tensor, Tuple[Tensor, Optional[Tensor]]]
Edges = Union[Tensor, Graph]
_REDUCTIONS = {"add": "sum", "sum": "sum", "mean": "mean", "min": "amin", "max": "amax", "mul": "prod"}


def _draw(name: str, parameter: Tensor) -> None:
    """Glorot's limits; a bias starts at zero."""
    if name.endswith("bias"):
        torch.nn.init.zeros_(parameter)
    else:
        limit = math.sqrt(6.0 / (parameter.shape[-2] + parameter.shape[-1]))
        torch.nn.init.uniform_(parameter, -limit, limit)


class _Lazy(torch.nn.LazyLinear):
    """Takes its number of columns from the first call."""

    def reset_parameters(self) -> None:
        """Draws the weights, once there are some."""
        for name, parameter in self.named_parameters():
            if not torch.nn.parameter.is_lazy(parameter) and parameter.numel():
                _draw(name, parameter)


def _linear(columns: int, wide: int, bias: bool) -> torch.nn.Linear:
    return _Lazy(wide, bias) if columns == _UNKNOWN else torch.nn.Linear(columns, wide, bias)


def _listed(edges: Tensor) -> Tensor:
    """Edges ``[2, E]``; of a sparse matrix ``[targets, sources]``, as ``torch_geometric`` takes one, those that it holds."""
    if edges.layout == torch.strided:
        return edges
    targets, sources = edges.to_sparse().coalesce().indices().unbind()
    return torch.stack([sources, targets])


class _GraphLayer(torch.nn.Module):
    """What both layers share: the edges, the attention over them, and what follows it."""

    bias: Optional[torch.nn.Parameter]

    def __init__(
        self,
        in_channels: Union[int, Tuple[int, int]],
        out_channels: int,
        heads: int,
        concat: bool,
        negative_slope: float,
        dropout: float,
        add_self_loops: bool,
        edge_dim: Optional[int],
        fill_value: Union[float, Tensor, str],
        residual: bool,
    ) -> None:
        super().__init__()
        if isinstance(fill_value, str) and fill_value not in _REDUCTIONS:
            raise ValueError(f"fill_value: unknown {fill_value!r}, expected a number, a tensor or one of {', '.join(_REDUCTIONS)}")
        self.in_channels, self.out_channels, self.heads, self.concat = in_channels, out_channels, heads, concat
        self.negative_slope, self.dropout, self.add_self_loops = negative_slope, dropout, add_self_loops
        self.edge_dim, self.fill_value, self.residual = edge_dim, fill_value, residual

    def _made_last(self, bias: bool) -> None:
        """The parts both layers end with; ``torch_geometric``'s order, by which an optimiser's state knows the parameters."""
        wide = self.out_channels * (self.heads if self.concat else 1)
        targets = self.in_channels if isinstance(self.in_channels, int) else self.in_channels[1]
        self.lin_edge = None if self.edge_dim is None else _linear(self.edge_dim, self.heads * self.out_channels, False)
        self.res = _linear(targets, wide, False) if self.residual else None
        self.register_parameter("bias", torch.nn.Parameter(torch.empty(wide)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights again."""
        for name, parameter in self.named_parameters():
            if not torch.nn.parameter.is_lazy(parameter):
                _draw(name, parameter)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.in_channels}, {self.out_channels}, heads={self.heads}"

    def _projected(self, layer: torch.nn.Linear, x: Tensor) -> Tensor:
        made: Tensor = layer(x)
        return made.reshape(x.shape[0], self.heads, self.out_channels)

    def _nodes(self, x: Nodes) -> Tuple[Tensor, Optional[Tensor]]:
        """The features of the sources and of the targets, which are the same of one kind of nodes."""
        source, target = x if isinstance(x, tuple) and len(x) == 2 else (x, x)
        names = ("x", "x") if source is x else ("x[0]", "x[1]")
        _check.tensor(names[0], source)
        if target is not None:
            _check.tensor(names[1], target)
        channels = (self.in_channels, self.in_channels) if isinstance(self.in_channels, int) else self.in_channels
        for name, nodes, width in zip(names, (source, target), channels):
            if nodes is not None and width != _UNKNOWN:
                _check.width(name, nodes, width, "in_channels")
        return source, target

    def _edges(self, edges: Edges, edge_attr: Optional[Tensor], loops: int) -> Tuple[Edges, Optional[Tensor]]:
        """The edges with a loop at each node, if the layer adds them. A :class:`fovea.Graph` stays as it is."""
        if isinstance(edges, Graph):
            if edge_attr is not None:
                raise ValueError("edge_attr: given with a Graph, expected with edges [2, E], whose order it has")
            return edges, None
        edges = _listed(_check.tensor("edge_index", edges))
        _check.tensors(edge_attr=edge_attr)
        if edges.dim() != 2 or edges.shape[0] != 2 or edges.is_floating_point():
            raise ValueError(f"edge_index: {_check.said(edges)}, expected whole numbers [2, E] (sources, targets) or a fovea.Graph")
        edges = _check.counted(edges)
        if edge_attr is not None:
            edge_attr = edge_attr.unsqueeze(-1) if edge_attr.dim() == 1 else edge_attr
            if edge_attr.shape[0] != edges.shape[1]:
                raise ValueError(f"edge_attr: {edge_attr.shape[0]} rows, expected {edges.shape[1]} (edges)")
            if self.edge_dim is not None and self.edge_dim != _UNKNOWN:
                _check.width("edge_attr", edge_attr, self.edge_dim, "edge_dim")
        if not self.add_self_loops:
            return edges, edge_attr
        kept = edges[0] != edges[1]
        edges, every = edges[:, kept], torch.arange(loops, device=edges.device, dtype=edges.dtype)
        if edge_attr is not None:
            edge_attr = edge_attr[kept]
            edge_attr = torch.cat([edge_attr, self._filled(edges, edge_attr, loops)])
        return torch.cat([edges, every.expand(2, -1)], 1), edge_attr

    def _filled(self, edges: Tensor, edge_attr: Tensor, loops: int) -> Tensor:
        """The features of the loops: a value, or what the edges into each node have together."""
        made = edge_attr.new_zeros(loops, edge_attr.shape[1])
        if not isinstance(self.fill_value, str):
            return made + self.fill_value
        into = edges[1] < loops
        index = edges[1, into].unsqueeze(-1).expand(-1, edge_attr.shape[1])
        return made.scatter_reduce(0, index, edge_attr[into], _REDUCTIONS[self.fill_value], include_self=False)

    def _attended(
        self, score: Score, query: Tensor, key: Tensor, value: Tensor, edges: Edges, edge_keys: Optional[Tensor], wanted: Optional[bool]
    ) -> Tuple[Tensor, Optional[Tuple[Tensor, Tensor]]]:
        """The output of every target, and the weights of the edges if they are wanted."""
        if isinstance(edges, Graph):
            graph, order = edges, None
        else:
            offsets, columns, order = sorted_edges(edges, query.shape[0])
            graph = Graph(offsets, columns)
        if edge_keys is not None and order is not None:
            # Every edge a key of its own, so that its features take part in the score.
            source = graph.columns
            key, value = key[source] + edge_keys[order], value[source]
            graph = Graph(graph.row_offsets, torch.arange(source.shape[0], device=source.device))
        dropped = self.dropout if self.training else 0.0
        if wanted is None or wanted is False:
            out = attend(query, key, value, score, structure=graph, dropout_p=dropped)
            assert isinstance(out, Tensor)
            return out, None
        if order is None or isinstance(edges, Graph):
            raise ValueError("return_attention_weights: True with a Graph, expected edges [2, E]")
        out, sums = attend(query, key, value, score, structure=graph, dropout_p=dropped, return_lse=True)
        target = edges[1, order]
        # As the operator: half precision is stored, and computed in single.
        pairs = _pair_scores(score, query[target].to(sums.dtype), key[graph.columns].to(sums.dtype))
        weights = torch.empty_like(pairs).index_copy(0, order, (pairs - sums.reshape(query.shape[0], -1)[target]).exp())
        return out, (edges, weights.to(query.dtype))

    def _finished(self, out: Tensor, residual: Optional[Tensor]) -> Tensor:
        out = out.flatten(1) if self.concat else out.mean(1)
        if self.res is not None and residual is not None:
            out = out + self.res(residual)
        return out if self.bias is None else out + self.bias


def _pair_scores(score: Score, query: Tensor, key: Tensor) -> Tensor:
    """The scores of pairs, one of each row."""
    if isinstance(score, RankOne):
        return F.leaky_relu(query + key, score.negative_slope).squeeze(-1)
    assert isinstance(score, Additive)
    return (F.leaky_relu(query + key, score.negative_slope) * score.weight).sum(-1)


class GATConv(_GraphLayer):
    """``torch_geometric.nn.GATConv`` on Fovea's operators: its arguments, its call, its parameters.

    Edges are ``[2, E]``, sources above targets, a sparse matrix ``[targets, sources]``, or a :class:`fovea.Graph`, which is taken as it is and
    sorted only once. Channels of -1 are those of the first call. The weights of ``return_attention_weights`` are those before dropout.

    Example::

        >>> layer = fovea.nn.GATConv(16, 8, heads=4)
        >>> edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> out = layer(torch.randn(3, 16), edges)
    """

    att_edge: Optional[torch.nn.Parameter]

    def __init__(
        self,
        in_channels: Union[int, Tuple[int, int]],
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: Optional[int] = None,
        fill_value: Union[float, Tensor, str] = "mean",
        bias: bool = True,
        residual: bool = False,
    ) -> None:
        super().__init__(
            in_channels, out_channels, heads, concat, negative_slope, dropout, add_self_loops, edge_dim, fill_value, residual
        )
        self.lin: Optional[torch.nn.Linear] = None
        self.lin_src: Optional[torch.nn.Linear] = None
        self.lin_dst: Optional[torch.nn.Linear] = None
        if isinstance(in_channels, int):
            self.lin = _linear(in_channels, heads * out_channels, False)
        else:
            self.lin_src, self.lin_dst = (_linear(channels, heads * out_channels, False) for channels in in_channels)
        self.att_src = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self.register_parameter("att_edge", None if edge_dim is None else torch.nn.Parameter(torch.empty(1, heads, out_channels)))
        self._made_last(bias)

    def forward(
        self,
        x: Nodes,
        edge_index: Edges,
        edge_attr: Optional[Tensor] = None,
        size: Optional[Tuple[int, int]] = None,
        return_attention_weights: Optional[bool] = None,
    ) -> Any:
        """``[nodes, heads * out_channels]`` (``[nodes, out_channels]`` without ``concat``), or it and ``(edge_index, weights)``."""
        source, target = self._nodes(x)
        of_source = self.lin if self.lin is not None else self.lin_src
        of_target = self.lin if self.lin is not None else self.lin_dst
        assert of_source is not None and of_target is not None
        value = self._projected(of_source, source)
        if target is None:
            query = value.new_zeros(size[1] if size is not None else value.shape[0], self.heads, 1)
        else:
            projected = value if target is source and of_source is of_target else self._projected(of_target, target)
            query = (projected * self.att_dst).sum(-1, keepdim=True)
        key = (value * self.att_src).sum(-1, keepdim=True)
        loops = min(value.shape[0], query.shape[0]) if size is None else min(size)
        edges, edge_attr = self._edges(edge_index, edge_attr, loops if target is not None or size is not None else value.shape[0])
        edge_keys = None
        if edge_attr is not None and self.lin_edge is not None and self.att_edge is not None:
            edge_keys = (self._projected(self.lin_edge, edge_attr) * self.att_edge).sum(-1, keepdim=True)
        out, weights = self._attended(RankOne(self.negative_slope), query, key, value, edges, edge_keys, return_attention_weights)
        out = self._finished(out, target)
        return out if weights is None else (out, weights)


class GATv2Conv(_GraphLayer):
    """``torch_geometric.nn.GATv2Conv`` on Fovea's operators: its arguments, its call, its parameters; see :class:`GATConv`.

    Example::

        >>> layer = fovea.nn.GATv2Conv(16, 8, heads=4, edge_dim=3)
        >>> edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> out, (edges, weights) = layer(torch.randn(3, 16), edges, torch.randn(3, 3), return_attention_weights=True)
    """

    def __init__(
        self,
        in_channels: Union[int, Tuple[int, int]],
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: Optional[int] = None,
        fill_value: Union[float, Tensor, str] = "mean",
        bias: bool = True,
        share_weights: bool = False,
        residual: bool = False,
    ) -> None:
        super().__init__(
            in_channels, out_channels, heads, concat, negative_slope, dropout, add_self_loops, edge_dim, fill_value, residual
        )
        self.share_weights = share_weights
        sources, targets = (in_channels, in_channels) if isinstance(in_channels, int) else in_channels
        self.lin_l = _linear(sources, heads * out_channels, bias)
        self.lin_r = self.lin_l if share_weights else _linear(targets, heads * out_channels, bias)
        self.att = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self._made_last(bias)

    def forward(
        self, x: Nodes, edge_index: Edges, edge_attr: Optional[Tensor] = None, return_attention_weights: Optional[bool] = None
    ) -> Any:
        """As :meth:`GATConv.forward`."""
        source, target = self._nodes(x)
        if target is None:
            raise ValueError("x: no targets, expected a tensor or (sources, targets)")
        key = self._projected(self.lin_l, source)
        query = key if self.share_weights and target is source else self._projected(self.lin_r, target)
        edges, edge_attr = self._edges(edge_index, edge_attr, min(key.shape[0], query.shape[0]))
        edge_keys = None
        if edge_attr is not None:
            if self.lin_edge is None:
                raise ValueError("edge_attr: given, expected none (edge_dim is None)")
            edge_keys = self._projected(self.lin_edge, edge_attr)
        score = Additive(self.att.squeeze(0), "leaky_relu", self.negative_slope)
        out, weights = self._attended(score, query, key, key, edges, edge_keys, return_attention_weights)
        out = self._finished(out, target)
        return out if weights is None else (out, weights)
