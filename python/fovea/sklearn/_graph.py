"""Graph attention (Velickovic et al. 2018) as a classifier of nodes, or of the rows of a table by their nearest neighbours."""

# mypy: disable-error-code="import-untyped,import-not-found"
from __future__ import annotations

from typing import Any, Tuple

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import _check
from .._picture import Answer, Explanation
from ..nn import GATConv
from ._learned import LearnedClassifier, classes_of


class _Network(torch.nn.Module):
    def __init__(self, features: int, hidden: int, heads: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.first = GATConv(features, hidden, heads, dropout=dropout)
        self.second = GATConv(hidden * heads, classes, dropout=dropout)

    def forward(self, rows: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.second(torch.nn.functional.elu(self.first(rows, edges)), edges)
        return made


class GATClassifier(LearnedClassifier):
    """Two layers of graph attention.

    With edges it classifies the nodes of a graph, of which some may have no label; without, the rows of a table, each joined to its nearest
    rows of the training data.

    Args:
        hidden, heads: width and number of the first layer's heads.
        dropout: share of the weights dropped in training.
        n_neighbors: rows that a row is joined to, without edges.
        unlabelled: the value of ``y`` that says that a node has no label, for example -1; None where all have one.
        epochs, learning_rate, weight_decay: of Adam on the whole graph.
        random_state: of the weights at the beginning and of dropout.
        class_weight: what an error at each class counts: a dictionary, or ``"balanced"`` for classes that are rare.

    Example::

        >>> X, edges = np.eye(6), [[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]]
        >>> model = fovea.sklearn.GATClassifier(unlabelled=-1, random_state=0).fit(X, [0, -1, -1, 1, -1, -1], edges)
        >>> model.predict(X, edges)
    """

    def __init__(
        self,
        hidden: int = 8,
        heads: int = 4,
        dropout: float = 0.0,
        n_neighbors: int = 10,
        unlabelled: Any = None,
        epochs: int = 100,
        learning_rate: float = 0.01,
        weight_decay: float = 5e-4,
        random_state: Any = None,
        class_weight: Any = None,
    ) -> None:
        self.hidden = hidden
        self.heads = heads
        self.dropout = dropout
        self.n_neighbors = n_neighbors
        self.unlabelled = unlabelled
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.random_state = random_state
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, edge_index: Any = None) -> "GATClassifier":
        """Learns from rows and labels; ``edge_index`` is ``[2, edges]``, sources above targets, or a sparse matrix whose row lists what a node
        looks at, as ``kneighbors_graph`` makes one."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = classes_of(y, self.unlabelled)
        if not len(self.classes_):
            raise ValueError("y: no label, expected at least one")
        self._measure(X)
        self.X_fit_ = None if edge_index is not None else X
        rows = self._scaled(X)
        edges = self._neighbours(rows, rows) if edge_index is None else _checked(edge_index, len(X))
        labelled, error = torch.from_numpy(codes >= 0), self._error(codes[codes >= 0])
        hidden, heads = _check.count("hidden", self.hidden), _check.count("heads", self.heads)
        self._learn(
            lambda: _Network(X.shape[1], hidden, heads, len(self.classes_), self.dropout),
            lambda module: error(module(rows, edges)[labelled]),
        )
        return self

    def predict_proba(self, X: Any, edge_index: Any = None) -> np.ndarray:
        """``[n, classes]``; the edges as ``fit`` takes them, where it was given some."""
        return self._probabilities(X, edge_index)

    def predict(self, X: Any, edge_index: Any = None) -> np.ndarray:
        """The class of the largest probability."""
        return self._likeliest(X, edge_index)

    def explain(self, X: Any, edge_index: Any = None, top: int = 8) -> Explanation:
        """The nodes that each node looked at in the first layer, a mean over its heads; draws itself in a notebook."""
        check_is_fitted(self)
        rows, edges, skipped = self._graph(X, edge_index)
        with torch.no_grad():
            _, (every, weights) = self.module_.first(rows, edges, return_attention_weights=True)  # type: ignore[operator]
            said = self.classes_[self.module_(rows, edges).argmax(-1).numpy()]
        mean, answers = weights.mean(1).numpy(), []
        source, target = every.numpy()
        for n in range(skipped, len(rows)):
            into = np.flatnonzero(target == n)
            into = into[np.argsort(-mean[into], kind="stable")]
            answers.append(Answer(f"node {n - skipped}", str(said[n]), [(_named(int(source[e]), n, skipped), float(mean[e])) for e in into]))
        return Explanation("GATClassifier", answers, top)

    def _logits(self, X: Any, *arguments: Any) -> torch.Tensor:
        rows, edges, skipped = self._graph(X, *arguments)
        made: torch.Tensor = self.module_(rows, edges)
        return made[skipped:]

    def _graph(self, X: Any, edge_index: Any = None) -> Tuple[torch.Tensor, torch.Tensor, int]:
        """Rows and edges to compute on, and how many of the rows before those asked for are training data."""
        checked: Any = validate_data(self, X, dtype=np.float64, reset=False)
        rows = self._scaled(checked)
        if edge_index is not None:
            return rows, _checked(edge_index, len(rows)), 0
        if self.X_fit_ is None:
            raise ValueError("edge_index: none, expected [2, edges]: the model was fitted on a graph")
        known = self._scaled(self.X_fit_)
        count = len(known)
        into = self._neighbours(known, rows)
        into[1] += count
        return torch.cat([known, rows]), torch.cat([self._neighbours(known, known), into], 1), count

    def _neighbours(self, known: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Edges into each row from its nearest known ones."""
        count = min(self.n_neighbors, len(known))
        found = NearestNeighbors(n_neighbors=count).fit(known.numpy()).kneighbors(rows.numpy(), return_distance=False)
        target = np.repeat(np.arange(len(rows)), count)
        return torch.from_numpy(np.stack([found.reshape(-1), target]))


def _checked(edge_index: Any, nodes: int) -> torch.Tensor:
    if issparse(edge_index):
        if edge_index.shape != (nodes, nodes):
            raise ValueError(f"edge_index: a sparse matrix {list(edge_index.shape)}, expected [{nodes}, {nodes}] (nodes)")
        edge_index = np.stack(edge_index.tocoo().coords[::-1])
    given = np.asarray(edge_index.detach().cpu() if isinstance(edge_index, torch.Tensor) else edge_index)
    if given.ndim != 2 or given.shape[0] != 2 or (given.size and given.dtype.kind not in "iu"):
        raise ValueError(f"edge_index: shape {list(given.shape)} of {given.dtype}, expected whole numbers [2, edges]")
    edges = torch.from_numpy(np.array(given, dtype=np.int64))
    if edges.numel() and (int(edges.min()) < 0 or int(edges.max()) >= nodes):
        raise ValueError(f"edge_index: from {int(edges.min())} to {int(edges.max())}, expected 0 to {nodes - 1}")
    return edges


def _named(source: int, target: int, skipped: int) -> str:
    if source == target:
        return "itself"
    return f"training row {source}" if source < skipped else f"node {source - skipped}"
