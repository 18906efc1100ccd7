"""Modules on :func:`fovea.attend`: those of ``torch.nn`` and ``torch_geometric.nn`` under their names, and a few of their own.

``MultiheadAttention``, ``TransformerEncoderLayer`` and ``TransformerDecoderLayer`` exchange states with ``torch.nn``'s, ``GATConv`` and
``GATv2Conv`` with ``torch_geometric.nn``'s.
"""

from .graph import GATConv, GATv2Conv
from .losses import fenchel_young_loss
from .multihead import MultiheadAttention
from .pooling import AdditiveAttention, MultipleInstance, NadarayaWatson
from .transformer import TransformerDecoderLayer, TransformerEncoderLayer

__all__ = [
    "AdditiveAttention", "GATConv", "GATv2Conv", "MultiheadAttention", "MultipleInstance", "NadarayaWatson",
    "TransformerDecoderLayer", "TransformerEncoderLayer", "fenchel_young_loss",
]  # fmt: skip
