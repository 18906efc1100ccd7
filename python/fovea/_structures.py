"""Structures: which pairs of query ``i`` and key ``j`` may meet. ``a & b`` allows what both allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Literal, Tuple

import torch

from ._choice import Choice


class Structure(Choice):
    """Base of every structure."""

    def __and__(self, other: "Structure") -> "Structure":
        if not isinstance(other, Structure):
            return NotImplemented
        return _All((*self._parts(), *other._parts()))

    def _parts(self) -> Tuple["Structure", ...]:
        return (self,)


class _All(Structure):
    def __init__(self, parts: Tuple[Structure, ...]) -> None:
        self.parts = parts

    def __repr__(self) -> str:
        return " & ".join(repr(part) for part in self.parts)

    def _parts(self) -> Tuple[Structure, ...]:
        return self.parts

    def _text(self, arrays: List[torch.Tensor], query: torch.Tensor) -> str:
        return "&".join(part._text(arrays, query) for part in self.parts)


@dataclass(frozen=True, eq=False)
class Dense(Structure, kind="dense"):
    """Every pair."""


@dataclass(frozen=True, eq=False)
class Causal(Structure, kind="causal"):
    r""":math:`j \le i` (``"top_left"``) or :math:`j \le i + S - L` (``"bottom_right"``)."""

    alignment: Literal["top_left", "bottom_right"] = "top_left"


@dataclass(frozen=True, eq=False)
class Window(Structure, kind="window"):
    r""":math:`i - \mathrm{left} \le j \le i + \mathrm{right}`; -1 is unbounded."""

    left: int = -1
    right: int = -1


@dataclass(frozen=True, eq=False)
class Prefix(Structure, kind="prefix"):
    r""":math:`j \le i` or :math:`j < \mathrm{length}`."""

    length: int


@dataclass(frozen=True, eq=False)
class Documents(Structure, kind="documents", tensors=("query_ids", "key_ids")):
    """Equal ids: int ``[L]`` or ``[B, L]``, and ``[S]`` or ``[B, S]``."""

    query_ids: torch.Tensor
    key_ids: torch.Tensor


@dataclass(frozen=True, eq=False)
class Blocks(Structure, kind="blocks", tensors=("mask",)):
    """Whole ``size`` x ``size`` blocks; ``mask`` bool (True: may attend), a broadcast of ``[B, H, ceil(L/size), ceil(S/size)]``."""

    mask: torch.Tensor
    size: int = 64


@dataclass(frozen=True, eq=False)
class Keep(Structure, kind="keep", tensors=("mask",)):
    """Where ``mask`` is True; bool, any broadcast of ``[B, H, L, S]``."""

    mask: torch.Tensor


@dataclass(frozen=True, eq=False)
class Ragged(Structure, kind="ragged", tensors=("query_offsets", "key_offsets")):
    """Sequences packed one after another, tensors ``(total, H, E)``; int offsets ``[B + 1]``."""

    query_offsets: torch.Tensor
    key_offsets: torch.Tensor


@dataclass(frozen=True, eq=False)
class Graph(Structure, kind="graph", tensors=("row_offsets", "columns")):
    """A graph in CSR, tensors ``(nodes, H, E)``: row ``i`` lists the keys query ``i`` sees, in the order given."""

    row_offsets: torch.Tensor
    columns: torch.Tensor


@dataclass(frozen=True, eq=False)
class Strided(Structure, kind="strided"):
    r""":math:`j \le i` and (:math:`i - j \le l` or :math:`(i - j) \bmod l = 0`) (Child et al. 2019)."""

    stride: int


@dataclass(frozen=True, eq=False)
class Fixed(Structure, kind="fixed"):
    r""":math:`j \le i` and (:math:`\lfloor j/l \rfloor = \lfloor i/l \rfloor` or :math:`j \bmod l \ge l - c`) (Child et al. 2019)."""

    stride: int
    summary: int = 1
