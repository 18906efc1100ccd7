"""Scores and masks that are Python functions, for trying out: computed in blocks of queries by libtorch, and slow.

A score function's numbers go on as the rows of :class:`fovea.Location`, a mask function's as :class:`fovea.Keep`, a block at a time, so that
every normaliser, modifier and structure works on them, and no more than a block of scores is held. Backward computes blocks again.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from . import _check
from ._attend import attend, weights
from ._normalisers import Hard, KernelRatio, Normaliser, Unnormalised
from ._scores import Dot, Kernel, Location, Score, _Bias
from ._structures import Blocks, Causal, Documents, Graph, Keep, Paged, Ragged, Structure

#: Numbers of a block of scores, as on the composed path of the operators.
BLOCK = 2**22

Offset = Union[int, Tensor]


def _named(choice: Any, name: str, function: object) -> None:
    if not callable(function):
        raise TypeError(f"{name}: {_check.said(function)}, expected a function")
    for field, value in (("_text", "function"), ("_arrays", ()), ("_numbers", ())):
        object.__setattr__(choice, field, value)


@dataclass(frozen=True, eq=False, repr=False)
class Function(Score):
    r"""A score from Python: ``function(query, key)`` of ``[B, H, rows, E]`` and ``[B, H, S, E]`` gives ``[B, H, rows, S]``.

    For trying out, and slow: see :meth:`Score.apply` for one that changes another score.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 10, 4, requires_grad=True) for _ in range(3))
        >>> distance = fovea.Function(lambda q, k: -torch.cdist(q, k, p=1))
        >>> out = fovea.attend(query, key, value, distance, fovea.Sparsemax(), fovea.Causal())
    """

    function: Callable[[Tensor, Tensor], Tensor]
    _calls = True

    def __post_init__(self) -> None:
        _named(self, "Function.function", self.function)


@dataclass(frozen=True, eq=False, repr=False)
class _Applied(Score):
    """Another score, changed by a function of it and of the positions."""

    score: Score
    function: Callable[..., Tensor]
    _calls = True

    def __post_init__(self) -> None:
        _named(self, "apply", self.function)

    def __repr__(self) -> str:
        return f"{self.score!r}.apply({self.function!r})" + "".join("." + repr(modifier) for modifier in self._modifiers)


@dataclass(frozen=True, eq=False, repr=False)
class Where(Structure):
    """Pairs for which ``function(batch, head, query, key)``, called with tensors of positions that broadcast, is True.

    For trying out, and slow: a mask of a block of queries is made at a time. A query's position counts from the call's ``query_offset``.

    Example::

        >>> query, key, value = (torch.randn(1, 2, 10, 4) for _ in range(3))
        >>> dilated = fovea.Where(lambda b, h, i, j: (i - j) % 3 == 0)
        >>> out = fovea.attend(query, key, value, structure=fovea.Causal() & dilated)
    """

    function: Callable[..., Tensor]
    _calls = True

    def __post_init__(self) -> None:
        _named(self, "Where.function", self.function)


class _Blocks:
    """A call cut into blocks of queries: what each of them asks of the operators."""

    def __init__(self, query: Tensor, key: Tensor, score: Score, normaliser: Normaliser, structure: Structure, lengths: Optional[Tensor], offset: Offset):
        _check.tensors(query=query, key=key)
        if query.dim() != 4 or any(isinstance(part, (Ragged, Graph)) for part in structure._parts()):
            raise ValueError("query: packed, expected [B, H, L, E] with a score or a mask that is a Python function")
        if any(isinstance(part, Paged) for part in structure._parts()):
            raise ValueError("structure: Paged, expected keys and values in rows with a score or a mask that is a Python function")
        self.query, self.key, self.score, self.normaliser, self.offset = query, key, score, normaliser, offset

        def placed(part: Structure) -> Structure:
            if isinstance(part, Causal) and part.alignment == "bottom_right":
                part = Causal()
                self.offset = (key.shape[2] if lengths is None else lengths) - query.shape[2]
            return part

        self.structure = structure._changed(placed)
        batch, heads, rows, _ = query.shape
        grain = max([part.size for part in structure._kinds() if isinstance(part, Blocks)], default=1)
        width = query.shape[3] if self._takes_logarithms(getattr(score, "score", None)) else 1  # a row of the query for each pair
        self.size = max(1, BLOCK // max(1, batch * heads * key.shape[2] * width) // grain) * grain
        self.count = rows

    def places(self, start: int, end: int) -> Tuple[Tensor, ...]:
        """Positions of batch, head, query and key, which broadcast to ``[B, H, rows, S]``."""
        device = self.query.device
        ordered = [torch.arange(n, device=device) for n in (self.query.shape[0], self.query.shape[1])]
        rows = torch.arange(start, end, device=device).view(1, 1, -1, 1)
        shift = self.offset.to(device).view(-1, 1, 1, 1) if isinstance(self.offset, Tensor) else self.offset
        return ordered[0].view(-1, 1, 1, 1), ordered[1].view(1, -1, 1, 1), rows + shift, torch.arange(self.key.shape[2], device=device).view(1, 1, 1, -1)

    def arguments(self, start: int, end: int) -> Tuple[Tensor, Score, Structure, Offset]:
        """The query, the score, the structure and the offset of a block."""
        query, places = self.query[:, :, start:end], self.places(start, end)
        score = _rows(self.score, start, end, self.count)
        if isinstance(self.score, (Function, _Applied)):
            query = self._scores(self.score, query, places, start, end)
            score = Location()
            for modifier in self.score._modifiers:
                score = score._with(_rows(modifier, start, end, self.count))

        def of_rows(part: Structure) -> Structure:
            if not isinstance(part, Where):
                kept: Structure = _rows(part, start, end, self.count)
                return kept
            mask = torch.as_tensor(part.function(*places), device=query.device)
            if mask.dtype != torch.bool:
                raise TypeError(f"Where.function: gave {_check.said(mask)}, expected bool")
            return Keep(mask if mask.dim() >= 2 else mask.reshape(1, 1, 1, -1))

        return query, score, self.structure._changed(of_rows), self.offset + start

    def _scores(self, score: Score, query: Tensor, places: Tuple[Tensor, ...], start: int, end: int) -> Tensor:
        wanted = (*query.shape[:3], self.key.shape[2])
        if isinstance(score, Function):
            found, name = score.function(query, self.key.repeat_interleave(query.shape[1] // self.key.shape[1], 1)), "Function.function"
        else:
            assert isinstance(score, _Applied)
            found, name = score.function(self._base(score.score, query, places, start, end), *places), "apply"
        if not isinstance(found, Tensor) or found.dim() > 4 or not found.is_floating_point():
            raise TypeError(f"{name}: gave {_check.said(found)}, expected a tensor {list(wanted)}")
        return found.expand(wanted).to(query.dtype).contiguous()

    def _base(self, score: Score, query: Tensor, places: Tuple[Tensor, ...], start: int, end: int) -> Tensor:
        if score._calls:
            raise ValueError("apply: on a score that is a function already, expected one function")
        if type(score) is Dot and not score._modifiers and not isinstance(score.scale, Tensor):
            scale = query.shape[-1] ** -0.5 if score.scale is None else score.scale
            return (query * scale) @ self.key.repeat_interleave(query.shape[1] // self.key.shape[1], 1).transpose(-1, -2)
        if any(getattr(modifier, "value_table", None) is not None for modifier in score._modifiers):
            raise ValueError("apply: on relative positions with a value table, expected a key table alone")
        score = _rows(score, start, end, self.count)
        if not self._takes_logarithms(score):
            return self._one_by_one(query, score, start)
        logarithms = self._logarithms(query, type(score)(*(getattr(score, name) for name in score.__dataclass_fields__)))
        if not score._modifiers:
            return logarithms
        changed: Score = Location()
        for modifier in score._modifiers:
            changed = changed._with(modifier)
        return self._one_by_one(logarithms.to(query.dtype), changed, start)

    def _takes_logarithms(self, score: Optional[Score]) -> bool:
        """Whether the normaliser is given the logarithm of a kernel."""
        return isinstance(score, Kernel) and not isinstance(self.normaliser, (KernelRatio, Unnormalised))

    def _one_by_one(self, query: Tensor, score: Score, start: int) -> Tensor:
        """The scores: sums, with themselves as weights, of the rows of an identity; minus infinity, which no sum would show, is put back."""
        outside: List[Tensor] = []
        made = type(score)(*(getattr(score, name) for name in score.__dataclass_fields__))
        for modifier in score._modifiers:
            if isinstance(modifier, _Bias):
                outside.append(modifier.bias.isneginf())
                modifier = _Bias(modifier.bias.masked_fill(outside[-1], 0.0))
            made = made._with(modifier)
        keys = self.key.shape[2]
        if isinstance(score, Location):
            outside.append(query[..., :keys].isneginf())
            query = query.masked_fill(query.isneginf(), 0.0)
        identity = torch.eye(keys, dtype=query.dtype, device=query.device).expand(*self.key.shape[:2], keys, keys)
        found = attend(query, self.key, identity, made, Unnormalised(), query_offset=self.offset + start)
        assert isinstance(found, Tensor)
        for masked in outside:
            found = found.masked_fill(masked, -torch.inf)
        return found

    def _logarithms(self, query: Tensor, kernel: Score) -> Tensor:
        """log K of each pair: the log-sum-exp of a key alone. K itself is 0 where it underflows."""
        assert isinstance(kernel, Kernel)
        batch, heads, rows, width = query.shape
        keys = self.key.shape[2]
        alone = self.key.transpose(1, 2).reshape(batch * keys, self.key.shape[1], 1, width)
        bandwidth = kernel.bandwidth
        if isinstance(bandwidth, Tensor) and bandwidth.dim() == 3:
            kernel = dataclasses.replace(kernel, bandwidth=bandwidth.repeat_interleave(keys, 0))
        every = query.unsqueeze(1).expand(batch, keys, heads, rows, width).reshape(batch * keys, heads, rows, width)
        _, sums = attend(every, alone, alone, kernel, return_lse=True)
        return sums.view(batch, keys, heads, rows).permute(0, 2, 3, 1)


def _rows(choice: Any, start: int, end: int, count: int) -> Any:
    """A choice with the rows of a block, where it has an array by row of the query."""
    changed: Dict[str, Tensor] = {}
    if isinstance(choice, Keep) or isinstance(choice, _Bias):
        name = "mask" if isinstance(choice, Keep) else "bias"
        array = getattr(choice, name)
        if array.dim() >= 2 and array.shape[-2] != 1:
            changed[name] = array[..., start:end, :]
    elif isinstance(choice, Documents):
        changed["query_ids"] = choice.query_ids[..., start:end]
    elif isinstance(choice, Blocks) and choice.mask.shape[-2] != 1:
        changed["mask"] = choice.mask[..., start // choice.size : -(-end // choice.size), :]
    elif isinstance(choice, Kernel) and isinstance(choice.bandwidth, Tensor) and choice.bandwidth.dim() == 3:
        changed["bandwidth"] = choice.bandwidth[..., start:end]
    made: Any = dataclasses.replace(choice, **changed) if changed else choice
    if isinstance(choice, Score) and choice._modifiers and not isinstance(choice, (Function, _Applied)):
        made = type(made)(*(getattr(made, name) for name in made.__dataclass_fields__))
        for modifier in choice._modifiers:
            made = made._with(_rows(modifier, start, end, count))
    return made


def attend_in_blocks(
    query: Tensor, key: Tensor, value: Tensor, score: Score, normaliser: Normaliser, structure: Structure, key_lengths: Optional[Tensor],
    query_offset: Offset, dropout_p: float, seed: Optional[int], check_finite: bool, return_lse: bool,
) -> Tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The output, the log-sum-exp if wanted, and how many rows were empty."""
    blocks = _Blocks(query, key, score, normaliser, structure, key_lengths, query_offset)
    if seed is None and (dropout_p > 0 or (isinstance(normaliser, Hard) and normaliser.sample)):
        seed = int(torch.randint(2**63 - 1, (), dtype=torch.int64, device="cpu"))

    def block(start: int, end: int) -> Tuple[Tensor, ...]:
        rows, part, seen, offset = blocks.arguments(start, end)
        return attend(  # type: ignore[return-value]
            rows, key, value, part, normaliser, seen, None, dropout_p, key_lengths, return_lse, seed=seed, return_empty_rows=True,
            query_offset=offset, check_finite=check_finite,
        )  # fmt: skip

    starts = range(0, max(1, blocks.count), blocks.size)
    saved = torch.is_grad_enabled() and len(starts) > 1
    found = []
    for start in starts:
        end = min(start + blocks.size, blocks.count)
        found.append(checkpoint(block, start, end, use_reentrant=False, preserve_rng_state=False) if saved else block(start, end))
    sums = torch.cat([x[1] for x in found], 2) if return_lse else query.new_zeros(0)
    return torch.cat([x[0] for x in found], 2), sums, torch.stack([x[-1] for x in found]).sum()


