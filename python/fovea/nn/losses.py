"""Fenchel–Young losses (Blondel, Martins & Niculae 2020): what goes with a normaliser as cross-entropy goes with softmax."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _check
from .._attend import weights
from .._normalisers import Entmax, Normaliser, Softmax, Sparsemax
from .._scores import Location


def _alpha(normaliser: Normaliser) -> float:
    if isinstance(normaliser, Softmax):
        return 1.0
    if isinstance(normaliser, Sparsemax):
        return 2.0
    if isinstance(normaliser, Entmax) and not isinstance(normaliser.alpha, Tensor):
        return float(normaliser.alpha)
    raise ValueError(f"normaliser: {_check.said(normaliser)}, expected Softmax, Sparsemax, or Entmax with a number for alpha")


def _entropy(p: Tensor, alpha: float) -> Tensor:
    if alpha == 1:
        return -torch.xlogy(p, p).sum(-1)
    return (1 - p.pow(alpha).sum(-1)) / (alpha * (alpha - 1))


def _rows(target: Tensor, scores: Tensor) -> Tensor:
    if target.is_floating_point():
        if target.shape != scores.shape:
            raise ValueError(f"target: shape {tuple(target.shape)}, expected {tuple(scores.shape)} (the scores')")
        return target.to(scores.dtype)
    if target.dtype != torch.int64 or target.shape != scores.shape[:-1]:
        raise ValueError(
            f"target: {target.dtype} of shape {tuple(target.shape)}, expected classes as int64 of shape "
            f"{tuple(scores.shape[:-1])}, or distributions of the scores' shape"
        )
    classes = scores.shape[-1]
    if target.numel() and bool(((target < 0) | (target >= classes)).any()):
        raise ValueError(f"target: a class of {int(target.min())} to {int(target.max())}, expected 0 to {classes - 1}")
    return torch.nn.functional.one_hot(target, classes).to(scores.dtype)


def fenchel_young_loss(scores: Tensor, target: Tensor, normaliser: Normaliser = Sparsemax()) -> Tensor:
    r"""The loss of each row: :math:`(p - y)^\top e + H(p) - H(y)` with :math:`p = \mathrm{normalise}(e)` and the gradient :math:`p - y`.

    It is exactly 0 for sparsemax and entmax once the right class leads by enough: by 1, or by :math:`1 / (\alpha - 1)`.

    Args:
        scores: ``[..., classes]``. Minus infinity is a class that is not there.
        target: classes, int64 ``[...]``, or distributions ``[..., classes]``.
        normaliser: :class:`fovea.Softmax` (cross-entropy), :class:`fovea.Sparsemax`, or :class:`fovea.Entmax` with a number for alpha.

    Returns:
        One loss for each row, ``[...]``; differentiable once in the scores.

    Example::

        >>> scores, classes = torch.randn(4, 3, requires_grad=True), torch.tensor([0, 2, 1, 1])
        >>> loss = fovea.nn.fenchel_young_loss(scores, classes, fovea.Entmax(1.5)).mean()
        >>> loss.backward()
    """
    _check.tensors(scores=scores, target=target)
    alpha = _alpha(normaliser)
    if scores.dim() < 1 or scores.shape[-1] < 1 or not scores.is_floating_point():
        raise ValueError(f"scores: {scores.dtype} of shape {tuple(scores.shape)}, expected floating-point rows of at least one class")
    y = _rows(target, scores)
    # p maximises p'e + H(p): the derivative through p is 0, so that p may be taken as a constant.
    flat = scores.detach().reshape(1, 1, -1, scores.shape[-1])
    p = weights(flat, flat.new_zeros(1, 1, scores.shape[-1], 1), Location(), normaliser)
    assert isinstance(p, Tensor)
    p = p.to(scores.dtype).view(scores.shape)
    gap = p - y
    # 0 times minus infinity is no loss: neither p nor y has such a class.
    linear = (gap * scores.masked_fill(gap == 0, 0)).sum(-1)
    return linear + _entropy(p, alpha) - _entropy(y, alpha)
