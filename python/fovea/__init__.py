"""Attention: one operation, three choices.

    out = fovea.attend(query, key, value, score=fovea.Dot(), normaliser=fovea.Softmax(), structure=fovea.Causal())

A *score* says what a pair of query and key is worth, a *normaliser* how a row of scores becomes weights, a *structure* which pairs
may meet (``a & b``, ``a | b``, ``~a`` combine structures). Every combination works, forward and backward, without storing a queries x keys matrix.

    fovea.scaled_dot_product_attention    torch's function, argument for argument
    fovea.nn                              torch.nn's and torch_geometric's layers, and a few more
    fovea.hf.register()                   attn_implementation="fovea" in transformers
    fovea.sklearn                         estimators for scikit-learn
    fovea.train, fovea.load               the systems of the command
    help(fovea.attend)                    every argument, with an example

Wrong arguments raise ``ValueError``, of a wrong type or name ``TypeError``; a combination without meaning, or one that ``strict`` refuses,
raises ``RuntimeError``.
"""

import torch

from ._library import load as _load

_load()

from ._attend import attend, explain_dispatch, weights  # noqa: E402
from ._functions import Function, Where
from ._marginals import ChainMarginals, TreeMarginals, chain_marginals, tree_marginals
from ._normalisers import Entmax, Hard, KernelRatio, Normaliser, Sigmoid, Softmax, Sparsemax, TopK, Uniform, Unnormalised
from ._runs import Report, Run, load, train
from ._scores import Additive, Bilinear, Constant, Cosine, Dot, GatedAdditive, Kernel, Location, RankOne, Score
from ._sdpa import scaled_dot_product_attention
from ._structures import (
    Blocks,
    Causal,
    Dense,
    Documents,
    First,
    Fixed,
    Graph,
    Keep,
    Paged,
    Prefix,
    Ragged,
    Strided,
    Structure,
    Window,
)
from . import hf, nn

__version__: str = torch.ops.fovea.version()


def simd_target() -> str:
    """The SIMD target chosen at run time, for example AVX3.

    Example::

        >>> print(fovea.simd_target())
    """
    name: str = torch.ops.fovea.simd_target()
    return name


def __getattr__(name: str) -> object:
    if name == "sklearn":  # which needs scikit-learn, and is loaded when it is asked for
        import importlib

        return importlib.import_module("fovea.sklearn")
    raise AttributeError(f"module 'fovea' has no attribute {name!r}")


__all__ = [
    "Additive", "Bilinear", "Blocks", "Causal", "ChainMarginals", "Constant", "Cosine", "Dense", "Documents", "Dot", "Entmax", "First", "Fixed",
    "Function", "GatedAdditive", "Graph", "Hard", "Keep", "Kernel", "KernelRatio", "Location", "Normaliser", "Paged", "Prefix", "Ragged", "RankOne",
    "Report", "Run", "Score", "Sigmoid", "Softmax", "Sparsemax", "Strided", "Structure", "TopK", "TreeMarginals", "Uniform", "Unnormalised", "Where", "Window",
    "attend", "chain_marginals", "explain_dispatch", "hf", "load", "nn", "scaled_dot_product_attention", "simd_target", "train", "tree_marginals", "weights",
]  # fmt: skip
