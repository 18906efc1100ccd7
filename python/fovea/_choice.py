"""What scores, normalisers and structures share: each is a small value that can write itself as the operator's text."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List, Tuple

import torch


class Choice:
    """A value whose fields become ``kind:field=value,...``; tensors become ``@n``, the n-th of a list."""

    kind: ClassVar[str]
    #: Fields that hold a tensor; a number there becomes a tensor of one element.
    tensors: ClassVar[Tuple[str, ...]] = ()
    __dataclass_fields__: ClassVar[Dict[str, Any]]  # every choice is a dataclass
    _words: Dict[str, str]  # the fields that are no tensors, as text

    def __init_subclass__(cls, kind: str = "", tensors: Tuple[str, ...] = (), **keywords: object) -> None:
        super().__init_subclass__(**keywords)
        cls.kind = kind
        cls.tensors = tensors

    def __post_init__(self) -> None:
        # Written once, here: inside torch.compile a number read from an object may be symbolic, and has no text.
        words = {name: _word(value) for name, value in self._fields().items() if name not in self.tensors}
        object.__setattr__(self, "_words", words)

    def _fields(self) -> Dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def _text(self, arrays: List[torch.Tensor], query: torch.Tensor) -> str:
        parts = []
        for name, value in self._fields().items():
            if value is None:
                continue
            if name not in self.tensors:
                parts.append(name + "=" + self._words[name])
                continue
            if not isinstance(value, torch.Tensor):
                value = torch.tensor([float(value)], dtype=_arithmetic(query), device=query.device)
            parts.append(name + "=@" + str(len(arrays)))
            arrays.append(value)
        return self.kind + (":" + ",".join(parts) if parts else "")


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def _arithmetic(query: torch.Tensor) -> torch.dtype:
    return torch.float64 if query.dtype == torch.float64 else torch.float32
