"""Scores of a pair of query ``q`` and key ``k``. Modifiers apply to a score in this order: relative, soft cap, the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, ClassVar, Dict, List, Literal, Optional, Tuple, Union

import torch

from . import _check
from ._choice import Choice

Number = Union[float, torch.Tensor]


class Score(Choice):
    """Base of every score. ``bias``, ``edge_bias``, ``alibi``, ``relative`` and ``soft_cap`` return a score with one more step.

    Example::

        >>> score = fovea.Dot().soft_cap(30.0).alibi(torch.tensor([0.5, 0.25]))  # made of one of its kinds, and steps on it
        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, score)
    """

    _modifiers: Tuple["_Modifier", ...] = ()
    #: Whether a Python function is a part of it.
    _calls: ClassVar[bool] = False
    #: The text, where it is all there is to the choice.
    _whole_score: Optional[str] = None

    def _set_whole(self) -> None:
        object.__setattr__(self, "_whole_score", self._text)

    def bias(self, bias: torch.Tensor) -> "Score":
        r"""Adds a tensor: :math:`e_{ij} + b_{ij}`; any broadcast of ``[B, H, L, S]``, with gradient."""
        return self._with(_Bias(bias))

    def edge_bias(self, bias: torch.Tensor) -> "Score":
        r"""Adds a number of the pair's edge, on a :class:`Graph` only: ``[edges]`` or ``[edges, H]``, in the order of its columns; with gradient."""
        return self._with(_EdgeBias(bias))

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
        r"""Bounds the score: :math:`c \tanh(e_{ij} / c)`; ``cap`` is a number and has no gradient."""
        return self._with(_SoftCap(cap))

    def apply(self, function: Callable[..., torch.Tensor]) -> "Score":
        r"""Changes the score by a Python function of it and the positions, ``function(score, batch, head, query, key)``: tensors that broadcast.

        For trying out, and slow: see :class:`Function`.
        """
        from ._functions import _Applied

        return _Applied(self, function)

    def _with(self, modifier: "_Modifier") -> "Score":
        more = type(self)(*Choice._values(self))  # not copy.copy: older versions of torch.compile do not trace it
        object.__setattr__(more, "_modifiers", (*self._modifiers, modifier))
        object.__setattr__(more, "_whole_score", None)
        return more

    def _written(self) -> str:
        """The score with its modifiers."""
        text = self._text
        for modifier in self._modifiers:
            text += "|" + modifier._text
        return text

    def _collect(self, arrays: List[torch.Tensor], numbers: List[int], query: torch.Tensor) -> None:
        super()._collect(arrays, numbers, query)
        for modifier in self._modifiers:
            modifier._collect(arrays, numbers, query)

    def _values(self) -> Tuple[object, ...]:
        return (*super()._values(), self._modifiers)

    def _besides(self) -> Dict[str, object]:
        return {"_modifiers": self._modifiers, "_whole_score": None} if self._modifiers else {}

    def __repr__(self) -> str:
        return super().__repr__() + "".join("." + repr(modifier) for modifier in self._modifiers)


class _Scaled(Score):
    """A score with a scale: a number, which is written, or a tensor, which the query is multiplied by."""

    scale: Optional[Number]

    def _checked(self, field: str, kind: Union[str, List[str]]) -> object:
        if field != "scale" or self.scale is None:
            return super()._checked(field, kind)
        scale = _check.scale_of(self._called() + ".scale", self.scale)
        object.__setattr__(self, "scale", scale)
        return 1.0 if isinstance(scale, torch.Tensor) else scale

    def _set_whole(self) -> None:
        if not isinstance(self.scale, torch.Tensor):  # which the query is multiplied by
            super()._set_whole()

    def _written_with(self, scale: float) -> str:
        """The score with its modifiers and the scale of the call, where it has none of its own."""
        own = self._text + (",scale=" if ":" in self._text else ":scale=") + f"{scale}"
        return own + self._written()[len(self._text) :]


class _Modifier(Choice):
    """A step on top of a score; users know it by the method that makes it."""

    def _called(self) -> str:
        return self._kind


@dataclass(frozen=True, eq=False, repr=False)
class _Bias(_Modifier, kind="bias"):
    _tensors = _check.BIAS
    bias: torch.Tensor


@dataclass(frozen=True, eq=False, repr=False)
class _EdgeBias(_Modifier, kind="edge_bias"):
    _tensors = _check.BIAS
    bias: torch.Tensor


@dataclass(frozen=True, eq=False, repr=False)
class _Alibi(_Modifier, kind="alibi"):
    slopes: torch.Tensor


@dataclass(frozen=True, eq=False, repr=False)
class _Relative(_Modifier, kind="relative", optional=("key_table", "value_table"), ranges={"clip": _check.at_least(0)}):
    key_table: Optional[torch.Tensor]
    value_table: Optional[torch.Tensor]
    clip: int


@dataclass(frozen=True, eq=False, repr=False)
class _SoftCap(_Modifier, kind="soft_cap", ranges={"cap": _check.POSITIVE}):
    cap: float


