"""Kernel regression and classification (Nadaraya 1964, Watson 1964) as estimators: nothing is learned but the bandwidth."""

# mypy: disable-error-code="import-untyped,import-not-found"
from __future__ import annotations

import numbers
from typing import Any, Union

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import _check
from .._attend import attend, weights
from .._normalisers import KernelRatio, Normaliser, Softmax, Unnormalised
from .._picture import Answer, Explanation
from .._scores import Kernel
from ._learned import weights_of

#: Kernels that are nowhere zero: their weights are a softmax of logarithms, which far from all data is still the nearest row's.
_UNBOUNDED = ("gaussian", "laplace", "logistic", "sigmoid", "cauchy")


def _four(x: Any) -> torch.Tensor:
    return torch.from_numpy(np.array(x, dtype=np.float64, order="C"))[None, None]


class _KernelEstimator(BaseEstimator):  # type: ignore[misc]
    """What both share: rows kept, a bandwidth chosen, weights over the rows."""

    def __init__(self, kernel: str = "gaussian", bandwidth: Union[float, str] = "auto") -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth

    def _fit(self, X: np.ndarray, targets: np.ndarray) -> None:
        self.X_fit_, self.targets_ = np.asarray(X, dtype=np.float64), targets
        if isinstance(self.bandwidth, str) and self.bandwidth == "auto":
            self.bandwidth_ = _leave_one_out(self.kernel, _four(self.X_fit_), _four(targets))
        else:
            if not isinstance(self.bandwidth, numbers.Real):
                raise ValueError(f"bandwidth: {_check.said(self.bandwidth)}, expected a positive number or 'auto'")
            self.bandwidth_ = float(self.bandwidth)
        Kernel(self.kernel, self.bandwidth_)  # type: ignore[arg-type]  # which checks them

    def _score(self) -> Kernel:
        return Kernel(self.kernel, self.bandwidth_)  # type: ignore[arg-type]

    def _normaliser(self) -> Normaliser:
        return Softmax() if self.kernel in _UNBOUNDED else KernelRatio()

    def _predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        rows = _four(validate_data(self, X, reset=False))
        with torch.no_grad():
            keys = _four(self.X_fit_)
            out = attend(rows, keys, _four(self.targets_), self._score(), self._normaliser())
            assert isinstance(out, torch.Tensor)
            found = out[0, 0]
            if self.kernel not in _UNBOUNDED:  # beyond the reach of every row: the mean of all
                reached = attend(rows, keys, keys.new_ones(1, 1, keys.shape[2], 1), self._score(), Unnormalised())
                assert isinstance(reached, torch.Tensor)
                found = torch.where(reached[0, 0] != 0, found, torch.from_numpy(self.targets_.mean(0)))
        made: np.ndarray = found.numpy()
        return made

    def explain(self, X: Any, top: int = 8) -> Explanation:
        """The rows of the training data that each answer is a mean of, with their weights; draws itself in a notebook."""
        said = [f"{x:.4g}" if isinstance(x, (float, np.floating)) else str(x) for x in self.predict(X)]
        rows = validate_data(self, X, reset=False)
        count = min(_check.count("top", top), self.X_fit_.shape[0])
        with torch.no_grad():
            largest, where = weights(_four(rows), _four(self.X_fit_), self._score(), self._normaliser(), top_k=count)
        answers = [
            Answer(f"row {n}", said[n], [(self._named(j), w) for w, j in zip(largest[0, 0, n].tolist(), where[0, 0, n].tolist()) if j >= 0])
            for n in range(len(rows))
        ]
        return Explanation(f"{type(self).__name__}, bandwidth {self.bandwidth_:.4g}", answers, top)

    def predict(self, X: Any) -> np.ndarray:
        """An answer for each row."""
        raise NotImplementedError

    def _named(self, row: int) -> str:
        raise NotImplementedError


