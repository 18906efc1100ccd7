"""What a field or an argument may be: each check returns the value as the library takes it, or says what was expected."""

from __future__ import annotations

import difflib
import math
import operator
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence, Union

import torch


def number(name: str, value: Any) -> float:
    """A real number, numpy's and a tensor of one element included."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"{name}: a whole number beyond the largest float, expected a number") from None
    if isinstance(value, torch.Tensor):
        if value.requires_grad:
            raise ValueError(f"{name}: a tensor that requires a gradient, expected a number: it has no gradient here; pass float(...)")
        if value.numel() == 1:
            return float(value)
    elif hasattr(value, "__float__") and not isinstance(value, (bool, str)) and getattr(value, "shape", ()) == ():
        return float(value)
    raise TypeError(f"{name}: {said(value)}, expected a number")


def whole(name: str, value: Any) -> int:
    """A whole number; inside torch.compile it may be symbolic."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, torch.SymInt):
        return value  # type: ignore[return-value]
    if isinstance(value, torch.Tensor) and (value.numel() != 1 or value.is_floating_point() or value.dtype == torch.bool):
        raise TypeError(f"{name}: {said(value)}, expected a whole number")
    if hasattr(value, "__index__") and not isinstance(value, bool):
        return operator.index(value)
    raise TypeError(f"{name}: {said(value)}, expected a whole number")


class Range(NamedTuple):
    """What a number or a tensor may be, and how that is said."""

    holds: Callable[[Any], bool]
    expected: str


FINITE = Range(math.isfinite, "a finite number")
POSITIVE = Range(lambda x: 0 < x < math.inf, "a positive finite number")
AT_LEAST_ONE = Range(lambda x: 1 <= x < math.inf, "a finite number, at least 1")
NOT_NAN = Range(lambda x: not math.isnan(x), "a number other than NaN")


def at_least(least: int, meaning: str = "") -> Range:
    """Whole numbers from `least` on."""
    return Range(lambda x: x >= least, f"at least {least}{meaning}")


IN_64_BITS = Range(lambda x: -(2**63) <= x < 2**63, "a number of 64 bits")

REAL_TENSOR = Range(lambda x: x.is_floating_point(), "a tensor of a floating-point type")
WHOLE_TENSOR = Range(lambda x: not (x.is_floating_point() or x.is_complex() or x.dtype == torch.bool), "a tensor of whole numbers")
MASK = Range(lambda x: x.dtype == torch.bool, "a tensor of bool")
BIAS = Range(REAL_TENSOR.holds, REAL_TENSOR.expected + "; fovea.Keep(mask) takes a bool one")


def within(name: str, value: Any, allowed: Optional[Range]) -> None:
    """Checks a range. In a trace a number may be symbolic, and is left to the operator, which sees it as it comes."""
    if allowed is None or torch.compiler.is_compiling() or allowed.holds(value):
        return
    raise ValueError(f"{name}: {said(value) if isinstance(value, torch.Tensor) else value}, expected {allowed.expected}")


def count(name: str, value: Any, least: int = 1) -> int:
    """A whole number from `least` on."""
    found = whole(name, value)
    within(name, found, at_least(least))
    within(name, found, IN_64_BITS)
    return found


def truth(name: str, value: object) -> bool:
    """True or False, numpy's included."""
    if isinstance(value, bool):
        return value
    if type(value).__module__ == "numpy" and getattr(value, "dtype", None) == bool and getattr(value, "shape", None) == ():
        return bool(value)
    raise TypeError(f"{name}: {said(value)}, expected True or False")


def one_of(name: str, value: object, names: Sequence[str]) -> str:
    """One of some names."""
    if isinstance(value, str) and value in names:
        return value
    raise ValueError(f"{name}: unknown {value!r}, expected one of {', '.join(names)}")


def tensor(name: str, value: object) -> torch.Tensor:
    """A tensor, and nothing that would have to be made one."""
    if isinstance(value, torch.Tensor):
        return value
    hint = ""
    if type(value).__module__ == "numpy":
        hint = f"; torch.from_numpy({_last(name)}) makes one"
    elif isinstance(value, (list, tuple, int, float)):
        hint = f"; torch.tensor({_last(name)}) makes one"
    raise TypeError(f"{name}: {said(value)}, expected a torch.Tensor{hint}")


