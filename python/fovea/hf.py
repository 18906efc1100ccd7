"""Fovea inside Hugging Face's ``transformers``.

One line, and every model that goes through ``transformers``' attention interface can ask for it::

    fovea.hf.register()
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="fovea")

What a model masks stays a structure: causality, sliding windows, chunks, packed sequences and padding are never written out as a queries x
keys mask. Soft caps, attention sinks, T5's bias, grouped heads, dynamic and static caches are taken as they come.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any, Callable, Dict, Optional, Tuple, Union

import torch
from torch import Tensor

from . import _check
from ._attend import attend
from ._normalisers import Normaliser, Softmax
from ._scores import Dot, Score
from ._structures import Causal, Dense, Documents, Keep, Structure, Window
from .nn._chosen import weights_with_gradient

Offset = Union[int, Tensor]

__all__ = ["register"]

_OLDEST = "5.4"  # of transformers


def register(name: str = "fovea", *, normaliser: Optional[Normaliser] = None) -> None:
    """Makes ``attn_implementation=name`` known to ``transformers``.

    Args:
        name: what a model asks for.
        normaliser: in the place of softmax, for example ``fovea.Entmax(1.5)``; a model with attention sinks then refuses.

    ``model(..., output_attentions=True)`` works, and costs the weights that it returns.

    Example::

        >>> fovea.hf.register()
        >>> config = transformers.LlamaConfig(
        ...     vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, attn_implementation="fovea"
        ... )
        >>> model = transformers.AutoModelForCausalLM.from_config(config)
        >>> tokens = model.generate(torch.tensor([[1, 2, 3]]), max_new_tokens=4, do_sample=False, pad_token_id=0)
    """
    if normaliser is not None:
        _check.instance("normaliser", normaliser, Normaliser, "Entmax()")
    transformers, masking = _modules()
    transformers.AttentionInterface.register(name, _attention(normaliser))
    masking.AttentionMaskInterface.register(name, _masks(masking))


def _modules() -> Tuple[Any, Any]:
    """``transformers`` and its masks; those before 5.4 asked for masks by the positions of a cache, which nothing here reads."""
    try:
        transformers = importlib.import_module("transformers")
    except ImportError as error:
        raise ImportError(f"fovea.hf.register: needs transformers, version {_OLDEST} or newer ({error})") from error
    try:
        masking = importlib.import_module("transformers.masking_utils")
        if "q_length" in inspect.signature(masking.sdpa_mask).parameters:
            return transformers, masking
    except (ImportError, AttributeError):
        pass
    raise ImportError(f"fovea.hf.register: transformers {transformers.__version__} is installed, expected {_OLDEST} or newer")


class Mask:
    """What ``transformers`` hands from a model to its attention in the place of a mask: which keys a query may see, as structures.

    Positions count from the first key; ``offset`` is that of the first query.
    """

    ndim = 4

    def __init__(
        self,
        sizes: Tuple[int, int, int],
        offset: Offset,
        causal: bool = False,
        window: Optional[Tuple[int, int]] = None,
        ids: Tuple[Tuple[Tensor, Tensor], ...] = (),
        padding: Optional[Tensor] = None,
        keep: Optional[Tensor] = None,
    ) -> None:
        batch, queries, keys = sizes
        self.shape = (batch, 1, queries, keys)
        if isinstance(offset, int):  # what hides nothing is left out
            if offset >= keys - 1:
                causal = False
            if window is not None and window[0] >= offset + queries - 1 and (causal or window[1] < 0 or window[1] >= keys - 1 - offset):
                window = None
        self.offset, self.causal, self.window, self.ids, self.padding, self.keep = offset, causal, window, ids, padding, keep

    def structure(self) -> Structure:
        """The structures, of all of which a pair must be."""
        found: Structure = Causal() if self.causal else Dense()
        if self.window is not None:
            found = _both(found, Window(*self.window))
        for query_ids, key_ids in self.ids:
            found = _both(found, Documents(query_ids, key_ids))
        if self.padding is not None:  # ids, of which whole tiles are passed over, where a mask is looked at element by element
            queries = torch.zeros(self.shape[2], dtype=torch.int32, device=self.padding.device)
            found = _both(found, Documents(queries, self.padding.to(torch.int32) - 1))
        return found if self.keep is None else _both(found, Keep(self.keep))

    def query_offset(self) -> Offset:
        """0 where nothing counts positions."""
        return self.offset if self.causal or self.window is not None else 0

    def to(self, *arguments: Any, **keywords: Any) -> "Mask":
        """On another device, as a tensor would be."""
        device = keywords.get("device", arguments[0] if arguments else None)
        moved = Mask.__new__(Mask)
        move: Callable[[Any], Any] = lambda x: x.to(device) if isinstance(x, Tensor) else tuple(map(move, x)) if isinstance(x, tuple) else x  # noqa: E731
        moved.__dict__.update({name: move(value) for name, value in self.__dict__.items()} if isinstance(device, (str, torch.device)) else self.__dict__)
        return moved

    def contiguous(self) -> "Mask":
        """Itself; ``generate`` asks for it."""
        return self


def _both(a: Structure, b: Structure) -> Structure:
    return b if isinstance(a, Dense) else a & b


def _masks(masking: Any) -> Callable[..., Mask]:
    """The function that ``transformers`` calls to make a model's mask."""

    def mask(
        batch_size: int,
        q_length: int,
        kv_length: int,
        q_offset: Offset = 0,
        kv_offset: int = 0,
        mask_function: Any = masking.causal_mask_function,
        attention_mask: Any = None,
        **keywords: Any,
    ) -> Mask:
        if isinstance(attention_mask, Mask):  # generate made it already
            return attention_mask
        sizes = (batch_size, q_length, kv_length)
        offset = q_offset - kv_offset  # a new tensor where it is one: the cache goes on counting in its own
        if torch.compiler.is_compiling():
            found = _traced(masking, mask_function, sizes, q_offset, kv_offset, attention_mask, keywords)
        else:
            found = _read(masking, mask_function, q_length, kv_length, q_offset, kv_offset)
        if found is None:
            keywords.update(allow_is_causal_skip=False, allow_is_bidirectional_skip=False)
            written = masking.sdpa_mask(batch_size, q_length, kv_length, q_offset, kv_offset, mask_function, attention_mask, **keywords)
            return Mask(sizes, offset, keep=written)
        return Mask(sizes, offset, padding=_padding(attention_mask, kv_length, kv_offset, "causal" in found), **found)

    return mask


