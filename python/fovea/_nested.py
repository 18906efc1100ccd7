"""NestedTensors in and out: sequences of different lengths, packed as they lie, through :class:`fovea.Ragged`."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch import Tensor

from ._attend import attend
from ._structures import Dense, Ragged, Structure


def attend_nested(query: Tensor, key: Tensor, value: Tensor, structure: Structure, key_lengths: Optional[Tensor], **options: Any) -> Any:
    """:func:`fovea.attend` of NestedTensors ``[B, H, lengths, E]`` in the jagged layout, as ``scaled_dot_product_attention`` takes them."""
    if key_lengths is not None:
        raise ValueError("key_lengths: given with NestedTensors, expected none: they have their own lengths")
    (q, offsets), (k, key_offsets), (v, value_offsets) = (_packed(name, x) for name, x in (("query", query), ("key", key), ("value", value)))
    if key_offsets is not value_offsets and not torch.equal(key_offsets, value_offsets):
        raise ValueError("value: sequences of other lengths, expected the key's")
    if offsets.shape != key_offsets.shape:
        raise ValueError(f"key: {len(key_offsets) - 1} sequences, expected {len(offsets) - 1} (the query's)")
    ragged: Structure = Ragged(offsets, key_offsets)
    found = attend(q, k, v, structure=ragged if isinstance(structure, Dense) else ragged & structure, **options)
    if isinstance(found, Tensor):
        return _unpacked(found, offsets)
    # The log-sum-exp is by row too; how many rows are empty is one number.
    return tuple(x if x.dim() == 0 else _unpacked(x.reshape(q.shape[0], q.shape[1], *x.shape[2:] if n == 0 else ()), offsets) for n, x in enumerate(found))


def _packed(name: str, x: Tensor) -> Tuple[Tensor, Tensor]:
    """The rows of all sequences ``(total, H, E)``, and where each begins."""
    if not x.is_nested or x.layout != torch.jagged or x.dim() != 4:
        kind = f"a NestedTensor of {x.dim()} dimensions, {x.layout}" if x.is_nested else "a tensor"
        raise ValueError(f"{name}: {kind}, expected NestedTensors [B, H, lengths, E] with layout=torch.jagged")
    rows: Any = x.transpose(1, 2)  # [B, lengths, H, E], which is how they lie
    values, offsets, lengths = rows.values(), rows.offsets(), rows.lengths()
    if lengths is None:
        return values, offsets
    # Rows between the sequences, as torch.nested.narrow leaves them; contiguous(), which takes them out, has no gradient.
    starts, offsets = offsets[:-1], torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
    places = torch.arange(int(offsets[-1]), device=values.device) + torch.repeat_interleave(starts - offsets[:-1], lengths)
    return values[places], offsets


def _unpacked(rows: Tensor, offsets: Tensor) -> Tensor:
    return torch.nested.nested_tensor_from_jagged(rows, offsets).transpose(1, 2)
