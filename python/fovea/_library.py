"""Loads libfovea.so, which registers the operators torch.ops.fovea.*."""

import os
from pathlib import Path
from typing import Sequence

import torch


def check_torch(folder: Path, installed: str) -> None:
    """Compares torch with the one that a wheel was built for; libtorch keeps its binary interface within a minor version only."""
    note = folder / "built_for_torch.txt"
    if not note.exists():  # a build tree's library
        return
    built = note.read_text(encoding="utf-8").strip()
    if built.split(".")[:2] != installed.split(".")[:2]:
        raise ImportError(
            f"fovea: built for torch {built}, torch {installed} is installed; "
            f"build it for this torch (`pip install . --no-build-isolation` in its source), or install torch {'.'.join(built.split('.')[:2])}"
        )


def load(folders: Sequence[str]) -> Path:
    """The library in one of the package's folders, or the one FOVEA_LIBRARY names (a build tree's).

    An editable install has two: the source's, and one with what was built.
    """
    beside = [Path(folder) / "libfovea.so" for folder in folders]
    path = Path(os.environ.get("FOVEA_LIBRARY") or next((path for path in beside if path.exists()), beside[-1]))
    if not path.exists():
        raise ImportError(f"{path}: not there; run `pip install . --no-build-isolation`, or set FOVEA_LIBRARY to a built libfovea.so")
    check_torch(path.parent, torch.__version__)
    try:
        torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]
    except OSError as error:
        raise ImportError(f"{path}: does not load with torch {torch.__version__}; install fovea again with this torch ({error})") from error
    return path