def dense(name: str, value: torch.Tensor) -> torch.Tensor:
    """A tensor whose elements lie in memory one by one. What operators take they check themselves."""
    if value.layout is torch.strided and not value.is_quantized:
        return value
    kind, made = ("quantised", "dequantize") if value.is_quantized else ("sparse", "to_dense")
    raise ValueError(f"{name}: a {kind} tensor, expected a dense one; {_last(name)}.{made}() makes one")


def counted(numbers: torch.Tensor) -> torch.Tensor:
    """Whole numbers in a type that others can be counted in: one of 8 or 16 bits ends too soon, and libtorch computes little with unsigned ones."""
    return numbers if numbers.dtype in (torch.int32, torch.int64) else numbers.to(torch.int64)


def width(name: str, value: torch.Tensor, expected: int, whose: str) -> None:
    """The last size of what a layer takes, which libtorch would name by two matrices."""
    if value.size(-1) != expected:
        raise ValueError(f"{name}: width {value.size(-1)}, expected {expected} ({whose})")


def tensors(**values: object) -> None:
    """What a layer takes, which libtorch would compute with before an operator sees it: each a dense tensor, a nested one, or None."""
    for name, value in values.items():
        if value is not None and not tensor(name, value).is_nested:
            dense(name, value)  # type: ignore[arg-type]


def unknown_argument(function: str, unknown: Mapping[str, object], known: Sequence[str]) -> TypeError:
    """What to say of arguments that are not there: libtorch's and their relatives, and misspelt ones."""
    name = next(iter(unknown))
    hint = _ELSEWHERE.get(name)
    if hint is None:
        close = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {close[0]}?" if close else f"expected some of {', '.join(known)}"
    return TypeError(f"{function}: no argument {name!r}; {hint}")


_MASK = "structure=fovea.Keep(mask) where a bool mask is True, score=fovea.Dot().bias(mask) adds a float one"
_ELSEWHERE = {
    "is_causal": "structure=fovea.Causal() is what it does",
    "causal": "structure=fovea.Causal() is what it does",
    "attn_mask": _MASK,
    "mask": _MASK,
    "key_padding_mask": "key_lengths says how many keys each item has, structure=fovea.Keep(mask) takes any bool mask",
    "enable_gqa": "key and value may have fewer heads than the query without it",
    "need_weights": "fovea.weights returns weights",
    "normalizer": "it is spelt normaliser",
    "dropout": "it is dropout_p",
    "bias": "score=fovea.Dot().bias(bias) adds one",
    "window_size": "structure=fovea.Window(left, right) is what it does",
    "softmax_scale": "it is scale",
    "softcap": "score=fovea.Dot().soft_cap(cap) is what it does",
    "alibi_slopes": "score=fovea.Dot().alibi(slopes) is what it does",
    "score_mod": "a score is one of fovea's, with modifiers such as fovea.Dot().soft_cap(30.0); fovea.Dot().apply(score_mod) calls a function, slowly",
    "block_mask": "structure=fovea.Blocks(mask, size) takes a bool mask of blocks; fovea.Where(mask_mod) calls a function, slowly",
}  # fmt: skip


def said(value: object) -> str:
    """A value that was not expected, in few words."""
    if isinstance(value, torch.Tensor):
        return f"a tensor {list(value.shape)} of {str(value.dtype).removeprefix('torch.')}"
    if value is None or isinstance(value, (bool, float, int)):
        return repr(value)
    if isinstance(value, str):
        return f"str {value!r}"
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else kind.__module__.split(".")[0] + "."
    return module + kind.__name__


def _last(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def scale_of(name: str, value: object) -> Union[float, torch.Tensor]:
    """A scale: a number, or a tensor, which has a gradient: one element, or one for each head."""
    if not isinstance(value, torch.Tensor):
        factor = number(name, value)
        within(name, factor, FINITE)
        return factor
    dense(name, value)
    if value.numel() != 1 and value.dim() != 1:
        raise ValueError(f"{name}: shape {list(value.shape)}, expected one number, or [H] (one for each head)")
    return value


def optional_tensor(name: str, value: object) -> Optional[torch.Tensor]:
    """A tensor, or None."""
    return None if value is None else tensor(name, value)


def instance(name: str, value: object, base: type, example: str) -> Any:
    """One of a family of choices."""
    if isinstance(value, base):
        return value
    if isinstance(value, type) and issubclass(value, base):
        raise TypeError(f"{name}: the class {value.__name__}, expected a {base.__name__} such as {value.__name__}()")
    hint = f"; {_MASK}" if isinstance(value, torch.Tensor) else ""
    raise TypeError(f"{name}: {said(value)}, expected a {base.__name__} such as fovea.{example}{hint}")