def _leave_one_out(kernel: str, keys: torch.Tensor, targets: torch.Tensor) -> float:
    """The bandwidth at which each row is best told by the others: of twenty, around the median distance."""
    count = keys.shape[2]
    if count < 2:
        return 1.0
    some = keys[0, 0, :: max(1, count // 256)]
    distances = torch.pdist(some)
    middle = float(distances[distances > 0].median()) if (distances > 0).any() else 1.0
    values = torch.cat([targets, torch.ones_like(targets[..., :1])], -1)
    alone = attend(keys[:, :, :1], keys[:, :, :1], values[:, :, :1, -1:], Kernel(kernel), Unnormalised())  # type: ignore[arg-type]
    assert isinstance(alone, torch.Tensor)
    own = float(alone)  # K(0), the weight of a row at itself
    best, chosen = float("inf"), middle
    for bandwidth in (middle * np.geomspace(0.02, 2.0, 20)).tolist():
        sums = attend(keys, keys, values, Kernel(kernel, bandwidth), Unnormalised())  # type: ignore[arg-type]
        assert isinstance(sums, torch.Tensor)
        others = sums - own * values
        total = others[..., -1:]
        told = torch.where(total.abs() > 1e-12, others[..., :-1] / total, targets.mean(2, keepdim=True))
        error = float((told - targets).square().mean())
        if error < best:
            best, chosen = error, bandwidth
    return chosen


class NadarayaWatsonRegressor(RegressorMixin, _KernelEstimator):  # type: ignore[misc]
    """Kernel regression: an answer is the mean of the training targets, weighted by a kernel of the distance.

    Args:
        kernel: one of :class:`fovea.Kernel`'s names.
        bandwidth: a number, or ``"auto"``: the one of twenty at which each row is best told by the others.

    Features of different scales want a ``StandardScaler`` before it. Beyond the reach of a bounded kernel an answer is the mean of all.

    Example::

        >>> X = np.linspace(0, 6, 80)[:, None]
        >>> model = fovea.sklearn.NadarayaWatsonRegressor().fit(X, np.sin(X[:, 0]))
        >>> model.predict([[1.5]])
        >>> model.explain([[1.5]])
    """

    def fit(self, X: Any, y: Any) -> "NadarayaWatsonRegressor":
        """Keeps the rows, and chooses the bandwidth. ``y`` is ``[n]`` or ``[n, outputs]``."""
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True)
        self.flat_ = np.ndim(y) == 1
        self._fit(X, np.asarray(y, dtype=np.float64).reshape(len(X), -1))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The weighted means."""
        found = self._predict(X)
        return found[:, 0] if self.flat_ else found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _named(self, row: int) -> str:
        values = ", ".join(f"{x:.4g}" for x in self.targets_[row])
        return f"training row {row} = {values}"


class KernelClassifier(ClassifierMixin, _KernelEstimator):  # type: ignore[misc]
    """Classification by kernel regression on the classes: a probability is the share of weight that a class's rows have.

    Args:
        kernel, bandwidth: as for :class:`NadarayaWatsonRegressor`.
        class_weight: what a row of each class counts: a dictionary, or ``"balanced"`` for classes that are rare.

    Example::

        >>> X, y = np.random.default_rng(0).normal(size=(60, 2)), np.repeat(["a", "b", "c"], 20)
        >>> model = fovea.sklearn.KernelClassifier(bandwidth=0.5).fit(X, y)
        >>> model.predict_proba(X[:3])
    """

    classes_: np.ndarray

    def __init__(self, kernel: str = "gaussian", bandwidth: Union[float, str] = "auto", class_weight: Any = None) -> None:
        super().__init__(kernel, bandwidth)
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any) -> "KernelClassifier":
        """Keeps the rows with their classes, and chooses the bandwidth."""
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.codes_ = codes
        self._fit(X, np.diag(weights_of(self.class_weight, self.classes_, codes))[codes])
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """``[n, classes]``."""
        found = np.clip(self._predict(X), 0.0, None)  # a kernel may be negative
        total: np.ndarray = found.sum(1, keepdims=True)
        near = total > 0  # or all rows that count have the weight 0
        made: np.ndarray = np.where(near, found, self.targets_.mean(0)) / np.where(near, total, self.targets_.mean(0).sum())
        return made

    def predict(self, X: Any) -> np.ndarray:
        """The class of the largest probability."""
        probabilities = self.predict_proba(X)
        found: np.ndarray = self.classes_[probabilities.argmax(1)]
        return found

    def _named(self, row: int) -> str:
        return f"training row {row}: {self.classes_[self.codes_[row]]}"
