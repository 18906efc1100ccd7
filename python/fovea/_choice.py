"""What scores, normalisers and structures share: each is a small value, checked when it is made, that is written as the operator's text.

Their fields are declared in C++; the library says what they are (``torch.ops.fovea.describe``), and every class here is held to that.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar, Dict, List, Mapping, Tuple, Union

import torch

from . import _check

#: Of each choice's name: its fields in order, each with its type and its default.
DESCRIBED: Dict[str, List[Tuple[str, Union[str, List[str]], Any]]] = {
    choice["name"]: [tuple(field) for field in choice["fields"]]
    for family in json.loads(torch.ops.fovea.describe()).values()
    for choice in family
}


class Choice:
    """A value whose fields become ``kind:field=value,...``; a tensor is an ``@`` and a whole number a ``#``, the next of a list."""

    _kind: ClassVar[str]
    #: Fields that hold a tensor but may be left out, or be a number.
    _optional: ClassVar[Tuple[str, ...]] = ()
    _numeric: ClassVar[Tuple[str, ...]] = ()
    #: What its tensors may be; and its numbers, where not any.
    _tensors: ClassVar[_check.Range] = _check.REAL_TENSOR
    _ranges: ClassVar[Mapping[str, _check.Range]] = {}
    __dataclass_fields__: ClassVar[Dict[str, Any]]  # every choice is a dataclass
    _text: str
    #: The fields that go into the lists, in their order.
    _arrays: Tuple[str, ...]
    _numbers: Tuple[str, ...]

    def __init_subclass__(
        cls,
        kind: str = "",
        optional: Tuple[str, ...] = (),
        numeric: Tuple[str, ...] = (),
        ranges: Mapping[str, _check.Range] = {},
        **keywords: object,
    ) -> None:
        super().__init_subclass__(**keywords)
        cls._kind, cls._optional, cls._numeric, cls._ranges = kind, optional, numeric, ranges

    def __post_init__(self) -> None:
        words: List[str] = []
        arrays: List[str] = []
        numbers: List[str] = []
        for name, kind, _ in DESCRIBED[self._kind]:
            value = self._checked(name, kind)
            if value is None:
                continue
            if kind == "tensor":
                arrays.append(name)
                words.append(name + "=@")
            elif kind == "whole":
                # Not written: inside torch.compile it may be symbolic, and a text for each would be a graph for each.
                numbers.append(name)
                words.append(name + "=#")
            else:
                words.append(name + "=" + _word(value))
        set_field = object.__setattr__
        set_field(self, "_text", self._kind + (":" + ",".join(words) if words else ""))
        set_field(self, "_arrays", tuple(arrays))
        set_field(self, "_numbers", tuple(numbers))
        if not arrays and not numbers:
            self._set_whole()

    def _set_whole(self) -> None:
        """Notes, under the name of the family, that the text is the whole choice."""

    def _checked(self, field: str, kind: Union[str, List[str]]) -> object:
        """A field's value for the text; the checked value takes the given one's place. Overridden where a field is not the library's."""
        value = getattr(self, field)
        value = self._check(field, kind, value)
        object.__setattr__(self, field, value)
        return value

    def _check(self, field: str, kind: Union[str, List[str]], value: object) -> object:
        name = self._called() + "." + field
        if value is None and (kind == "number?" or field in self._optional):
            return None
        if kind == "truth":
            return _check.truth(name, value)
        if isinstance(kind, list):
            return _check.one_of(name, value, kind)
        if kind == "tensor" and (field not in self._numeric or isinstance(value, torch.Tensor)):
            _check.within(name, _check.tensor(name, value), self._tensors)
            return value
        if kind == "whole":
            _check.within(name, whole := _check.whole(name, value), _check.IN_64_BITS)
            _check.within(name, whole, self._ranges.get(field))
            return whole
        _check.within(name, number := _check.number(name, value), self._ranges.get(field))
        return number

    def _called(self) -> str:
        return type(self).__name__

    def _collect(self, arrays: List[torch.Tensor], numbers: List[int], query: torch.Tensor) -> None:
        """Adds what the text leaves to the lists."""
        for field in self._arrays:
            value = getattr(self, field)
            if not isinstance(value, torch.Tensor):
                value = torch.tensor([value], dtype=_arithmetic(query), device=query.device)
            arrays.append(value)
        for field in self._numbers:
            numbers.append(getattr(self, field))

    def _values(self) -> Tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def _besides(self) -> Dict[str, object]:
        """What a copy must be given that is no field."""
        return {}

    def __reduce__(self) -> Tuple[Any, ...]:
        """Copies and pickles are made of the fields, which are checked again when they are read."""
        return type(self), Choice._values(self), self._besides() or None

    def __eq__(self, other: object) -> bool:
        """The same choice: the same numbers, and tensors that are the same or hold the same."""
        if type(self) is not type(other) or not isinstance(other, Choice):
            return NotImplemented
        return self._text == other._text and all(map(_same, self._values(), other._values()))

    def __hash__(self) -> int:
        return hash((type(self), self._text, *(tuple(x.shape) if isinstance(x, torch.Tensor) else x for x in self._values())))

    def __repr__(self) -> str:
        fields = zip(self.__dataclass_fields__, self._values())
        return self._called() + "(" + ", ".join(f"{name}={_shown(value)}" for name, value in fields) + ")"


def storable() -> List[Any]:
    """Every class of choices but those that hold a Python function: files may name them without naming code."""
    found: List[Any] = []
    waiting: List[Any] = [Choice]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__dict__.get("__dataclass_fields__") is not None and not getattr(kind, "_calls", False):
            found.append(kind)
    return found


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value}"  # not repr: inside torch.compile a symbolic number is written so, and only so


def _same(a: object, b: object) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a is b or (a.shape == b.shape and a.dtype == b.dtype and a.device == b.device and torch.equal(a, b))
    return type(a) is type(b) and a == b


def _shown(value: object) -> str:
    """A tensor of few elements whole, a larger one by its shape."""
    if isinstance(value, torch.Tensor) and value.numel() > 8:
        return "<" + _check.said(value).removeprefix("a ") + ">"
    return repr(value)


def _arithmetic(query: torch.Tensor) -> torch.dtype:
    return torch.float64 if query.dtype == torch.float64 else torch.float32
