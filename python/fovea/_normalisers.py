"""Normalisers: how a row of scores ``e`` becomes weights ``a`` over the keys a query may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Union

import torch

from . import _check
from ._choice import Choice


class Normaliser(Choice):
    """Base of every normaliser.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, normaliser=fovea.Sparsemax())  # one of its kinds
    """

    #: The text, where it is all there is to the choice.
    _whole_normaliser: Optional[str] = None

    def _set_whole(self) -> None:
        object.__setattr__(self, "_whole_normaliser", self._text)


@dataclass(frozen=True, eq=False, repr=False)
class Softmax(Normaliser, kind="softmax", optional=("sink",), numeric=("sink",), ranges={"sink": _check.NOT_NAN}):
    r""":math:`a_j = e^{e_j} / (\sum_l e^{e_l} + e^{s})`; the sink :math:`s` is a number, ``[1]`` or ``[H]``, or None for none.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, normaliser=fovea.Softmax(sink=torch.zeros(2)))
    """

    sink: Optional[Union[float, torch.Tensor]] = None


@dataclass(frozen=True, eq=False, repr=False)
class KernelRatio(Normaliser, kind="kernel_ratio"):
    r""":math:`a_j = K_j / \sum_l K_l`. Kernels with negative values are allowed; a row whose sum is zero has weights zero.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, fovea.Kernel("gaussian", 2.0), fovea.KernelRatio())
    """


@dataclass(frozen=True, eq=False, repr=False)
class Unnormalised(Normaliser, kind="unnormalised"):
    r""":math:`a_j = e_j`.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, normaliser=fovea.Unnormalised())
    """


@dataclass(frozen=True, eq=False, repr=False)
class Uniform(Normaliser, kind="uniform"):
    r""":math:`a_j = 1 / n`, with :math:`n` keys seen.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> mean = fovea.attend(query, key, value, normaliser=fovea.Uniform(), structure=fovea.Window(2, 2))
    """


@dataclass(frozen=True, eq=False, repr=False)
class Sigmoid(Normaliser, kind="sigmoid"):
    r""":math:`a_j = 1 / (1 + e^{-e_j})`: each weight depends on its own score alone.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, normaliser=fovea.Sigmoid())
    """


@dataclass(frozen=True, eq=False, repr=False)
class Sparsemax(Normaliser, kind="sparsemax"):
    r""":math:`a = \max(0, e - \tau)`, :math:`\sum_j a_j = 1`: the projection onto the simplex (Martins & Astudillo 2016).

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> zeros = (fovea.weights(query, key, normaliser=fovea.Sparsemax()) == 0).sum()
    """


@dataclass(frozen=True, eq=False, repr=False)
class Entmax(Normaliser, kind="entmax", ranges={"alpha": _check.AT_LEAST_ONE}):
    r""":math:`a = \max(0, (\alpha - 1) e - \tau)^{1/(\alpha - 1)}`, :math:`\sum_j a_j = 1` (Peters et al. 2019), :math:`\alpha \ge 1`.

    ``alpha`` is a number, or a tensor ``[1]`` or ``[H]``, which then has a gradient. 1 is softmax, the limit. A tensor that training
    pushes below 1 counts as 1, in weights and gradients, so that the same training can bring it back.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, normaliser=fovea.Entmax(torch.tensor([1.2, 1.8], requires_grad=True)))  # one for each head
    """

    alpha: Union[float, torch.Tensor] = 1.5

    def _checked(self, field: str, kind: Union[str, List[str]]) -> object:
        if isinstance(self.alpha, torch.Tensor):
            if self.alpha.dim() > 1:
                raise ValueError(f"Entmax.alpha: shape {list(self.alpha.shape)}, expected a number, [1] or [H] (one for each head)")
            _check.within("Entmax.alpha", self.alpha, self._tensors)
            return self.alpha if field == "alpha_tensor" else None
        return super()._checked(field, kind) if field == "alpha" else None

    def _collect(self, arrays: List[torch.Tensor], numbers: List[int], query: torch.Tensor) -> None:
        if isinstance(self.alpha, torch.Tensor):
            arrays.append(self.alpha)


@dataclass(frozen=True, eq=False, repr=False)
class TopK(Normaliser, kind="top_k", ranges={"k": _check.at_least(1)}):
    r"""Softmax over the ``k`` largest scores, of equal ones the lower index; all keys if fewer than ``k`` are seen.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, normaliser=fovea.TopK(3))
    """

    k: int


@dataclass(frozen=True, eq=False, repr=False)
class Hard(Normaliser, kind="hard"):
    r"""One key: the largest score, or with ``sample`` one drawn from the softmax.

    The log-sum-exp output is then the log-probability of the choice, :math:`\log p(j)`, with gradient: the score-function
    term of REINFORCE.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
        >>> out = fovea.attend(query, key, value, normaliser=fovea.Hard(sample=True), seed=1)
    """

    sample: bool = False

    def _set_whole(self) -> None:
        if not self.sample:  # which takes a seed
            super()._set_whole()
