"""Estimators for scikit-learn on Fovea's operators: ``fit``, ``predict``, ``predict_proba``, and ``explain``, which draws itself in a notebook."""

# mypy: disable-error-code="import-untyped,import-not-found"
import os

import torch

try:
    from sklearn.utils.validation import validate_data as _  # noqa: F401
except ImportError as error:
    raise ImportError(f"fovea.sklearn: needs scikit-learn, version 1.6 or newer ({error})") from error

from ._bags import MILClassifier
from ._graph import GATClassifier
from ._kernel import KernelClassifier, NadarayaWatsonRegressor

__all__ = ["GATClassifier", "KernelClassifier", "MILClassifier", "NadarayaWatsonRegressor"]

# joblib's "multiprocessing" fits in forks. libtorch's threads do not come along, and it would wait for them without end.
os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))
