"""Attention with one kind of question: additive (Bahdanau et al. 2015), kernel regression, and pooling of bags (Ilse et al. 2018)."""

from __future__ import annotations

import math
from typing import Any, Optional, Tuple

import torch
from torch import Tensor

from .. import _check
from .._attend import attend, weights
from .._normalisers import KernelRatio, Normaliser, Softmax
from .._scores import Additive, GatedAdditive, Kernel, KernelName, Score
from .._structures import Dense, Keep, Ragged, Structure
from ._chosen import chosen


def _single(out: Any) -> Tensor:
    assert isinstance(out, Tensor)
    return out


class AdditiveAttention(torch.nn.Module):
    r"""Additive attention: :math:`e_{ij} = w^\top \tanh(W q_i + U k_j)` (Bahdanau et al. 2015).

    Args:
        query_dim, key_dim: widths of what comes in.
        hidden_dim: width of the sum.
        dropout: share of the weights dropped in training.
        normaliser: :class:`fovea.Softmax` when None.

    Example::

        >>> layer = fovea.nn.AdditiveAttention(32, 48, 16)
        >>> context = layer(torch.randn(2, 1, 32), torch.randn(2, 20, 48), key_lengths=torch.tensor([20, 13]))
    """

    def __init__(self, query_dim: int, key_dim: int, hidden_dim: int, dropout: float = 0.0, *, normaliser: Optional[Normaliser] = None) -> None:
        super().__init__()
        self.query_proj = torch.nn.Linear(query_dim, hidden_dim, bias=False)
        self.key_proj = torch.nn.Linear(key_dim, hidden_dim, bias=False)
        self.weight = torch.nn.Parameter(torch.empty(hidden_dim))
        self.dropout, self.normaliser = dropout, chosen(normaliser)
        torch.nn.init.uniform_(self.weight, -math.sqrt(1 / hidden_dim), math.sqrt(1 / hidden_dim))

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Optional[Tensor] = None,
        key_padding_mask: Optional[Tensor] = None,
        key_lengths: Optional[Tensor] = None,
    ) -> Tensor:
        """``[B, L, Ev]`` from query ``[B, L, query_dim]``, key ``[B, S, key_dim]`` and value, the key when None. A mask is True at padding."""
        _check.tensors(value=value)
        value = key if value is None else value
        q, k, score, normaliser, structure = self._options(query, key, key_padding_mask)
        dropped = self.dropout if self.training else 0.0
        return _single(attend(q, k, value.unsqueeze(1), score, normaliser, structure, dropout_p=dropped, key_lengths=key_lengths)).squeeze(1)

    def weights(
        self, query: Tensor, key: Tensor, key_padding_mask: Optional[Tensor] = None, key_lengths: Optional[Tensor] = None
    ) -> Tensor:
        """The weights ``[B, L, S]`` of a call, without gradient."""
        with torch.no_grad():
            q, k, score, normaliser, structure = self._options(query, key, key_padding_mask)
            return weights(q, k, score, normaliser, structure, key_lengths=key_lengths).squeeze(1)

    def _options(self, query: Tensor, key: Tensor, mask: Optional[Tensor]) -> Tuple[Tensor, Tensor, Score, Normaliser, Structure]:
        _check.tensors(query=query, key=key, key_padding_mask=mask)
        for name, x, projection in (("query", query, self.query_proj), ("key", key, self.key_proj)):
            _check.width(name, x, projection.in_features, f"{name}_dim")
        structure: Structure = Dense() if mask is None else Keep(~mask[:, None, None, :])
        normaliser = Softmax() if self.normaliser is None else self.normaliser()
        return self.query_proj(query).unsqueeze(1), self.key_proj(key).unsqueeze(1), Additive(self.weight), normaliser, structure


class NadarayaWatson(torch.nn.Module):
    r"""Kernel regression, :math:`\hat y(q) = \sum_j K(q, k_j) v_j / \sum_j K(q, k_j)` (Nadaraya 1964, Watson 1964), learned.

    Args:
        features: width of query and key, if the metric has a scale for each; None for the plain distance.
        kernel: one of :class:`fovea.Kernel`'s names.
        bandwidth: to begin with; its logarithm is the parameter.

    Example::

        >>> layer = fovea.nn.NadarayaWatson(kernel="gaussian", bandwidth=0.3)
        >>> predicted = layer(torch.randn(5, 2), torch.randn(100, 2), torch.randn(100, 1))
    """

    metric: Optional[torch.nn.Parameter]

    def __init__(self, features: Optional[int] = None, kernel: KernelName = "gaussian", bandwidth: float = 1.0) -> None:
        super().__init__()
        Kernel(kernel, bandwidth)  # which checks them
        self.kernel: KernelName = kernel
        self.log_bandwidth = torch.nn.Parameter(torch.tensor([math.log(bandwidth)]))
        self.register_parameter("metric", None if features is None else torch.nn.Parameter(torch.ones(features)))

    def score(self) -> Score:
        """The kernel as it is now."""
        return Kernel(self.kernel, self.log_bandwidth.exp(), self.metric)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """``[..., L, Ev]`` from query ``[..., L, E]``, key ``[..., S, E]`` and value ``[..., S, Ev]``; leading sizes are equal."""
        q, k, v = (_four(name, x) for name, x in (("query", query), ("key", key), ("value", value)))
        return _single(attend(q, k, v, self.score(), KernelRatio())).reshape(*query.shape[:-1], value.shape[-1])

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        """The weights ``[..., L, S]``, without gradient."""
        with torch.no_grad():
            found = weights(_four("query", query), _four("key", key), self.score(), KernelRatio())
        return found.reshape(*query.shape[:-1], key.shape[-2])