@dataclass(frozen=True, eq=False, repr=False)
class Dot(_Scaled, kind="dot"):
    r""":math:`e = \mathrm{scale}\; q \cdot k`; scale :math:`1/\sqrt{E}` when None; a tensor, ``[1]`` or ``[H]``, has a gradient.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, fovea.Dot(scale=0.1))
    """

    scale: Optional[Number] = None


@dataclass(frozen=True, eq=False, repr=False)
class Bilinear(_Scaled, kind="bilinear"):
    r""":math:`e = \mathrm{scale}\; q^\top W k`; ``weight`` is ``[E_query, E_key]`` or ``[H, E_query, E_key]``; scale as :class:`Dot`'s, 1 when None.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, fovea.Bilinear(torch.randn(8, 8, requires_grad=True)))
    """

    weight: torch.Tensor
    scale: Optional[Number] = None


@dataclass(frozen=True, eq=False, repr=False)
class Additive(Score, kind="additive", ranges={"negative_slope": _check.FINITE}):
    r""":math:`e = w^\top f(q + k)` of projected queries and keys (Bahdanau et al. 2015).

    ``weight`` is ``[E]`` or ``[H, E]``; ``activation`` is ``"tanh"`` or ``"leaky_relu"``, which makes GATv2's score.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, fovea.Additive(torch.randn(8, requires_grad=True)))
    """

    weight: torch.Tensor
    activation: Literal["tanh", "leaky_relu"] = "tanh"
    negative_slope: float = 0.2


@dataclass(frozen=True, eq=False, repr=False)
class GatedAdditive(Score, kind="gated_additive"):
    r""":math:`e = w^\top (\tanh a \odot \sigma(b))`, :math:`[a; b] = q + k` (Ilse et al. 2018); ``weight`` is ``[E/2]`` or ``[H, E/2]``.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, fovea.GatedAdditive(torch.randn(4)))
    """

    weight: torch.Tensor


KernelName = Literal[
    "gaussian", "laplace", "logistic", "sigmoid", "silverman", "cauchy", "box", "triangular", "epanechnikov", "quartic",
    "triweight", "tricube", "cosine",
]  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Kernel(Score, kind="kernel", optional=("metric",), numeric=("bandwidth",), ranges={"bandwidth": _check.POSITIVE}):
    r""":math:`K(u)`, :math:`u = \|D(q - k)\| / h`: a kernel of distance (Nadaraya 1964, Watson 1964).

    :class:`KernelRatio` and :class:`Unnormalised` take :math:`K(u)`, every other normaliser :math:`\log K(u)`. On the line :math:`K` has the
    integral one (the Gaussian is :math:`e^{-u^2/2} / \sqrt{2\pi}`): softmax is the same without the factor, a sink or a sigmoid is not. ``bandwidth``
    is a number, ``[1]``, ``[H]`` or ``[B, H, L]``; ``metric`` is None, ``[E]`` (diagonal) or ``[E', E]``.

    Example::

        >>> x, y, places = torch.rand(1, 1, 50, 1), torch.rand(1, 1, 50, 1), torch.linspace(0, 1, 9).view(1, 1, -1, 1)
        >>> mean = fovea.attend(places, x, y, fovea.Kernel("epanechnikov", bandwidth=0.3), fovea.KernelRatio())
    """

    name: KernelName = "gaussian"
    bandwidth: Number = 1.0
    metric: Optional[torch.Tensor] = None


@dataclass(frozen=True, eq=False, repr=False)
class Cosine(Score, kind="cosine", optional=("beta",), numeric=("beta",), ranges={"beta": _check.FINITE}):
    r""":math:`e = \beta \cos(q, k)`; ``beta`` is a number, ``[1]`` or ``[H]``, or None for 1.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, fovea.Cosine(beta=10.0))
    """

    beta: Optional[Number] = None


@dataclass(frozen=True, eq=False, repr=False)
class RankOne(Score, kind="rank_one", ranges={"negative_slope": _check.FINITE}):
    r""":math:`e = \mathrm{LeakyReLU}(q + k)`, query and key of width 1: the two summands of GAT's score (Velickovic et al. 2018).

    Example::

        >>> halves, value = torch.randn(2, 5, 4, 1), torch.randn(5, 4, 8)  # five nodes, four heads
        >>> graph = fovea.Graph.from_edge_index(torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]]))
        >>> out = fovea.attend(halves[0], halves[1], value, fovea.RankOne(), structure=graph)
    """

    negative_slope: float = 0.2


@dataclass(frozen=True, eq=False, repr=False)
class Location(Score, kind="location"):
    r""":math:`e_j = q_j`: the query is its row of scores, so its width is the number of keys.

    Example::

        >>> scores, key, value = torch.randn(1, 2, 6, 9), torch.empty(1, 2, 9, 1), torch.randn(1, 2, 9, 8)
        >>> out = fovea.attend(scores, key, value, fovea.Location(), fovea.Sparsemax())
    """


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Score, kind="constant"):
    r""":math:`e = 1` for every pair.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> mean = fovea.attend(query, key, value, fovea.Constant())
    """