def _padding(mask: Optional[Tensor], keys: int, kv_offset: int, causal: bool) -> Optional[Tensor]:
    """Which keys are no padding, ``[B, S]``; None where none is, which is looked at only outside of a trace."""
    if mask is None:
        return None
    seen = mask[:, kv_offset : kv_offset + keys]
    missing = keys - seen.shape[1]  # places of a static cache that are empty yet: causality hides them
    if (missing == 0 or causal) and not torch.compiler.is_compiling() and bool(seen.all()):
        return None
    return torch.nn.functional.pad(seen, (0, missing)) if missing > 0 else seen


def _read(masking: Any, function: Any, queries: int, keys: int, q_offset: Offset, kv_offset: int) -> Optional[Dict[str, Any]]:
    """A function of ``transformers``' ``masking_utils`` as arguments of :class:`Mask`; None if it is of another kind."""
    if function is masking.causal_mask_function:
        return {"causal": True}
    if function is masking.bidirectional_mask_function:
        return {}
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if code is None or cells is None or getattr(function, "__module__", "") != masking.__name__:
        return None
    made_by = function.__qualname__.split(".")[0]
    held = {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells)}
    if made_by == "and_masks":
        found: Dict[str, Any] = {}
        for part in held["mask_functions"]:
            more = _read(masking, part, queries, keys, q_offset, kv_offset)
            if more is None:
                return None
            more["ids"] = found.get("ids", ()) + more.get("ids", ())  # of which there may be several
            if any(name in found for name in more if name != "ids"):
                return None
            found.update(more)
        return found
    if made_by == "sliding_window_overlay":
        return {"window": (held["sliding_window"] - 1, -1)}
    if made_by == "sliding_window_bidirectional_overlay":
        return {"window": (held["sliding_window"], held["sliding_window"])}
    if made_by == "packed_sequence_mask_function":
        ids = held["packed_sequence_mask"]
        return {"ids": ((ids, ids[:, kv_offset : kv_offset + keys]),)} if ids.shape[1] == queries else None
    if made_by == "chunked_overlay":
        size, padded = held["chunk_size"], held["left_padding"]
        query = torch.arange(queries, device=padded.device) + q_offset
        key = torch.arange(keys, device=padded.device) + kv_offset
        query_ids, key_ids = (torch.div(x - padded[:, None], size, rounding_mode="floor") for x in (query, key))
        return {"ids": ((query_ids, key_ids),)}
    return None