def _four(name: str, x: Tensor) -> Tensor:
    if _check.dense(name, _check.tensor(name, x)).dim() < 2:
        raise ValueError(f"{name}: {_check.said(x)}, expected [..., rows, width]")
    return x.unsqueeze(0).flatten(0, -3).unsqueeze(1)


class MultipleInstance(torch.nn.Module):
    r"""Attention pooling of bags: :math:`z = \sum_j a_j h_j`, :math:`e_j = w^\top (\tanh V h_j \odot \sigma(U h_j))` (Ilse et al. 2018).

    Args:
        in_features: width of an instance.
        hidden: width of the score's layer.
        gated: with the gate :math:`\sigma(U h)`, or without it.
        heads: attentions side by side.
        normaliser: :class:`fovea.Softmax` when None.

    Example::

        >>> pool = fovea.nn.MultipleInstance(32, 16)
        >>> bags = pool(torch.randn(50, 32), torch.tensor([0, 20, 20, 50]))  # three bags packed, the second empty
        >>> bags = pool(torch.randn(4, 10, 32), key_padding_mask=torch.rand(4, 10) > 0.8)
    """

    def __init__(self, in_features: int, hidden: int = 128, gated: bool = True, heads: int = 1, *, normaliser: Optional[Normaliser] = None) -> None:
        super().__init__()
        self.gated, self.heads, self.hidden = gated, heads, hidden
        self.proj = torch.nn.Linear(in_features, hidden * (2 if gated else 1))
        self.weight = torch.nn.Parameter(torch.empty(heads, hidden))
        self.normaliser = chosen(normaliser)
        torch.nn.init.uniform_(self.weight, -math.sqrt(1 / hidden), math.sqrt(1 / hidden))

    def forward(self, instances: Tensor, offsets: Optional[Tensor] = None, key_padding_mask: Optional[Tensor] = None) -> Tensor:
        """``[bags, in_features]`` (``[bags, heads * in_features]`` of several): of instances packed ``[total, E]`` with offsets
        ``[bags + 1]``, padded ``[bags, S, E]``, or one bag ``[S, E]``. An empty bag is zero."""
        query, key, value, *choices = self._options(instances, offsets, key_padding_mask)
        return _single(attend(query, key, value, *choices)).flatten(1)

    def weights(self, instances: Tensor, offsets: Optional[Tensor] = None, key_padding_mask: Optional[Tensor] = None) -> Tensor:
        """The weights of the instances, without gradient: ``[total, heads]`` packed, else ``[bags, heads, S]``."""
        with torch.no_grad():
            query, key, _, *choices = self._options(instances, offsets, key_padding_mask)
            found = weights(query, key, *choices).squeeze(-2)  # [bags, heads, longest]
        if offsets is None:
            return found
        lengths = _check.counted(offsets).diff()
        inside = torch.arange(found.shape[-1], device=found.device) < lengths.unsqueeze(-1)
        return found.transpose(1, 2)[inside]

    def _options(self, instances: Tensor, offsets: Optional[Tensor], mask: Optional[Tensor]) -> Tuple[Any, ...]:
        _check.tensors(instances=instances, offsets=offsets, key_padding_mask=mask)
        _check.width("instances", instances, self.proj.in_features, "in_features")
        score = GatedAdditive(self.weight) if self.gated else Additive(self.weight)
        normaliser = Softmax() if self.normaliser is None else self.normaliser()
        key = self.proj(instances)
        if offsets is not None:
            if instances.dim() != 2 or mask is not None:
                raise ValueError(f"instances: {_check.said(instances)}, expected [total, E] packed and no mask, with offsets")
            offsets = _check.counted(offsets)
            bags = torch.arange(offsets.shape[0], device=offsets.device, dtype=offsets.dtype)
            query = key.new_zeros(offsets.shape[0] - 1, self.heads, key.shape[-1])
            spread = (x.unsqueeze(1).expand(-1, self.heads, -1) for x in (key, instances))
            return (query, *spread, score, normaliser, Ragged(bags, offsets))
        if instances.dim() not in (2, 3):
            raise ValueError(f"instances: {_check.said(instances)}, expected [bags, S, E], or [S, E]")
        if instances.dim() == 2:
            instances, key = instances.unsqueeze(0), key.unsqueeze(0)
        query = key.new_zeros(key.shape[0], self.heads, 1, key.shape[-1])
        structure = Dense() if mask is None else Keep(~mask.reshape(key.shape[0], 1, 1, key.shape[1]))
        return query, key.unsqueeze(1), instances.unsqueeze(1), score, normaliser, structure
