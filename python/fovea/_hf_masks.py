"""What models of ``transformers`` mask, as structures: no mask of queries x keys is written."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple, Union

import torch
from torch import Tensor

from ._structures import Causal, Dense, Documents, Keep, Structure, Window

Offset = Union[int, Tensor]


class Mask:
    """What ``transformers`` hands from a model to its attention in the place of a mask: which keys a query may see, as structures.

    Positions count from the first key; ``offset`` is that of the first query. A model that changes its mask before it hands it on does so with
    the tensor that it is then given.
    """

    ndim = 4
    dtype = torch.bool

    def __init__(
        self,
        sizes: Tuple[int, int, int],
        offset: Offset,
        causal: bool = False,
        window: Optional[Tuple[int, int]] = None,
        ids: Tuple[Tuple[Tensor, Tensor], ...] = (),
        padding: Optional[Tensor] = None,
        keep: Optional[Tensor] = None,
        device: Any = None,
    ) -> None:
        batch, queries, keys = sizes
        self.shape = (batch, 1, queries, keys)
        if isinstance(offset, int):  # what hides nothing is left out
            if offset >= keys - 1:
                causal = False
            if window is not None and window[0] >= offset + queries - 1 and (causal or window[1] < 0 or window[1] >= keys - 1 - offset):
                window = None
        self.offset, self.causal, self.window, self.ids, self.padding, self.keep = offset, causal, window, ids, padding, keep
        self.device = device

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

    def written(self) -> Tensor:
        """The mask itself, bool ``[B, 1, L, S]``, True where a pair meets: for models that change masks as tensors, of which some choose keys so."""
        batch, _, queries, keys = self.shape
        row = torch.arange(queries, device=self.device)[:, None] + self.offset
        column = torch.arange(keys, device=self.device)
        allowed = torch.ones(batch, 1, queries, keys, dtype=torch.bool, device=self.device)
        if self.causal:
            allowed = allowed & (column <= row)
        if self.window is not None:
            left, right = self.window
            allowed = allowed & (column >= row - left if left >= 0 else True) & (column <= row + right if right >= 0 else True)
        for query_ids, key_ids in self.ids:
            allowed = allowed & (query_ids[..., :, None] == key_ids[..., None, :]).reshape(-1, 1, queries, keys)
        if self.padding is not None:
            allowed = allowed & self.padding.to(torch.bool)[:, None, None, :]
        return allowed if self.keep is None else allowed & self.keep

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        def plain(x: Any) -> Any:
            return x.written() if isinstance(x, Mask) else type(x)(map(plain, x)) if isinstance(x, (tuple, list)) else x

        return function(*map(plain, arguments), **{name: plain(x) for name, x in (keywords or {}).items()})

    def __getattr__(self, name: str) -> Any:
        # What else a model asks of a mask, it asks of a tensor.
        if name.startswith("_") or not hasattr(Tensor, name):
            raise AttributeError(f"{type(self).__name__}: no attribute {name}")
        return getattr(self.written(), name)

    def __getitem__(self, place: Any) -> Tensor:
        return self.written()[place]

    def __and__(self, other: Tensor) -> Tensor:
        return self.written() & other

    __rand__ = __and__

    def __invert__(self) -> Tensor:
        return ~self.written()

    def to(self, *arguments: Any, **keywords: Any) -> "Mask":
        """On another device, as a tensor would be."""
        device = keywords.get("device", arguments[0] if arguments else None)
        moved = Mask.__new__(Mask)
        move: Callable[[Any], Any] = lambda x: x.to(device) if isinstance(x, Tensor) else tuple(map(move, x)) if isinstance(x, tuple) else x  # noqa: E731
        moved.__dict__.update(self.__dict__)
        if isinstance(device, (str, torch.device)):
            moved.__dict__.update({name: move(value) for name, value in self.__dict__.items()}, device=torch.device(device))
        return moved

    def contiguous(self) -> "Mask":
        """Itself; ``generate`` asks for it."""
        return self


def _both(a: Structure, b: Structure) -> Structure:
    return b if isinstance(a, Dense) else a & b


def masks(masking: Any) -> Callable[..., Mask]:
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
            found = _read(masking, mask_function, _Places(q_length, kv_length, q_offset, kv_offset))
        if found is None:
            keywords.update(allow_is_causal_skip=False, allow_is_bidirectional_skip=False)
            written = masking.sdpa_mask(batch_size, q_length, kv_length, q_offset, kv_offset, mask_function, attention_mask, **keywords)
            return Mask(sizes, offset, keep=written, device=written.device)
        padding = _padding(attention_mask, kv_length, kv_offset, "causal" in found)
        return Mask(sizes, offset, padding=padding, device=keywords.get("device", "cpu"), **found)

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


class _Places(NamedTuple):
    """Where queries and keys stand: by index, or by ``positions`` ``[B, L]`` that begin again with each packed sequence."""

    queries: int
    keys: int
    q_offset: Offset
    kv_offset: int
    positions: Optional[Tensor] = None

    def of_queries(self, device: torch.device) -> Tensor:
        return torch.arange(self.queries, device=device) + self.q_offset if self.positions is None else self.positions

    def of_keys(self, device: torch.device) -> Tensor:
        return torch.arange(self.keys, device=device) + self.kv_offset if self.positions is None else self.positions


def _maker(masking: Any, function: Any) -> str:
    """The function of ``masking_utils`` that made this one; empty if another did."""
    if getattr(function, "__closure__", None) is None or getattr(function, "__module__", "") != masking.__name__:
        return ""
    return str(function.__qualname__.split(".")[0])


def _read(masking: Any, function: Any, places: _Places) -> Optional[Dict[str, Any]]:
    """A function of ``transformers``' ``masking_utils`` as arguments of :class:`Mask`; None if it is of another kind."""
    if function is masking.causal_mask_function:
        return {"causal": True}
    if function is masking.bidirectional_mask_function:
        return {}
    made_by = _maker(masking, function)
    if not made_by:
        return None
    held = inspect.getclosurevars(function).nonlocals
    if made_by == "and_masks":
        return _read_all(masking, held["mask_functions"], places)
    if made_by == "sliding_window_overlay":
        return {"window": (held["sliding_window"] - 1, -1)}
    if made_by == "sliding_window_bidirectional_overlay":
        return {"window": (held["sliding_window"], held["sliding_window"])}
    if made_by == "packed_sequence_mask_function":
        ids = held["packed_sequence_mask"]
        return {"ids": ((ids, ids[:, places.kv_offset : places.kv_offset + places.keys]),)} if ids.shape[1] == places.queries else None
    if made_by == "chunked_overlay":
        size, padded = held["chunk_size"], held["left_padding"]
        stand = (places.of_queries(padded.device), places.of_keys(padded.device))
        query_ids, key_ids = (torch.div(x - padded[:, None], size, rounding_mode="floor") for x in stand)
        return {"ids": ((query_ids, key_ids),)}
    return None


def _read_all(masking: Any, parts: Tuple[Any, ...], places: _Places) -> Optional[Dict[str, Any]]:
    """The functions that ``and_masks`` joins."""
    found: Dict[str, Any] = {}
    packed = any(_maker(masking, part) == "packed_sequence_mask_function" for part in parts)
    for part in parts:
        # transformers 5.23 counts positions within a packed sequence. They step by one there, so that what is before, and how far, stays.
        if packed and _maker(masking, part) == "remap_positions_for_packed_sequence":
            within = inspect.getclosurevars(part).nonlocals
            if within["position_ids"].shape[1] != places.queries or places.queries != places.keys:
                return None
            more = _read(masking, within["mask_function"], places._replace(positions=within["position_ids"]))
        else:
            more = _read(masking, part, places)
        if more is None:
            return None
        more["ids"] = found.get("ids", ()) + more.get("ids", ())  # of which there may be several
        if any(name in found for name in more if name != "ids"):
            return None
        found.update(more)
    return found


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
