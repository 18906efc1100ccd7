"""Estimators for scikit-learn: ``fit``, ``predict``, ``predict_proba``, and ``explain``, which draws itself in a notebook.

    NadarayaWatsonRegressor    means of the training rows, weighted by a kernel
    KernelClassifier           the same of classes
    MILClassifier              classes of bags, by gated attention
    GATClassifier              classes of a graph's nodes, or of rows joined to their nearest ones

``help(fovea.sklearn.MILClassifier)`` and the like have the arguments and an example that runs.
"""

# As in fovea/__init__.py, names are imported as themselves.

# mypy: disable-error-code="import-untyped,import-not-found"
import os as _os

import torch as _torch

try:
    from sklearn.utils.validation import validate_data as _  # noqa: F401
except ImportError as error:
    raise ImportError(f"fovea.sklearn: needs scikit-learn, version 1.6 or newer ({error})") from error

from ._bags import MILClassifier as MILClassifier
from ._graph import GATClassifier as GATClassifier
from ._kernel import KernelClassifier as KernelClassifier, NadarayaWatsonRegressor as NadarayaWatsonRegressor

# joblib's "multiprocessing" fits in forks. libtorch's threads do not come along, and it would wait for them without end.
_os.register_at_fork(after_in_child=lambda: _torch.set_num_threads(1))