def _traced(
    masking: Any, function: Any, sizes: Tuple[int, int, int], q_offset: Offset, kv_offset: int, given: Any, keywords: Dict[str, Any]
) -> Optional[Dict[str, Any]]:
    """As :func:`_read`, within a trace, which cannot look into a function: what it is follows from the arguments beside it."""
    if function is masking.causal_mask_function:
        return {"causal": True}
    if function is masking.bidirectional_mask_function:
        return {}
    if keywords.get("use_vmap") or function.__name__ != "and_mask":  # and_masks' own; torch 2.11 traces no __qualname__
        return None
    size, device = keywords.get("local_size"), keywords.get("device", "cpu")
    if "allow_is_bidirectional_skip" in keywords:
        return None if size is None else {"window": (size, size)}
    found: Dict[str, Any] = {"causal": True}
    chunks = size is not None and getattr(keywords.get("config"), "attention_chunk_size", None) == size
    if size is not None and not chunks:
        found["window"] = (size - 1, -1)
    if chunks or given is None:
        # Packed sequences or chunks, which lie one after another: a new one begins where a key does not see the one before it.
        batch, queries, keys = sizes
        place = torch.arange(1, keys, device=device)[None] + kv_offset
        item = torch.arange(batch, device=device)[:, None]
        begins = ~function(item, torch.zeros_like(item), place, place - 1).expand(batch, keys - 1)
        ids = torch.nn.functional.pad(begins.cumsum(1), (1, 0))
        rows = torch.arange(queries, device=device) + (q_offset - kv_offset)
        found["ids"] = ((ids[:, rows], ids),)
    return found


def _attention(normaliser: Optional[Normaliser]) -> Callable[..., Tuple[Tensor, Optional[Tensor]]]:
    """The function that a model of ``transformers`` calls with its heads."""
    given = normaliser

    def attention(
        module: torch.nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Any,
        dropout: float = 0.0,
        scaling: Optional[float] = None,
        is_causal: Optional[bool] = None,
        position_bias: Optional[Tensor] = None,
        softcap: Optional[float] = None,
        s_aux: Optional[Tensor] = None,
        **keywords: Any,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        score: Score = Dot(scaling)
        if softcap is not None:
            score = score.soft_cap(softcap)
        if position_bias is not None:
            score = score.bias(position_bias[..., : key.shape[2]].to(query.dtype))
        normaliser = _with_sinks(given, s_aux, query)
        structure: Structure = Dense()
        offset: Offset = 0
        if isinstance(attention_mask, Mask):
            structure, offset = attention_mask.structure(), attention_mask.query_offset()
        elif attention_mask is None:
            causal = bool(getattr(module, "is_causal", True)) if is_causal is None else is_causal
            structure = Causal() if causal and query.shape[2] > 1 else structure
        elif attention_mask.dtype == torch.bool:
            structure = Keep(attention_mask)
        else:
            score = score.bias(attention_mask.to(query.dtype))
        out = attend(query, key, value, score, normaliser, structure, dropout_p=dropout, query_offset=offset)
        assert isinstance(out, Tensor)
        weights = weights_with_gradient(query, key, score, normaliser, structure, offset) if _wants_weights(keywords) else None
        return out.transpose(1, 2).contiguous(), weights

    return attention


def _with_sinks(normaliser: Optional[Normaliser], sinks: Optional[Tensor], query: Tensor) -> Normaliser:
    if sinks is None:
        return Softmax() if normaliser is None else normaliser
    if normaliser is not None:
        raise ValueError(f"normaliser: {normaliser!r}, expected none for a model with attention sinks, which are softmax's")
    return Softmax(sinks.to(torch.float64 if query.dtype == torch.float64 else torch.float32))


def _wants_weights(keywords: Dict[str, Any]) -> bool:
    """Whether the model's caller asked for weights: by an argument that came through, or of ``transformers``' collector."""
    if keywords.get("output_attentions"):
        return True
    if torch.compiler.is_compiling():
        return False
    try:
        collector = importlib.import_module("transformers.utils.output_capturing")._active_collector.get()
    except (ImportError, AttributeError, LookupError):
        return False
    return any(name.endswith("attentions") for name in collector or ())
