"""Operands as programs pass them: the same numbers, lying differently in memory."""

import torch


def contiguous(*shape, **options):
    return torch.randn(*shape, **options)


def transposed(*shape, **options):
    """Heads split off a projection's rows: [B, L, H, E] in memory. A packed tensor's heads come first."""
    if len(shape) == 3:
        return torch.randn(shape[1], shape[0], shape[2], **options).transpose(0, 1)
    return torch.randn(shape[0], shape[2], shape[1], shape[3], **options).transpose(1, 2)


def expanded(*shape, **options):
    """One head for all."""
    one = torch.randn(*(1 if d == 1 else n for d, n in enumerate(shape)), **options)
    return one.expand(*shape)


def sliced(*shape, **options):
    """Part of a larger tensor: rows and widths with gaps between them."""
    return torch.randn(*(n + 2 for n in shape), **options)[tuple(slice(1, n + 1) for n in shape)]


def columns(*shape, **options):
    """The last dimension is not the innermost."""
    return torch.randn(*shape[:-2], shape[-1], shape[-2], **options).transpose(-1, -2)


LAYOUTS = {f.__name__: f for f in (contiguous, transposed, expanded, sliced, columns)}
