"""Attention: score, normaliser, structure."""

import torch

from ._library import load as _load

_load()


def simd_target() -> str:
    """The SIMD target chosen at run time, for example AVX3."""
    return torch.ops.fovea.simd_target()
