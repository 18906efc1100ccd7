"""What the estimators that learn share: data brought to one scale, and a descent on all of it at once."""

# mypy: disable-error-code="import-untyped,import-not-found"
from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from .. import _check


class LearnedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that is a module; ``_logits`` says how it answers."""

    classes_: np.ndarray
    module_: torch.nn.Module
    random_state: Any
    learning_rate: float
    weight_decay: float
    epochs: int
    class_weight: Any

    def predict_proba(self, X: Any) -> np.ndarray:
        """``[n, classes]``."""
        return self._probabilities(X)

    def predict(self, X: Any) -> np.ndarray:
        """The class of the largest probability."""
        return self._likeliest(X)

    def _likeliest(self, X: Any, *arguments: Any) -> np.ndarray:
        largest = self._probabilities(X, *arguments).argmax(1)  # which checks that there are classes
        found: np.ndarray = self.classes_[largest]
        return found

    def _probabilities(self, X: Any, *arguments: Any) -> np.ndarray:
        check_is_fitted(self)
        with torch.no_grad():
            made: np.ndarray = self._logits(X, *arguments).softmax(-1).numpy()
        return made

    def _logits(self, X: Any, *arguments: Any) -> torch.Tensor:
        raise NotImplementedError

    def _scaled(self, rows: np.ndarray) -> torch.Tensor:
        """Rows with the training data's mean 0 and deviation 1."""
        return torch.from_numpy(np.ascontiguousarray((rows - self.mean_) / self.deviation_)).double()

    def _error(self, codes: np.ndarray) -> Callable[[torch.Tensor], torch.Tensor]:
        """The cross-entropy of logits to the classes, by the weights of the classes."""
        wanted, weights = torch.from_numpy(codes), torch.from_numpy(weights_of(self.class_weight, self.classes_, codes))
        return lambda logits: torch.nn.functional.cross_entropy(logits, wanted, weights)

    def _measure(self, rows: np.ndarray) -> None:
        self.mean_ = rows.mean(0)
        deviation = rows.std(0)
        self.deviation_ = np.where(deviation > 0, deviation, 1.0)

    def _learn(self, make: Callable[[], torch.nn.Module], loss: Callable[[torch.nn.Module], torch.Tensor]) -> None:
        """Makes the module and fits it, by Adam on all data; the random state decides all that is drawn."""
        epochs = _check.count("epochs", self.epochs)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        with torch.random.fork_rng(devices=[]), torch.enable_grad(), torch.device("cpu"):  # where numpy's arrays are, whatever torch's default is
            torch.manual_seed(seed)
            module = make().double().train()
            optimiser = torch.optim.Adam(module.parameters(), self.learning_rate, weight_decay=self.weight_decay)
            for _ in range(epochs):
                optimiser.zero_grad()
                loss(module).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
        self.module_ = module.eval()


def weights_of(class_weight: Any, classes: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The weight of each class: a dictionary's, ``"balanced"`` (a class counts as much as any other), or None for 1."""
    found: np.ndarray = compute_class_weight(class_weight, classes=classes, y=classes[codes[codes >= 0]])
    return found


def classes_of(y: Any, unlabelled: Optional[Any] = None) -> Tuple[np.ndarray, np.ndarray]:
    """The classes, and which of them each label is; -1 where there is none."""
    labelled = np.ones(len(y), dtype=bool) if unlabelled is None else np.asarray(y) != unlabelled
    classes, found = np.unique(np.asarray(y)[labelled], return_inverse=True)
    codes = np.full(len(y), -1)
    codes[labelled] = found
    return classes, codes
