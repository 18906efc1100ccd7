"""The layers of a Transformer (Vaswani et al. 2017) under the names of ``torch.nn``, with any score, normaliser and structure."""

from __future__ import annotations

from typing import Any, Callable, Optional, Union

import torch
from torch import Tensor

from .._normalisers import Normaliser
from .._scores import Score
from .._structures import Structure
from .multihead import MultiheadAttention


class TransformerEncoderLayer(torch.nn.TransformerEncoderLayer):
    """:class:`torch.nn.TransformerEncoderLayer` on Fovea's operators; its attention takes the choices of :class:`MultiheadAttention`.

    A state of the one loads into the other, and the same seed makes the same weights. Serves in ``torch.nn.TransformerEncoder``.

    Example::

        >>> layer = fovea.nn.TransformerEncoderLayer(64, 4, batch_first=True, structure=fovea.Window(8, 8))
        >>> encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        >>> out = encoder(torch.randn(2, 100, 64))
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Union[str, Callable[[Tensor], Tensor]] = torch.nn.functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        score: Optional[Score] = None,
        normaliser: Optional[Normaliser] = None,
        structure: Optional[Structure] = None,
    ) -> None:
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype)
        self.self_attn = MultiheadAttention.from_torch(self.self_attn, score=score, normaliser=normaliser, structure=structure)
        self.activation_relu_or_gelu = 0  # what torch.nn asks before it computes a layer whole, without its attention

    def forward(
        self, src: Tensor, src_mask: Optional[Tensor] = None, src_key_padding_mask: Optional[Tensor] = None, is_causal: bool = False
    ) -> Tensor:
        """The layer's output; masks as in ``torch.nn``, and kept as they are: a bool one is no tensor of numbers."""
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        out: Tensor = self.norm2(x + self._ff_block(x))
        return out


class TransformerDecoderLayer(torch.nn.TransformerDecoderLayer):
    """:class:`torch.nn.TransformerDecoderLayer` on Fovea's operators.

    Both attentions take ``score`` and ``normaliser``; ``structure`` is that of the self attention, ``memory_structure`` that of the other.

    Example::

        >>> layer = fovea.nn.TransformerDecoderLayer(64, 4, batch_first=True, normaliser=fovea.Sparsemax())
        >>> out = layer(torch.randn(2, 7, 64), torch.randn(2, 9, 64), tgt_is_causal=True)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Union[str, Callable[[Tensor], Tensor]] = torch.nn.functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        score: Optional[Score] = None,
        normaliser: Optional[Normaliser] = None,
        structure: Optional[Structure] = None,
        memory_structure: Optional[Structure] = None,
    ) -> None:
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype)
        self.self_attn = MultiheadAttention.from_torch(self.self_attn, score=score, normaliser=normaliser, structure=structure)
        self.multihead_attn = MultiheadAttention.from_torch(self.multihead_attn, score=score, normaliser=normaliser, structure=memory_structure)
