"""Loads libfovea.so, which registers the operators torch.ops.fovea.*."""

import os
from pathlib import Path

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


def load() -> Path:
    """The library beside this file, or the one FOVEA_LIBRARY names (a build tree's)."""
    path = Path(os.environ.get("FOVEA_LIBRARY") or Path(__file__).parent / "libfovea.so")
    if not path.exists():
        raise ImportError(f"{path}: not there; run `pip install . --no-build-isolation`, or set FOVEA_LIBRARY to a built libfovea.so")
    check_torch(path.parent, torch.__version__)
    try:
        torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]
    except OSError as error:
        raise ImportError(f"{path}: does not load with torch {torch.__version__}; install fovea again with this torch ({error})") from error
    return path
