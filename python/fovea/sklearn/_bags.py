"""Multiple-instance learning (Ilse et al. 2018): a bag of rows has one label, and the weights say which rows made it."""

# mypy: disable-error-code="import-untyped,import-not-found"
from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, check_consistent_length, check_is_fitted, column_or_1d, validate_data

from .. import _check
from .._picture import Answer, Explanation
from ..nn import MultipleInstance
from ._learned import LearnedClassifier, classes_of


class _Network(torch.nn.Module):
    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.embed = torch.nn.Sequential(torch.nn.Linear(features, hidden), torch.nn.ReLU())
        self.pool = MultipleInstance(hidden, hidden)
        self.answer = torch.nn.Linear(hidden, classes)

    def forward(self, instances: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.answer(self.pool(self.embed(instances), offsets))
        return made


class MILClassifier(LearnedClassifier):
    """A classifier of bags by gated attention (Ilse et al. 2018).

    Args:
        hidden: width of the layers.
        epochs, learning_rate, weight_decay: of Adam on all bags at once.
        random_state: of the weights at the beginning.
        class_weight: what an error at each class counts: a dictionary, or ``"balanced"`` for classes that are rare.

    ``X`` is a list of bags, each ``[instances, features]`` (a bag may be empty), an array ``[bags, instances, features]``, or a table, whose
    rows are then bags of one.

    Example::

        >>> random = np.random.default_rng(0)
        >>> bags = [random.normal(size=(random.integers(2, 9), 3)) for _ in range(40)]
        >>> y = [int(bag[:, 0].max() > 1) for bag in bags]
        >>> model = fovea.sklearn.MILClassifier(epochs=20, random_state=0).fit(bags, y)
        >>> model.explain(bags[:2])
    """

    n_features_in_: int

    def __init__(
        self, hidden: int = 32, epochs: int = 100, learning_rate: float = 0.01, weight_decay: float = 1e-4, random_state: Any = None,
        class_weight: Any = None,
    ) -> None:  # fmt: skip
        self.hidden = hidden
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.random_state = random_state
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any) -> "MILClassifier":
        """Learns from bags and their labels."""
        if y is None:
            raise ValueError("MILClassifier requires y to be passed, but the target y is None.")
        instances, offsets = self._packed(X, reset=True)
        y = column_or_1d(y, warn=True)
        check_consistent_length(offsets[1:], y)
        check_classification_targets(y)
        self.classes_, codes = classes_of(y)
        self._measure(instances)
        rows, ends, error = self._scaled(instances), torch.from_numpy(offsets), self._error(codes)
        hidden = _check.count("hidden", self.hidden)
        self._learn(
            lambda: _Network(instances.shape[1], hidden, len(self.classes_)),
            lambda module: error(module(rows, ends)),
        )
        return self

    def explain(self, X: Any, top: int = 8) -> Explanation:
        """The instances of each bag with their weights, largest first; draws itself in a notebook."""
        said = [str(x) for x in self.predict(X)]
        instances, offsets = self._packed(X, reset=False)
        with torch.no_grad():
            weights = self.module_.pool.weights(self.module_.embed(self._scaled(instances)), torch.from_numpy(offsets))[:, 0].numpy()  # type: ignore
        answers = []
        for n, (start, end) in enumerate(zip(offsets[:-1], offsets[1:])):
            own = weights[start:end]
            answers.append(Answer(f"bag {n}", said[n], [(f"instance {j}", float(own[j])) for j in np.argsort(-own, kind="stable")]))
        return Explanation("MILClassifier", answers, top)

    def _logits(self, X: Any, *arguments: Any) -> torch.Tensor:
        check_is_fitted(self)
        instances, offsets = self._packed(X, reset=False)
        made: torch.Tensor = self.module_(self._scaled(instances), torch.from_numpy(offsets))
        return made

    def _packed(self, X: Any, reset: bool) -> Tuple[np.ndarray, np.ndarray]:
        """The rows of all bags one after another, and where each bag begins."""
        given = _as_bags(X)
        if given is None:
            rows: Any = validate_data(self, X, dtype=np.float64, reset=reset)
            return rows, np.arange(len(rows) + 1)
        for n, bag in enumerate(given):
            _check_feature_names(self, bag, reset=reset and n == 0)
        bags = [_dense(n, bag) for n, bag in enumerate(given)]
        width = next(bag.shape[1] for bag in bags if bag.ndim == 2) if reset else self.n_features_in_
        bags = [bag.reshape(0, width) if bag.shape == (0,) else bag for bag in bags]  # an empty list
        for n, bag in enumerate(bags):
            if bag.ndim != 2:
                raise ValueError(f"X: bag {n} has {bag.ndim} dimensions, expected [instances, features]")
            if bag.shape[1] != width:
                raise ValueError(f"X: bag {n} has {bag.shape[1]} features, expected {width}")
            if not np.isfinite(bag).all():
                raise ValueError(f"X: bag {n} contains NaN or infinity")
        if reset:
            self.n_features_in_ = width
        offsets = np.concatenate([[0], np.cumsum([len(bag) for bag in bags])])
        rows = np.concatenate(bags)
        if reset and not len(rows):
            raise ValueError("X: no instance in any bag, expected at least one")
        return rows, offsets


def _as_bags(X: Any) -> Optional[List[Any]]:
    """Bags, if these are some: a list, an array or a series with elements of two dimensions; the others are then wrong, or empty."""
    if isinstance(X, (list, tuple)) or hasattr(X, "to_list") or (isinstance(X, np.ndarray) and (X.ndim == 3 or X.dtype == object)):
        bags = list(X)
        if any(map(_is_bag, bags)):
            return bags
    return None


def _dense(n: int, bag: Any) -> np.ndarray:
    if issparse(bag):
        raise TypeError(f"X: bag {n} is sparse, expected an array [instances, features]; its toarray() makes one")
    try:
        return np.asarray(bag, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X: bag {n}: {error}, expected numbers [instances, features]") from error


def _is_bag(x: Any) -> bool:
    return getattr(x, "ndim", 0) == 2 or (isinstance(x, (list, tuple)) and bool(x) and isinstance(x[0], (list, tuple)))
