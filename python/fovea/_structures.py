"""Structures: which pairs of query ``i`` and key ``j`` may meet.

``a & b`` allows what both allow, ``a | b`` what either allows, ``~a`` what ``a`` does not: StreamingLLM's keys are
``Causal() & (Window(1020, 0) | First(4))``. :class:`Ragged`, :class:`Graph` and :class:`Paged` say how tensors lie in
memory, and stand in ``&`` only.

:class:`Causal`, :class:`Window`, :class:`Prefix`, :class:`Strided` and :class:`Fixed` count positions: ``i`` is the query's row plus the
call's ``query_offset``. :class:`Documents`, :class:`Blocks` and :class:`Keep` index arrays by the query's row and know no offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Dict, List, Literal, Optional, Tuple, Union

import torch

from . import _check
from ._choice import Choice


class Structure(Choice):
    """Base of every structure.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> streaming = fovea.Causal() & (fovea.Window(1020, 0) | fovea.First(4))  # the pairs both allow; either allows
        >>> out = fovea.attend(query, key, value, structure=streaming & ~fovea.Window(0, 0))  # and not the query's own
    """

    _tensors = _check.WHOLE_TENSOR

    #: The text, where it is all there is to the choice.
    _whole_structure: Optional[str] = None
    #: Whether a Python function is a part of it.
    _calls = False

    def _set_whole(self) -> None:
        object.__setattr__(self, "_whole_structure", self._text)

    def __and__(self, other: "Structure") -> "Structure":
        if not isinstance(other, Structure):
            _refuse_mask(other)
            return NotImplemented
        return _All((*self._parts(), *other._parts()))

    def __or__(self, other: "Structure") -> "Structure":
        if not isinstance(other, Structure):
            _refuse_mask(other)
            return NotImplemented
        sides = [side.parts if isinstance(side, _Any) else (side,) for side in (self, other)]
        return _Any((*sides[0], *sides[1]))

    def __rand__(self, other: object) -> "Structure":
        _refuse_mask(other)
        return NotImplemented

    def __ror__(self, other: object) -> "Structure":
        _refuse_mask(other)
        return NotImplemented

    def __invert__(self) -> "Structure":
        return _Not((self,))

    def __bool__(self) -> bool:
        # `Causal() and Window(3)` would be Window(3) alone, without a word.
        raise TypeError("a structure is neither true nor false: join structures with &, | and ~, and test for None with `is None`")

    def _parts(self) -> Tuple["Structure", ...]:
        """Structures that must all allow a pair."""
        return (self,)

    def _kinds(self) -> Tuple["Structure", ...]:
        """Every structure in it that is not made of others."""
        return (self,)

    def _changed(self, change: Callable[["Structure"], "Structure"]) -> "Structure":
        """The same expression of changed structures."""
        return change(self)


def _refuse_mask(other: object) -> None:
    """Says what to do where the other side of an operator is a mask; what else it may be Python refuses."""
    if isinstance(other, torch.Tensor):
        raise TypeError(f"structure: {_check.said(other)}, expected a Structure; fovea.Keep(mask) makes one of a bool mask")


@dataclass(frozen=True, eq=False, repr=False)
class _Expression(Structure):
    """A structure made of others."""

    parts: Tuple[Structure, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_text", self._joined([part._text for part in self.parts]))
        object.__setattr__(self, "_calls", any([part._calls for part in self.parts]))
        if all([part._whole_structure is not None for part in self.parts]):
            self._set_whole()

    def _joined(self, texts: List[str]) -> str:
        raise NotImplementedError

    def _kinds(self) -> Tuple[Structure, ...]:
        return tuple([kind for part in self.parts for kind in part._kinds()])

    def _changed(self, change: Callable[[Structure], Structure]) -> Structure:
        return type(self)(tuple([part._changed(change) for part in self.parts]))

    def _collect(self, arrays: List[torch.Tensor], numbers: List[int], query: torch.Tensor) -> None:
        for part in self.parts:
            part._collect(arrays, numbers, query)


@dataclass(frozen=True, eq=False, repr=False)
class _All(_Expression):
    """Structures that must all allow a pair."""

    def _joined(self, texts: List[str]) -> str:
        return "&".join(texts)

    def __repr__(self) -> str:
        return " & ".join(f"({part!r})" if isinstance(part, _Any) else repr(part) for part in self.parts)

    def _parts(self) -> Tuple[Structure, ...]:
        return self.parts


@dataclass(frozen=True, eq=False, repr=False)
class _Any(_Expression):
    """Structures of which one must allow a pair."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_packed(self.parts, "|")

    def _joined(self, texts: List[str]) -> str:
        return "(" + "|".join(texts) + ")"

    def __repr__(self) -> str:
        return " | ".join(repr(part) for part in self.parts)


