"""Loads libfovea.so, which registers the operators torch.ops.fovea.*."""

import os
from pathlib import Path

import torch


def load() -> Path:
    """The library beside this file, or the one FOVEA_LIBRARY names (a build tree's)."""
    path = Path(os.environ.get("FOVEA_LIBRARY") or Path(__file__).parent / "libfovea.so")
    if not path.exists():
        raise ImportError(f"{path}: not there; run `pip install . --no-build-isolation`, or set FOVEA_LIBRARY to a built libfovea.so")
    try:
        torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]
    except OSError as error:
        raise ImportError(f"{path}: does not load with torch {torch.__version__}; install fovea again with this torch ({error})") from error
    return path
