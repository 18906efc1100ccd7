r"""Attention: one operation, three choices.

    out = fovea.attend(query, key, value, score=fovea.Dot(), normaliser=fovea.Softmax(), structure=fovea.Causal())

A *score* says what a pair of query and key is worth, a *normaliser* how a row of scores becomes weights, a *structure* which pairs may
meet. Every combination works, forward and backward, without storing a queries x keys matrix. ``help(fovea.Entmax)`` and the like
have the equation and an example that runs.

Functions
    attend                          the operation; help(fovea.attend) has every argument
    weights                         some of its weights: chosen rows and heads, the largest, sums of columns
    explain_dispatch                which path a call takes, and why not the others
    scaled_dot_product_attention    torch's function, argument for argument
    chain_marginals, tree_marginals weights of structured attention (ChainMarginals, TreeMarginals are what they return)
    train, load                     the systems of the command `fovea` (Run, Report are what they return)
    simd_target                     the instruction set in use

Scores (Score is their base)
    Dot, Bilinear                   scale q.k, scale q'Wk
    Additive, GatedAdditive         w'tanh(q + k), w'(tanh a * sigmoid(b))
    Kernel, Cosine                  log K(|q - k| / h) of 13 kernels, beta cos(q, k)
    RankOne                         LeakyReLU(q + k), as in graph attention
    Location, Constant              scores that are given, scores that are all alike
    Function                        a Python function of query and key; slow
    .bias .edge_bias .alibi .relative .soft_cap .apply    return a score with one more step

Normalisers (Normaliser is their base)
    Softmax, Sigmoid                with or without a sink; each weight for itself
    Sparsemax, Entmax, TopK, Hard   weights of exactly zero
    KernelRatio, Uniform, Unnormalised

Structures (Structure is their base; a & b, a | b, ~a combine them)
    Dense, Causal, Window, Prefix, First, Strided, Fixed    by position
    Documents, Blocks, Keep         by ids, by blocks, by any mask
    Ragged, Graph, Paged            packed sequences, edges, keys and values in pages
    Where                           a Python function of positions; slow

Modules
    fovea.nn                        torch.nn's and torch_geometric's layers, and a few more
    fovea.hf.register()             attn_implementation="fovea" in transformers
    fovea.sklearn                   estimators for scikit-learn
    fovea.distributed               attention over rows divided among the ranks of torch.distributed

Wrong arguments raise ``ValueError``, of a wrong type or name ``TypeError``; a combination without meaning, or one that ``strict`` refuses,
raises ``RuntimeError``.
"""

# Names are imported as themselves, which type checkers take as public. There is no __all__: with one, help(fovea) would print the help of every
# class after this text, four thousand lines of it.

import torch as _torch

from ._library import load as _load

_load(__path__)

from . import _choice
from ._attend import attend as attend, explain_dispatch as explain_dispatch, weights as weights
from ._functions import Function as Function, Where as Where
from ._marginals import (
    ChainMarginals as ChainMarginals,
    TreeMarginals as TreeMarginals,
    chain_marginals as chain_marginals,
    tree_marginals as tree_marginals,
)
from ._normalisers import (
    Entmax as Entmax,
    Hard as Hard,
    KernelRatio as KernelRatio,
    Normaliser as Normaliser,
    Sigmoid as Sigmoid,
    Softmax as Softmax,
    Sparsemax as Sparsemax,
    TopK as TopK,
    Uniform as Uniform,
    Unnormalised as Unnormalised,
)
from ._runs import Report as Report, Run as Run, load as load, train as train
from ._scores import (
    Additive as Additive,
    Bilinear as Bilinear,
    Constant as Constant,
    Cosine as Cosine,
    Dot as Dot,
    GatedAdditive as GatedAdditive,
    Kernel as Kernel,
    Location as Location,
    RankOne as RankOne,
    Score as Score,
)
from ._sdpa import scaled_dot_product_attention as scaled_dot_product_attention
from ._structures import (
    Blocks as Blocks,
    Causal as Causal,
    Dense as Dense,
    Documents as Documents,
    First as First,
    Fixed as Fixed,
    Graph as Graph,
    Keep as Keep,
    Paged as Paged,
    Prefix as Prefix,
    Ragged as Ragged,
    Strided as Strided,
    Structure as Structure,
    Window as Window,
)
from . import _flops as _flops, hf as hf, nn as nn

__version__: str = _torch.ops.fovea.version()

# So that torch.load reads what torch.save wrote of choices, without `weights_only=False`; those that hold a Python function stay out.
_torch.serialization.add_safe_globals(_choice.storable())


def simd_target() -> str:
    """The SIMD target chosen at run time, for example AVX3.

    Example::

        >>> print(fovea.simd_target())
    """
    name: str = _torch.ops.fovea.simd_target()
    return name


def __getattr__(name: str) -> object:
    if name in ("distributed", "sklearn"):  # which need torch.distributed and scikit-learn, and are loaded when they are asked for
        import importlib

        return importlib.import_module(f"fovea.{name}")
    raise AttributeError(f"module 'fovea' has no attribute {name!r}")