@dataclass(frozen=True, eq=False, repr=False)
class _Not(_Expression):
    """What a structure, the one part, does not allow."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_packed(self.parts, "~")

    def _joined(self, texts: List[str]) -> str:
        return "~(" + texts[0] + ")"

    def __repr__(self) -> str:
        inner = repr(self.parts[0])
        return f"~({inner})" if isinstance(self.parts[0], (_All, _Any)) else "~" + inner


def _refuse_packed(parts: Tuple[Structure, ...], operator: str) -> None:
    for part in parts:
        for kind in part._kinds():
            if isinstance(kind, (Ragged, Graph, Paged)):
                name = type(kind).__name__
                raise ValueError(f"structure: {name} inside {operator}, expected it in & only: it says how tensors lie in memory; write {name} & (a | b)")


@dataclass(frozen=True, eq=False, repr=False)
class Dense(Structure, kind="dense"):
    """Every pair.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, structure=fovea.Dense())
    """


@dataclass(frozen=True, eq=False, repr=False)
class Causal(Structure, kind="causal"):
    r""":math:`j \le i`.

    ``"top_left"``: :math:`i` counts from the call's ``query_offset``. ``"bottom_right"``: the last query is at the position of the last key.
    This sets ``query_offset`` to :math:`S - L` for all structures and modifiers of the call; another offset is refused.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, structure=fovea.Causal())
        >>> step = fovea.attend(query[:, :, -1:], key, value, structure=fovea.Causal("bottom_right"))
    """

    alignment: Literal["top_left", "bottom_right"] = "top_left"


_UNBOUNDED = _check.at_least(-1, " (unbounded)")


@dataclass(frozen=True, eq=False, repr=False)
class Window(Structure, kind="window", ranges={"left": _UNBOUNDED, "right": _UNBOUNDED}):
    r""":math:`i - \mathrm{left} \le j \le i + \mathrm{right}`; -1 is unbounded.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, structure=fovea.Window(left=2, right=0))
    """

    left: int = -1
    right: int = -1


@dataclass(frozen=True, eq=False, repr=False)
class Prefix(Structure, kind="prefix", ranges={"length": _check.at_least(0)}):
    r""":math:`j \le i` or :math:`j < \mathrm{length}`; ``length`` is a number, or int ``[B]``, one for each item.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, structure=fovea.Prefix(3))
    """

    length: Union[int, torch.Tensor]

    def _checked(self, field: str, kind: Union[str, List[str]]) -> object:
        if isinstance(self.length, torch.Tensor) and self.length.dim() > 0:
            if self.length.dim() > 1 or not self._tensors.holds(self.length):
                raise ValueError(f"Prefix.length: {_check.said(self.length)}, expected a whole number, or whole numbers [B]")
            return self.length if field == "lengths" else None
        return super()._checked(field, kind) if field == "length" else None

    def _collect(self, arrays: List[torch.Tensor], numbers: List[int], query: torch.Tensor) -> None:
        if isinstance(self.length, torch.Tensor):
            arrays.append(self.length)
        else:
            numbers.append(self.length)


@dataclass(frozen=True, eq=False, repr=False)
class Documents(Structure, kind="documents"):
    """Equal ids: int ``[L]`` or ``[B, L]``, and ``[S]`` or ``[B, S]``.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> ids = torch.tensor([0, 0, 0, 1, 1, 1])
        >>> out = fovea.attend(query, key, value, structure=fovea.Documents(ids, ids) & fovea.Causal())
    """

    query_ids: torch.Tensor
    key_ids: torch.Tensor


@dataclass(frozen=True, eq=False, repr=False)
class Blocks(Structure, kind="blocks", ranges={"size": _check.at_least(1)}):
    """Whole ``size`` x ``size`` blocks; ``mask`` bool (True: may attend), a broadcast of ``[B, H, ceil(L/size), ceil(S/size)]``.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, structure=fovea.Blocks(torch.tensor([[True, False], [True, True]]), size=3))
    """

    _tensors = _check.MASK
    mask: torch.Tensor
    size: int = 64


@dataclass(frozen=True, eq=False, repr=False)
class Keep(Structure, kind="keep"):
    """Where ``mask`` is True; bool, any broadcast of ``[B, H, L, S]``.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, structure=fovea.Keep(torch.rand(6, 6) > 0.5))
    """

    _tensors = _check.MASK
    mask: torch.Tensor


@dataclass(frozen=True, eq=False, repr=False)
class Ragged(Structure, kind="ragged"):
    """Sequences packed one after another, tensors ``(total, H, E)``; int offsets ``[B + 1]``.

    Example::

        >>> x = torch.randn(10, 2, 8)  # sequences of 3 and 7
        >>> offsets = torch.tensor([0, 3, 10])
        >>> out = fovea.attend(x, x, x, structure=fovea.Ragged(offsets, offsets) & fovea.Causal())
    """

    query_offsets: torch.Tensor
    key_offsets: torch.Tensor


@dataclass(frozen=True, eq=False, repr=False)
class Paged(Structure, kind="paged"):
    r"""Keys and values in pages, as servers keep their caches: pools ``[pages, page_size, Hkv, E]``.

    Key :math:`j` of item :math:`b` is row :math:`j \bmod \mathrm{page\_size}` of page ``table[b, j // page_size]``, for ``j < lengths[b]``.
    ``table`` is int ``[B, pages of an item at most]``, ``lengths`` int ``[B]``; what a table has past an item's keys is not read, and items
    may share pages. Masks and biases have a column for each of ``table.shape[1] * page_size`` keys.

    Example::

        >>> pool = torch.randn(8, 16, 2, 64)  # 8 pages of 16 keys
        >>> query = torch.randn(3, 4, 1, 64)  # one new token for each of three sequences
        >>> pages = fovea.Paged(torch.tensor([[5, 1], [0, -1], [2, 7]]), torch.tensor([20, 16, 32]))
        >>> out = fovea.attend(query, pool, pool, structure=pages & fovea.Causal("bottom_right"))
    """

    table: torch.Tensor
    lengths: torch.Tensor


@dataclass(frozen=True, eq=False, repr=False)
class Graph(Structure, kind="graph"):
    """A graph in CSR, tensors ``(nodes, H, E)``: row ``i`` lists the keys query ``i`` sees, in the order given.

    Example::

        >>> graph = fovea.Graph(row_offsets=torch.tensor([0, 2, 3]), columns=torch.tensor([0, 1, 1]))  # query 0 sees keys 0 and 1
        >>> x = torch.randn(2, 1, 4)
        >>> out = fovea.attend(x, x, x, fovea.Dot().edge_bias(torch.tensor([0.0, 1.0, 0.0])), structure=graph)
    """

    row_offsets: torch.Tensor
    columns: torch.Tensor
    #: From :meth:`from_edge_index`: which edge given is each of the graph's, so that ``features[graph.order]`` are in its order.
    order = None  # type: Optional[torch.Tensor]  # no annotation: it is no field

    @classmethod
    def from_edge_index(cls, edge_index: torch.Tensor, num_nodes: Optional[int] = None) -> "Graph":
        """A graph of edges ``[2, E]``, sources (keys) above targets (queries), in any order, repeated ones counted again.

        ``num_nodes`` is the number of targets; one more than the largest number in the edges when None. The graph has its edges by target;
        ``order`` says which of those given each is, so that a bias ``b`` of edges is ``score.edge_bias(b[graph.order])``.

        Example::

            >>> edges = torch.tensor([[0, 1, 2, 0], [1, 2, 0, 2]])
            >>> graph = fovea.Graph.from_edge_index(edges)
            >>> x, bias = torch.randn(3, 2, 4), torch.randn(4, 2)  # two heads
            >>> out = fovea.attend(x, x, x, fovea.Dot().edge_bias(bias[graph.order]), structure=graph)
        """
        edges = _check.tensor("edge_index", edge_index)
        if edges.dim() != 2 or edges.shape[0] != 2 or not cls._tensors.holds(edges):
            raise ValueError(f"edge_index: {_check.said(edges)}, expected whole numbers [2, E]")
        edges = _check.counted(edges)
        if num_nodes is None:
            num_nodes = int(edges.max()) + 1 if edges.numel() else 0
        offsets, columns, order = sorted_edges(edges, _check.count("num_nodes", num_nodes, least=0))
        graph = cls(offsets, columns)
        object.__setattr__(graph, "order", order)
        return graph

    def _besides(self) -> Dict[str, object]:
        return {} if self.order is None else {"order": self.order}


def sorted_edges(edges: torch.Tensor, targets: int) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Edges ``[2, E]`` by their targets: where each target's begin, their sources, and where each of them was."""
    target, order = edges[1].sort(stable=True)
    places = torch.arange(targets + 1, device=edges.device, dtype=edges.dtype)
    offsets = torch.searchsorted(target, places)
    if not torch.compiler.is_compiling() and target.numel() and (int(target[0]) < 0 or int(target[-1]) >= targets):
        raise ValueError(f"edge_index: a target of {int(target[0] if target[0] < 0 else target[-1])}, expected 0 to {targets - 1}")
    return offsets, edges[0, order], order


@dataclass(frozen=True, eq=False, repr=False)
class First(Structure, kind="first", ranges={"count": _check.at_least(0)}):
    r""":math:`j < \mathrm{count}`: the first keys, as StreamingLLM keeps (Xiao et al. 2024).

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, structure=fovea.Causal() & (fovea.Window(2, 0) | fovea.First(1)))
    """

    count: int


@dataclass(frozen=True, eq=False, repr=False)
class Strided(Structure, kind="strided", ranges={"stride": _check.at_least(1)}):
    r""":math:`j \le i` and (:math:`i - j \le l` or :math:`(i - j) \bmod l = 0`) (Child et al. 2019).

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, structure=fovea.Strided(2))
    """

    stride: int


@dataclass(frozen=True, eq=False, repr=False)
class Fixed(Structure, kind="fixed", ranges={"stride": _check.at_least(1), "summary": _check.at_least(0)}):
    r""":math:`j \le i` and (:math:`\lfloor j/l \rfloor = \lfloor i/l \rfloor` or :math:`j \bmod l \ge l - c`) (Child et al. 2019).

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, structure=fovea.Fixed(3, summary=1))
    """

    stride: int
    summary: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not torch.compiler.is_compiling() and self.summary > self.stride:
            raise ValueError(f"Fixed.summary: {self.summary}, expected at most {self.stride} (the stride)")
