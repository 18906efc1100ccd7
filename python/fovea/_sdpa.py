"""libtorch's ``scaled_dot_product_attention``, argument for argument, on :func:`fovea.attend`'s operators."""

from __future__ import annotations

import math
from typing import Callable, Optional, Tuple

import torch
from torch import Tensor

from . import _check
from ._attend import attend
from ._normalisers import Softmax
from ._scores import Dot, Score
from ._structures import Causal, Dense, Keep, Structure

_attend_output = torch.ops.fovea.attend_output.default
#: Not by its public name, in whose place this module's function may stand.
_libtorch: Callable[..., Tensor] = getattr(torch._C, "_nn").scaled_dot_product_attention

_DENSE, _CAUSAL, _DOT, _SOFTMAX = Dense(), Causal(), Dot(), Softmax()
_DENSE_TEXT, _CAUSAL_TEXT = f"dot;softmax;{_DENSE._text}", f"dot;softmax;{_CAUSAL._text}"


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Optional[Tensor] = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
) -> Tensor:
    """:func:`torch.nn.functional.scaled_dot_product_attention`, argument for argument: one line swaps it.

    Args:
        query: ``[..., H, L, E]``; the leading sizes of the three broadcast, and may be left out.
        key: ``[..., H, S, E]``; with ``enable_gqa`` its heads and the value's divide the query's.
        value: ``[..., H, S, Ev]``.
        attn_mask: a broadcast of ``[..., H, L, S]``: bool, True where a pair meets, or float, which is added and has a gradient. A query
            that meets no key has an output of zero.
        is_causal: query ``i`` meets keys ``j <= i``, also where there are more keys than queries. Not beside a mask.

    Returns:
        ``[..., H, L, Ev]``. What libtorch refuses is refused, with its error.

    Example::

        >>> query, key, value = (torch.randn(2, 4, 16, 8) for _ in range(3))
        >>> out = fovea.scaled_dot_product_attention(query, key, value, is_causal=True)
        >>> torch.nn.functional.scaled_dot_product_attention = fovea.scaled_dot_product_attention  # for the whole program
    """
    try:
        plain = attn_mask is None and dropout_p == 0.0 and scale is None and not query.is_nested and _plain(query, key, value, enable_gqa)
    except AttributeError:  # of what is no tensor; asking each time would be a tenth of a small call
        for name, x in (("query", query), ("key", key), ("value", value)):
            _check.tensor(name, x)
        raise
    if plain:
        output: Tensor = _attend_output(query, key, value, _CAUSAL_TEXT if is_causal else _DENSE_TEXT)
        return output
    if query.is_nested and attn_mask is None and 0 <= dropout_p < 1 and not enable_gqa:
        structure: Structure = _CAUSAL if is_causal else _DENSE
        nested = attend(query, key, value, _DOT if scale is None else Dot(scale), _SOFTMAX, structure, dropout_p=dropout_p)
        assert isinstance(nested, Tensor)
        return nested
    if query.is_nested or _unlike_libtorch(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa):
        return _libtorch(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    grouped = enable_gqa and key.shape[-3] == value.shape[-3] and query.dim() > 2
    if enable_gqa and not grouped:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    score: Score = _DOT if scale is None else Dot(scale)
    structure = _CAUSAL if is_causal else _DENSE
    lead, heads, key_heads = _leading(query, key, value, grouped)
    if attn_mask is not None:
        mask = _four(attn_mask, lead[:-1])
        if attn_mask.dtype == torch.bool:
            structure = Keep(mask)
        else:
            score = score.bias(mask if mask.dtype == query.dtype else mask.to(torch.promote_types(query.dtype, torch.float32)))
    out = attend(
        _spread(query, lead[:-1], heads), _spread(key, lead[:-1], key_heads), _spread(value, lead[:-1], key_heads),
        score, _SOFTMAX, structure, dropout_p=dropout_p if dropout_p < 1.0 else 0.0,
    )  # fmt: skip
    assert isinstance(out, Tensor)
    if dropout_p >= 1.0:
        out = out * 0.0
    return out if query.dim() == 4 == len(lead) + 2 else out.reshape(*lead, query.shape[-2], value.shape[-1])


def _plain(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> bool:
    """Whether the operator takes the call as it is."""
    if not query.dim() == key.dim() == value.dim() == 4 or not query.dtype == key.dtype == value.dtype:
        return False
    batch, heads, _, width = query.shape
    key_batch, key_heads, keys, key_width = key.shape
    if keys == 0 or batch != key_batch or width != key_width or value.shape[:3] != (batch, key_heads, keys):
        return False
    return heads == key_heads or (enable_gqa and key_heads > 0 and heads % key_heads == 0)


def _unlike_libtorch(
    query: Tensor, key: Tensor, value: Tensor, mask: Optional[Tensor], dropout_p: float, is_causal: bool, enable_gqa: bool
) -> bool:
    """Whether libtorch, by its own rules, may refuse the call: it is then asked, and its error is the caller's. So with nothing to compute."""
    operands = (query, key, value)
    if any(x.numel() == 0 for x in operands):
        return True
    if any(x.dim() < (3 if enable_gqa else 2) for x in operands) or not 0 <= dropout_p <= 1:
        return True
    if key.shape[-1] != query.shape[-1] or key.shape[-2] != value.shape[-2]:
        return True
    if any(x.dtype != query.dtype for x in operands) and not torch.is_autocast_enabled(query.device.type):
        return True
    skipped = 3 if enable_gqa else 2
    if enable_gqa and any(query.shape[-3] % x.shape[-3] != 0 for x in (key, value)):
        return True
    if _broadcast(*(x.shape[:-skipped] for x in operands)) is None:
        return True
    if mask is None:
        return False
    if is_causal or mask.dim() < 2 or mask.dtype not in (torch.bool, torch.float32, query.dtype):
        return True
    met = (*(_broadcast(query.shape[:-skipped], key.shape[:-skipped]) or ()), *query.shape[-skipped:-1], key.shape[-2])
    return _broadcast(mask.shape, met) != met


def _broadcast(*shapes: Tuple[int, ...]) -> Optional[Tuple[int, ...]]:
    """What shapes broadcast to, or None."""
    longest = max(len(shape) for shape in shapes)
    sizes = [1] * longest
    for shape in shapes:
        for place in range(1, len(shape) + 1):
            if sizes[-place] == 1:
                sizes[-place] = shape[-place]
            elif shape[-place] not in (1, sizes[-place]):
                return None
    return tuple(sizes)


def _leading(query: Tensor, key: Tensor, value: Tensor, grouped: bool) -> Tuple[Tuple[int, ...], int, int]:
    """The leading sizes of the result, the heads of the query, and those of key and value."""
    if grouped:
        batch = _broadcast(*(x.shape[:-3] for x in (query, key, value)))
        assert batch is not None
        return (*batch, query.shape[-3]), query.shape[-3], key.shape[-3]
    lead = _broadcast(*(x.shape[:-2] for x in (query, key, value)))
    assert lead is not None  # or libtorch has refused it
    heads = lead[-1] if lead else 1
    shared = all(x.dim() < 3 or x.shape[-3] == 1 for x in (key, value))  # by all heads, without a copy for each
    return lead, heads, 1 if shared else heads


def _spread(x: Tensor, batch: Tuple[int, ...], heads: int) -> Tensor:
    """``[B, heads, rows, width]``; views alone, where the leading sizes are four in all."""
    if x.dim() == 4 and len(batch) == 1 and x.shape[0] == batch[0] and x.shape[1] == heads:
        return x
    rows, width = x.shape[-2:]
    return x.expand(*batch, heads, rows, width).reshape(math.prod(batch), heads, rows, width)


def _four(mask: Tensor, batch: Tuple[int, ...]) -> Tensor:
    """The mask as a broadcast of ``[B, H, L, S]``, without a size that is not its own where that can be."""
    if mask.dim() <= 3:
        return mask
    if all(size == 1 for size in mask.shape[:-3]):
        return mask.reshape(mask.shape[-3:])
    return mask.expand(*batch, *mask.shape[-3:]).reshape(math.prod(batch), *mask.shape[-3:])
