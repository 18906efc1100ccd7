"""Estimators for scikit-learn on Fovea's operators: ``fit``, ``predict``, ``predict_proba``, and ``explain``, which draws itself in a notebook."""

from ._bags import MILClassifier
from ._graph import GATClassifier
from ._kernel import KernelClassifier, NadarayaWatsonRegressor

__all__ = ["GATClassifier", "KernelClassifier", "MILClassifier", "NadarayaWatsonRegressor"]
