"""A module of each kind, with a call that suits it."""

import torch

import fovea


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


EDGES = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 1]])


def learned():
    """An attention whose score has a parameter of its own."""
    torch.manual_seed(0)
    score = fovea.Additive(torch.nn.Parameter(torch.randn(4, 8)))
    return fovea.nn.MultiheadAttention(32, 4, batch_first=True, score=score, normaliser=fovea.Sparsemax(), structure=fovea.Window(3, 0))


#: How each is made, and what it is called with.
MODULES = {
    "MultiheadAttention": (learned, lambda: (randn(2, 5, 32),) * 3),
    "TransformerEncoderLayer": (
        lambda: fovea.nn.TransformerEncoderLayer(32, 4, 48, batch_first=True, structure=fovea.Causal()),
        lambda: (randn(2, 5, 32),),
    ),
    "TransformerDecoderLayer": (
        lambda: fovea.nn.TransformerDecoderLayer(32, 4, 48, batch_first=True, normaliser=fovea.Entmax(1.5)),
        lambda: (randn(2, 5, 32), randn(2, 7, 32)),
    ),
    "GATConv": (lambda: fovea.nn.GATConv(16, 8, heads=2), lambda: (randn(3, 16), EDGES)),
    "GATv2Conv": (lambda: fovea.nn.GATv2Conv(16, 8, heads=2), lambda: (randn(3, 16), EDGES)),
    "AdditiveAttention": (lambda: fovea.nn.AdditiveAttention(8, 6, 16), lambda: (randn(2, 3, 8), randn(2, 5, 6))),
    "NadarayaWatson": (lambda: fovea.nn.NadarayaWatson(2, bandwidth=0.5), lambda: (randn(4, 2), randn(9, 2, seed=1), randn(9, 1))),
    "MultipleInstance": (lambda: fovea.nn.MultipleInstance(6, 8), lambda: (randn(3, 5, 6),)),
}


def made(name):
    """A module that drops nothing, and its inputs."""
    torch.manual_seed(1)
    make, inputs = MODULES[name]
    return make().eval(), inputs()


def first(out):
    """The output, where weights come with it."""
    return out[0] if isinstance(out, tuple) else out
