"""Modules on :func:`fovea.attend`: those of ``torch.nn`` and ``torch_geometric.nn`` under their names, and a few of their own.

    MultiheadAttention              torch.nn's, and a score, a normaliser, a structure; states move both ways
    TransformerEncoderLayer, TransformerDecoderLayer    the same of torch.nn's layers
    GATConv, GATv2Conv              torch_geometric.nn's; states move both ways
    AdditiveAttention               w'tanh(Wq + Uk) with its projections
    NadarayaWatson                  kernel regression that learns its bandwidth
    MultipleInstance                attention pooling of bags
    fenchel_young_loss              the loss that belongs to a normaliser

``help(fovea.nn.MultiheadAttention)`` and the like have the arguments and an example that runs.
"""

# As in fovea/__init__.py: with an __all__, help(fovea.nn) would print the help of every class, and of all they inherit.

from .graph import GATConv as GATConv, GATv2Conv as GATv2Conv
from .losses import fenchel_young_loss as fenchel_young_loss
from .multihead import MultiheadAttention as MultiheadAttention
from .pooling import AdditiveAttention as AdditiveAttention, MultipleInstance as MultipleInstance, NadarayaWatson as NadarayaWatson
from .transformer import TransformerDecoderLayer as TransformerDecoderLayer, TransformerEncoderLayer as TransformerEncoderLayer
