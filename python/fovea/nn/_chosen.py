"""Choices whose tensors belong to a module: they move, are saved and are learned with it."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, Optional, TypeVar, Union

import torch
from torch import Tensor
from torch._C._functorch import peek_interpreter_stack
from torch.autograd.function import once_differentiable

from .._attend import attend, weights
from .._choice import Choice
from .._normalisers import Normaliser
from .._scores import Score
from .._structures import Structure

Kind = TypeVar("Kind", bound=Choice)


class Chosen(torch.nn.Module):
    """A choice as a part of a module. Parameters among its tensors become the module's, other tensors its buffers, which are not saved."""

    def __init__(self, choice: Choice) -> None:
        super().__init__()
        self.choice = choice
        self._register(choice, "")
        self.holds_tensors = bool(self._parameters or self._buffers)  # asked now: parametrisation and pruning take a parameter away

    def forward(self) -> Any:
        """The choice, with the module's tensors."""
        return self._rebuilt(self.choice, "") if self.holds_tensors else self.choice

    def extra_repr(self) -> str:
        """The choice as it was given."""
        return repr(self.choice)

    def _register(self, choice: Choice, prefix: str) -> None:
        for name, value in _fields(choice).items():
            if isinstance(value, torch.nn.Parameter):
                self.register_parameter(prefix + name, value)
            elif isinstance(value, Tensor):
                self.register_buffer(prefix + name, value, persistent=False)
            elif isinstance(value, tuple):
                for place, part in enumerate(value):
                    self._register(part, f"{prefix}{part._kind}{place}_")

    def _rebuilt(self, choice: Kind, prefix: str) -> Kind:
        fields = _fields(choice)
        for name, value in fields.items():
            if isinstance(value, Tensor):
                fields[name] = getattr(self, prefix + name)
            elif isinstance(value, tuple):
                fields[name] = tuple(self._rebuilt(part, f"{prefix}{part._kind}{place}_") for place, part in enumerate(value))
        modifiers = fields.pop("_modifiers", ())
        made = dataclasses.replace(choice, **fields)
        for modifier in modifiers:
            made = made._with(modifier)  # type: ignore[attr-defined]
        return made


def _fields(choice: Choice) -> Dict[str, Any]:
    """What a choice is made of; a score's modifiers under their own name."""
    fields = {name: getattr(choice, name) for name in choice.__dataclass_fields__}
    if isinstance(choice, Score) and choice._modifiers:
        fields["_modifiers"] = choice._modifiers
    return fields


def chosen(choice: Optional[Choice]) -> Optional[Chosen]:
    """A module of a choice that was given."""
    return None if choice is None else Chosen(choice)


def weights_with_gradient(
    query: Tensor, key: Tensor, score: Score, normaliser: Normaliser, structure: Structure, query_offset: Union[int, Tensor] = 0
) -> Tensor:
    """:func:`fovea.weights`, all of them, in the query's type and with a gradient; it costs something only where one flows."""
    if torch.compiler.is_compiling() or peek_interpreter_stack() is not None:  # neither knows _Weights
        return _by_values(query, key, (score, normaliser, structure), query_offset)
    arrays: "list[Tensor]" = []
    for choice in (score, normaliser, structure):
        choice._collect(arrays, [], query)
    learned = [x for x in arrays if x.requires_grad]
    made: Tensor = _Weights.apply(query, key, (score, normaliser, structure), query_offset, *learned)  # type: ignore[no-untyped-call]
    return made.to(query.dtype)  # of half precision, weights are single


def _by_values(query: Tensor, key: Tensor, choices: Any, query_offset: Union[int, Tensor]) -> Tensor:
    """The weights as the outputs of values that are the rows of an identity."""
    keys = key.shape[-2]
    identity = torch.eye(keys, dtype=query.dtype, device=query.device).expand(*key.shape[:-2], keys, keys)
    out = attend(query, key, identity, *choices, query_offset=query_offset)
    assert isinstance(out, Tensor)
    return out


class _Weights(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, choices: Any, query_offset: Union[int, Tensor], *learned: Tensor) -> Tensor:
        ctx.save_for_backward(query, key, *learned)
        ctx.choices, ctx.query_offset = choices, query_offset
        score, normaliser, structure = choices
        return weights(query, key, score, normaliser, structure, query_offset=query_offset)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  # the decorator's doing
        query, key, *learned = ctx.saved_tensors
        leaves = [query.detach().requires_grad_(), key.detach().requires_grad_(), *learned]
        with torch.enable_grad():
            made = _by_values(leaves[0], leaves[1], ctx.choices, ctx.query_offset)
        d_query, d_key, *rest = torch.autograd.grad(made, leaves, gradients, allow_unused=True)
        return d_query, d_key, None, None, *rest
