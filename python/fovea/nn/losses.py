"""Fenchel–Young losses (Blondel, Martins & Niculae 2020): what goes with a normaliser as cross-entropy goes with softmax."""

from __future__ import annotations

from typing import Any, Tuple

import torch
from torch import Tensor
from torch.autograd import Function

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


def _distribution(scores: Tensor, normaliser: Normaliser) -> Tensor:
    flat = scores.detach().reshape(1, 1, -1, scores.shape[-1])
    p = weights(flat, flat.new_zeros(1, 1, scores.shape[-1], 1), Location(), normaliser)
    assert isinstance(p, Tensor)
    return p.to(scores.dtype).view(scores.shape)


class _Distribution(Function):
    """p = normalise(scores). Along d it changes by s (d - s'd / s'1), s = p^(2 - alpha): a symmetric matrix, so that this serves both modes."""

    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, normaliser: Normaliser, alpha: float) -> Tensor:
        return _distribution(scores, normaliser)

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
        scores, ctx.normaliser, ctx.alpha = inputs
        ctx.save_for_backward(scores)
        ctx.save_for_forward(scores)

    @staticmethod
    def _along(ctx: Any, direction: Tensor) -> Tensor:
        (scores,) = ctx.saved_tensors
        p = _normalised(scores, ctx.normaliser, ctx.alpha)  # again: this one has derivatives
        s = p if ctx.alpha == 1 else torch.where(p > 0, torch.where(p > 0, p, 1).pow(2 - ctx.alpha), 0)
        total = s.sum(-1, keepdim=True).clamp_min(torch.finfo(s.dtype).tiny)  # 0 in a row without a class
        return s * (direction - (s * direction).sum(-1, keepdim=True) / total)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return _Distribution._along(ctx, gradients[0]), None, None

    @staticmethod
    def jvp(ctx: Any, *directions: Any) -> Tensor:
        return _Distribution._along(ctx, directions[0])


class _Inner(Function):
    """p'e for each row, with the gradient p in e and none in p, whose own derivative in the loss is 0 because p maximises it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, p: Tensor) -> Tensor:
        return (p * scores).sum(-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1])
        ctx.save_for_forward(inputs[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return gradients[0].unsqueeze(-1) * ctx.saved_tensors[0], None

    @staticmethod
    def jvp(ctx: Any, *directions: Any) -> Tensor:
        along: Tensor = (ctx.saved_tensors[0] * directions[0]).sum(-1)
        return along


def _normalised(scores: Tensor, normaliser: Normaliser, alpha: float) -> Tensor:
    p: Tensor = _Distribution.apply(scores, normaliser, alpha)  # type: ignore[no-untyped-call]
    return p


def _inner(scores: Tensor, p: Tensor) -> Tensor:
    product: Tensor = _Inner.apply(scores, p)  # type: ignore[no-untyped-call]
    return product


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
        One loss for each row, ``[...]``; it has derivatives of any order in the scores.

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
    # Each over its own classes: 0 times minus infinity is no loss.
    if torch.compiler.is_compiling():  # which takes no forward mode, and whose graphs have no second derivatives
        p = _distribution(scores, normaliser)
        product = (p * scores.masked_fill(p == 0, 0)).sum(-1)
    else:
        p = _normalised(scores, normaliser, alpha)
        product = _inner(scores.masked_fill(p == 0, 0), p)
    return product - (y * scores.masked_fill(y == 0, 0)).sum(-1) + _entropy(p.detach(), alpha) - _entropy(y, alpha)
