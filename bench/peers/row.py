"""A row of python_peers.py: a call of ours beside a peer's that does the same."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from typing import Callable

import torch

Run = Callable[[], "tuple[torch.Tensor, ...]"]


@dataclass
class Row:
    name: str
    peer: str
    ours: Run
    theirs: Run
    tolerance: float = 2e-4
    at_least: float | None = None  # x_peer to reach, where a figure names this peer


def normal(*size: int, seed: int) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed)).requires_grad_(True)


def runner(both: bool, leaves: tuple[torch.Tensor, ...], gradient: torch.Tensor, attention: Callable[[], torch.Tensor]) -> Run:
    """The output alone, without autograd; or the output and the gradient of every leaf."""

    def forward():
        with torch.no_grad():
            return (attention(),)

    def forward_backward():
        out = attention()
        return (out.detach(), *torch.autograd.grad(out, leaves, gradient))

    return forward_backward if both else forward


def passes(name: str, peer: str, leaves, gradient, ours, theirs, at_least=(None, None), **kwargs) -> list[Row]:
    """A row for the forward pass and one for forward and backward."""
    return [
        Row(f"{name}/{suffix}", peer, runner(both, leaves, gradient, ours), runner(both, leaves, gradient, theirs),
            at_least=at_least[both], **kwargs)
        for both, suffix in ((False, "forward"), (True, "forward+backward"))
    ]


def have(module: str):
    try:
        return importlib.import_module(module)
    except ImportError as error:
        print(f"left out: {module} ({error})", file=sys.stderr)
        return None
