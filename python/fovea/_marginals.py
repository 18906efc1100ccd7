"""Weights that are marginals of a distribution over chains or trees."""

from typing import NamedTuple, Optional

import torch
from torch import Tensor

from . import _check


class ChainMarginals(NamedTuple):
    """What `chain_marginals` gives: ``states`` [B, n, S], ``transitions`` [B, n - 1, S, S], ``log_partition`` [B].

    Example::

        >>> found = fovea.chain_marginals(torch.randn(2, 5, 3), torch.randn(3, 3))
        >>> found.states.sum(-1)  # one for each position
    """

    states: Tensor
    transitions: Tensor
    log_partition: Tensor


class TreeMarginals(NamedTuple):
    """What `tree_marginals` gives: ``arcs`` [B, n, n], ``log_partition`` [B].

    Example::

        >>> found = fovea.tree_marginals(torch.randn(2, 5, 5))
        >>> found.arcs.sum(-2)  # every word has one head
    """

    arcs: Tensor
    log_partition: Tensor


def chain_marginals(unary: Tensor, pairwise: Tensor, lengths: Optional[Tensor] = None) -> ChainMarginals:
    """Probabilities of states and transitions under p(z) ~ exp(sum_i unary[i, z_i] + sum_i pairwise[i, z_i, z_{i+1}]).

    unary: [B, n, S]. pairwise: [S, S] for every step, or [B, n - 1, S, S]. lengths: integers [B]; past an item's length all is 0.
    Differentiable once, ``log_partition`` twice. Takes O(n S^2).

        weights = fovea.chain_marginals(torch.stack([torch.zeros_like(score), score], -1), pairwise).states[..., 1]
        read = (weights.unsqueeze(1) @ values).squeeze(1)

    Example::

        >>> unary, pairs = torch.randn(2, 5, 3, requires_grad=True), torch.randn(3, 3)
        >>> found = fovea.chain_marginals(unary, pairs, lengths=torch.tensor([5, 3]))
        >>> found.states[..., 0].sum().backward()
    """
    _check.tensors(unary=unary, pairwise=pairwise, lengths=lengths)
    return ChainMarginals(*torch.ops.fovea.chain_marginals(unary, pairwise, lengths))


def tree_marginals(arcs: Tensor, lengths: Optional[Tensor] = None) -> TreeMarginals:
    """Probabilities of arcs under p(z) ~ exp(sum of arcs[head, dependant]), over the projective trees of n words.

    arcs: [B, n, n]; the diagonal holds the scores of hanging from the root. lengths: integers [B]. The heads of a word sum to 1.
    Differentiable once, ``log_partition`` twice. Takes O(n^3) time and O(n^2) memory.

        heads = fovea.tree_marginals(query @ key.transpose(1, 2)).arcs
        read = heads.transpose(1, 2) @ values  # for each word, the mean of its heads

    Example::

        >>> arcs = torch.randn(2, 5, 5, requires_grad=True)  # [head, word]; the root's on the diagonal
        >>> fovea.tree_marginals(arcs).arcs.square().sum().backward()
    """
    _check.tensors(arcs=arcs, lengths=lengths)
    return TreeMarginals(*torch.ops.fovea.tree_marginals(arcs, lengths))
