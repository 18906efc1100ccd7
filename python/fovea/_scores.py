"""Scores: what a pair of query ``q`` and key ``k`` is worth. Modifiers go on top, in this order: relative, soft cap, the rest."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import List, Literal, Optional, Tuple, Union

import torch

from ._choice import Choice

Number = Union[float, torch.Tensor]


class Score(Choice):
    """Base of every score. ``bias``, ``alibi``, ``relative`` and ``soft_cap`` return a score with one more step."""

    _modifiers: Tuple["_Modifier", ...] = ()

    def bias(self, bias: torch.Tensor) -> "Score":
        r"""Adds a tensor: :math:`e_{ij} + b_{ij}`; any broadcast of ``[B, H, L, S]``, with gradient."""
        return self._with(_Bias(bias))

    def alibi(self, slopes: torch.Tensor) -> "Score":
        r"""Adds a distance penalty: :math:`e_{ij} - m_h |i - j|`; ``slopes`` is ``[H]``."""
        return self._with(_Alibi(slopes))

    def relative(
        self, key_table: Optional[torch.Tensor], value_table: Optional[torch.Tensor], clip: int
    ) -> "Score":
        r"""Relative positions (Shaw et al. 2018), on :class:`Dot` only.

        :math:`e_{ij} = \mathrm{scale}\; q_i \cdot (k_j + r^K_c)` and :math:`o_i = \sum_j a_{ij} (v_j + r^V_c)` with
        :math:`c = \mathrm{clip}(j - i, -\mathrm{clip}, \mathrm{clip})`; tables ``[2 clip + 1, width]``, either may be None.
        """
        return self._with(_Relative(key_table, value_table, clip))

    def soft_cap(self, cap: float) -> "Score":
        r"""Bounds the score: :math:`c \tanh(e_{ij} / c)`."""
        return self._with(_SoftCap(float(cap)))

    def _with(self, modifier: "_Modifier") -> "Score":
        more = copy.copy(self)
        object.__setattr__(more, "_modifiers", (*self._modifiers, modifier))
        return more

    def _text(self, arrays: List[torch.Tensor], query: torch.Tensor) -> str:
        return "|".join([self._own_text(arrays, query), *(step._text(arrays, query) for step in self._modifiers)])

    def _own_text(self, arrays: List[torch.Tensor], query: torch.Tensor) -> str:
        return super()._text(arrays, query)


class _Modifier(Choice):
    """A step on top of a score."""


@dataclass(frozen=True, eq=False)
class _Bias(_Modifier, kind="bias", tensors=("bias",)):
    bias: torch.Tensor


@dataclass(frozen=True, eq=False)
class _Alibi(_Modifier, kind="alibi", tensors=("slopes",)):
    slopes: torch.Tensor


@dataclass(frozen=True, eq=False)
class _Relative(_Modifier, kind="relative", tensors=("key_table", "value_table")):
    key_table: Optional[torch.Tensor]
    value_table: Optional[torch.Tensor]
    clip: int


@dataclass(frozen=True, eq=False)
class _SoftCap(_Modifier, kind="soft_cap"):
    cap: float


@dataclass(frozen=True, eq=False)
class Dot(Score, kind="dot"):
    r""":math:`e = \mathrm{scale}\; q \cdot k`; scale :math:`1/\sqrt{E}` when None."""

    scale: Optional[float] = None


@dataclass(frozen=True, eq=False)
class Bilinear(Score, kind="bilinear", tensors=("weight",)):
    r""":math:`e = \mathrm{scale}\; q^\top W k`; ``weight`` is ``[E_query, E_key]`` or ``[H, E_query, E_key]``; scale 1 when None."""

    weight: torch.Tensor
    scale: Optional[float] = None


@dataclass(frozen=True, eq=False)
class Additive(Score, kind="additive", tensors=("weight",)):
    r""":math:`e = w^\top f(q + k)` (Bahdanau et al. 2015), query and key arriving projected.

    ``weight`` is ``[E]`` or ``[H, E]``; ``activation`` is ``"tanh"`` or ``"leaky_relu"``, which makes GATv2's score.
    """

    weight: torch.Tensor
    activation: Literal["tanh", "leaky_relu"] = "tanh"
    negative_slope: float = 0.2


@dataclass(frozen=True, eq=False)
class GatedAdditive(Score, kind="gated_additive", tensors=("weight",)):
    r""":math:`e = w^\top (\tanh a \odot \sigma(b))`, :math:`[a; b] = q + k` (Ilse et al. 2018); ``weight`` is ``[E/2]`` or ``[H, E/2]``."""

    weight: torch.Tensor


KernelName = Literal[
    "gaussian", "laplace", "logistic", "sigmoid", "silverman", "cauchy", "box", "triangular", "epanechnikov", "quartic",
    "triweight", "tricube", "cosine",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Kernel(Score, kind="kernel", tensors=("bandwidth", "metric")):
    r""":math:`K(u)`, :math:`u = \|D(q - k)\| / h`: a kernel of distance (Nadaraya 1964, Watson 1964).

    :class:`KernelRatio` and :class:`Unnormalised` take :math:`K(u)`, every other normaliser :math:`\log K(u)`. ``bandwidth``
    is a number, ``[1]``, ``[H]`` or ``[B, H, L]``; ``metric`` is None, ``[E]`` (diagonal) or ``[E', E]``.
    """

    name: KernelName = "gaussian"
    bandwidth: Number = 1.0
    metric: Optional[torch.Tensor] = None


@dataclass(frozen=True, eq=False)
class Cosine(Score, kind="cosine", tensors=("beta",)):
    r""":math:`e = \beta \cos(q, k)`; ``beta`` is a number, ``[1]`` or ``[H]``, or None for 1."""

    beta: Optional[Number] = None


@dataclass(frozen=True, eq=False)
class RankOne(Score, kind="rank_one"):
    r""":math:`e = \mathrm{LeakyReLU}(q + k)`, query and key of width 1: the two halves of GAT's score (Velickovic et al. 2018)."""

    negative_slope: float = 0.2


@dataclass(frozen=True, eq=False)
class Location(Score, kind="location"):
    r""":math:`e_j = q_j`: the query is the row of scores, so its width is the number of keys."""


@dataclass(frozen=True, eq=False)
class Constant(Score, kind="constant"):
    r""":math:`e = 1` for every pair."""
