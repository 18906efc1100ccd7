"""What the operators cost, for ``torch.utils.flop_counter.FlopCounterMode``: the products alone are counted, as of libtorch's attention."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

Arrays = Sequence[Optional[Tensor]]


def _array(choices: str, arrays: Arrays, field: str) -> Optional[Tensor]:
    """The tensor of a structure's field; the text has an ``@`` for each tensor in the list, in its order."""
    place = choices.find(field + "=@", choices.rfind(";"))
    return None if place < 0 else arrays[choices[:place].count("@")]


def _pairs(query: Tensor, key: Tensor, choices: str, arrays: Arrays) -> int:
    """Pairs of a query and a key, of all heads, masked ones too; of graphs and packed sequences those that are there."""
    columns, offsets, table = (_array(choices, arrays, field) for field in ("columns", "query_offsets", "table"))
    if columns is not None:
        return columns.numel() * query.shape[1]
    if offsets is not None:
        other = _array(choices, arrays, "key_offsets")
        assert other is not None
        if offsets.is_meta or type(offsets) is not Tensor:  # lengths are data, which a trace has none of
            return query.shape[0] * key.shape[0] * query.shape[1]
        return int((offsets.diff().double() * other.diff()).sum()) * query.shape[1]
    keys = key.shape[-2] if table is None else table.shape[1] * key.shape[1]
    return query.shape[:-1].numel() * keys


def _register() -> None:
    @register_flop_formula(torch.ops.fovea.attend, get_raw=True)
    def attend(query: Tensor, key: Tensor, value: Tensor, choices: str, arrays: Arrays, *rest: Any, **keywords: Any) -> int:
        return 2 * _pairs(query, key, choices, arrays) * (query.shape[-1] + value.shape[-1])

    @register_flop_formula(torch.ops.fovea.attend_backward, get_raw=True)
    def attend_backward(
        d_output: Tensor, d_lse: Any, query: Tensor, key: Tensor, value: Tensor, arrays: Arrays, choices: str, *rest: Any, **keywords: Any
    ) -> int:  # the scores again, the gradients of query and key; those of weights and value
        return 2 * _pairs(query, key, choices, arrays) * (3 * query.shape[-1] + 2 * value.shape[-1])

    @register_flop_formula(torch.ops.fovea.weights, get_raw=True)
    def weights(query: Tensor, key: Tensor, choices: str, arrays: Arrays, *rest: Any, **keywords: Any) -> int:
        return 2 * _pairs(query, key, choices, arrays) * query.shape[-1]


_register()
