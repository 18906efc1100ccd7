"""Multi-head attention (Vaswani et al. 2017) with any score, normaliser and structure, under the names of ``torch.nn``."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import _check
from .._attend import attend
from .._normalisers import Normaliser, Softmax
from .._scores import Dot, Score
from .._structures import Causal, Dense, Keep, Structure
from ._chosen import Chosen, chosen, weights_with_gradient


def _attended(module: torch.nn.Module, arguments: Any) -> None:
    """Does nothing. At evaluation ``torch.nn``'s encoder layer computes itself whole, without its attention, unless a part of it has a hook."""


class MultiheadAttention(torch.nn.MultiheadAttention):
    r""":class:`torch.nn.MultiheadAttention` with three choices more: a state of the one loads into the other.

    Args:
        score: of a query and a key of ``embed_dim / num_heads`` numbers, :class:`fovea.Dot` when None. Parameters among its tensors are
            learned with the module, as ``score.weight`` and the like.
        normaliser: :class:`fovea.Softmax` when None.
        structure: which pairs may meet, beside the masks of a call; :class:`fovea.Dense` when None.

    Masks are ``torch.nn``'s: True, or -infinity, keeps a pair apart. A query that meets no key has an output of zero, where
    ``torch.nn``'s is NaN. ``is_causal`` needs no mask beside it, and takes its place where one is given. Weights are those before dropout.

    Example::

        >>> layer = fovea.nn.MultiheadAttention(64, 4, batch_first=True, normaliser=fovea.Entmax(1.5))
        >>> x = torch.randn(2, 10, 64)
        >>> out, weights = layer(x, x, x)
        >>> out, _ = layer(x, x, x, is_causal=True, need_weights=False)
    """

    score: Optional[Chosen]
    normaliser: Optional[Chosen]
    structure: Optional[Chosen]

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: Optional[int] = None,
        vdim: Optional[int] = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        score: Optional[Score] = None,
        normaliser: Optional[Normaliser] = None,
        structure: Optional[Structure] = None,
    ) -> None:
        super().__init__(embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first, device, dtype)  # type: ignore[no-untyped-call,unused-ignore]
        for name, choice, kind, example in (
            ("score", score, Score, "Dot()"),
            ("normaliser", normaliser, Normaliser, "Softmax()"),
            ("structure", structure, Structure, "Causal()"),
        ):
            setattr(self, name, chosen(None if choice is None else _check.instance(name, choice, kind, example)))
        self.register_forward_pre_hook(_attended)

    @classmethod
    def from_torch(
        cls,
        module: torch.nn.MultiheadAttention,
        *,
        score: Optional[Score] = None,
        normaliser: Optional[Normaliser] = None,
        structure: Optional[Structure] = None,
    ) -> "MultiheadAttention":
        """The same layer on Fovea's operators, sharing the weights of a layer of ``torch.nn``."""
        made = cls(
            module.embed_dim, module.num_heads, module.dropout, module.in_proj_bias is not None, module.bias_k is not None,
            module.add_zero_attn, module.kdim, module.vdim, module.batch_first, "meta",
            score=score, normaliser=normaliser, structure=structure,
        )  # fmt: skip
        for name, parameter in module.named_parameters(recurse=False):
            setattr(made, name, parameter)
        made.out_proj = module.out_proj
        return made.train(module.training)

    def choices(self) -> Tuple[Score, Normaliser, Structure]:
        """The three choices, with the tensors as they are now."""
        score, normaliser, structure = self.score, self.normaliser, self.structure
        return Dot() if score is None else score(), Softmax() if normaliser is None else normaliser(), Dense() if structure is None else structure()

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Optional[Tensor] = None,
        need_weights: bool = True,
        attn_mask: Optional[Tensor] = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """The output, and the weights ``[N, L, S]`` (``[N, H, L, S]`` where they are not averaged) or None."""
        _check.tensors(query=query, key=key, value=value, key_padding_mask=key_padding_mask, attn_mask=attn_mask)
        if query.dim() not in (2, 3) or key.dim() != query.dim() or value.dim() != query.dim():
            raise ValueError(f"query: {query.dim()} dimensions, key {key.dim()}, value {value.dim()}, expected 3 of each, or 2 without a batch")
        for name, x, width in (("query", query, self.embed_dim), ("key", key, self.kdim), ("value", value, self.vdim)):
            _check.width(name, x, width, "embed_dim" if width == self.embed_dim else f"{name[0]}dim")
        if query.is_nested:
            self._check_nested(need_weights, attn_mask=None if is_causal else attn_mask, key_padding_mask=key_padding_mask)
            if query.layout == torch.strided:
                return self._of_sequences(query, key, value, is_causal), None
        batched, heads = query.dim() == 3, self.num_heads
        projected = self._projected(query, key, value)
        if not batched:
            projected = tuple(x.unsqueeze(0) for x in projected)
        elif not self.batch_first:
            projected = tuple(x.transpose(0, 1) for x in projected)
        q, k, v = (x.reshape(*x.shape[:2], heads, self.head_dim).transpose(1, 2) for x in self._lengthened(*projected))
        score, normaliser, structure = self.choices()
        if is_causal:
            structure, attn_mask = structure & Causal(), None
        for name, mask in (("attn_mask", attn_mask), ("key_padding_mask", key_padding_mask)):
            if mask is None:
                continue
            mask = self._spread(name, mask, q.shape[0], q.shape[2], key.shape[0 if not batched else 1 if self.batch_first else 0], k.shape[2])
            if mask.dtype == torch.bool:
                structure = structure & Keep(~mask)
            else:
                score = score.bias(mask.to(q.dtype))
        out = attend(q, k, v, score, normaliser, structure, dropout_p=self.dropout if self.training else 0.0)
        assert isinstance(out, Tensor)
        out = self.out_proj(out.transpose(1, 2).flatten(2))
        out = out if not batched or self.batch_first else out.transpose(0, 1)
        found = None
        if need_weights:
            found = weights_with_gradient(q, k, score, normaliser, structure)
            found = found.mean(1) if average_attn_weights else found
            found = found if batched else found.squeeze(0)
        return (out if batched else out.squeeze(0)), found

    def _check_nested(self, need_weights: bool, **masks: Optional[Tensor]) -> None:
        if need_weights:
            raise ValueError("need_weights: True with a NestedTensor, expected False: the weights of several lengths have no shape")
        if not self.batch_first:
            raise ValueError("batch_first: False with a NestedTensor, expected True: it is [N, lengths, E]")
        for name, mask in masks.items():
            if mask is not None:
                raise ValueError(f"{name}: given with a NestedTensor, expected none: it has its own lengths, and the layer a structure")

    def _of_sequences(self, query: Tensor, key: Tensor, value: Tensor, is_causal: bool) -> Tensor:
        """NestedTensors of the strided layout, which ``torch.nn.TransformerEncoder`` makes of padded sequences at evaluation."""
        made = {id(x): torch.nested.as_nested_tensor(list(x.unbind()), layout=torch.jagged) for x in (query, key, value)}
        out, _ = self.forward(made[id(query)], made[id(key)], made[id(value)], need_weights=False, is_causal=is_causal)
        return torch.nested.as_nested_tensor(list(out.unbind()))

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> Tuple[Tensor, ...]:
        bias = self.in_proj_bias
        if self.in_proj_weight is not None and query is key is value:
            return F.linear(query, self.in_proj_weight, bias).chunk(3, -1)
        if self.in_proj_weight is not None:
            matrices: Tuple[Tensor, ...] = self.in_proj_weight.chunk(3)
        else:
            matrices = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None, None, None) if bias is None else bias.chunk(3)
        return tuple(F.linear(x, m, b) for x, m, b in zip((query, key, value), matrices, biases))

    def _lengthened(self, query: Tensor, key: Tensor, value: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        """Keys and values with the learned one and the zero at their ends, where the layer has them."""
        count = key.shape[0]
        if self.bias_k is not None and self.bias_v is not None:
            key = torch.cat([key, self.bias_k.expand(count, -1, -1)], 1)
            value = torch.cat([value, self.bias_v.expand(count, -1, -1)], 1)
        if self.add_zero_attn:
            key, value = (F.pad(x, (0, 0, 0, 1)) for x in (key, value))
        return query, key, value

    def _spread(self, name: str, mask: Tensor, count: int, queries: int, keys: int, all_keys: int) -> Tensor:
        """A mask as a broadcast of ``[N, H, L, S]``, with nothing masked of the keys that the layer adds."""
        shapes = [[queries, keys], [count * self.num_heads, queries, keys]]
        if name == "key_padding_mask":
            shapes = [[count, keys]] if count != 1 else [[keys], [count, keys]]
        shape = list(mask.shape)
        if shape not in shapes:
            raise ValueError(f"{name}: shape {shape}, expected {' or '.join(map(str, shapes))}")
        if mask.dtype != torch.bool and not mask.is_floating_point():
            raise ValueError(f"{name}: {_check.said(mask)}, expected bool or a floating-point type")
        if name == "key_padding_mask":
            mask = mask.reshape(count, 1, 1, keys)
        elif len(shape) == 3:
            mask = mask.reshape(count, self.num_heads, queries, keys)
        return F.pad(mask, (0, all_keys - keys)) if all_keys > keys else mask