def weights_in_blocks(
    query: Tensor, key: Tensor, score: Score, normaliser: Normaliser, structure: Structure, key_lengths: Optional[Tensor], query_offset: Offset,
    rows: Optional[List[int]], heads: Any, top_k: Optional[int], column_sums: bool, seed: Optional[int], check_finite: bool,
) -> Union[Tensor, Tuple[Tensor, Tensor]]:  # fmt: skip
    """Some of the weights: of a block at a time, or of one row after another where some are chosen."""
    blocks = _Blocks(query, key, score, normaliser, structure, key_lengths, query_offset)
    spans = [(r, r + 1) for r in rows] if rows is not None else [(s, min(s + blocks.size, blocks.count)) for s in range(0, max(1, blocks.count), blocks.size)]
    found: List[Any] = []
    for start, end in spans:
        given, part, seen, offset = blocks.arguments(start, end)
        found.append(
            weights(given, key, part, normaliser, seen, None, key_lengths, heads=heads, top_k=top_k, column_sums=column_sums, seed=seed,
                    query_offset=offset, check_finite=check_finite)
        )  # fmt: skip
    if column_sums:
        return torch.stack(found).sum(0)
    if top_k is None:
        return torch.cat(found, 2)
    return torch.cat([x[0] for x in found], 2), torch.cat([x[1] for x in found], 2)
