"""What the wheel requires: the minor version of torch that it is built for, as libtorch keeps its binary interface within one only.

scikit-build-core calls `dynamic_metadata` (pyproject.toml names this file). Without it `pip install fovea-….whl` would take the newest torch.
"""

import importlib.metadata
import os
import re
from pathlib import Path


def torch_version():
    """Of LIBTORCH_DIR, as cmake/FindLibtorch.cmake takes it, else of the Python that builds."""
    folder = os.environ.get("LIBTORCH_DIR")
    if not folder:
        return importlib.metadata.version("torch")
    for header in ("torch/headeronly/version.h", "torch/csrc/api/include/torch/version.h"):
        path = Path(folder) / "include" / header
        found = re.findall(r"define TORCH_VERSION_(?:MAJOR|MINOR) ([0-9]+)", path.read_text()) if path.exists() else []
        if found:
            return ".".join(found)
    raise RuntimeError(f"LIBTORCH_DIR: {folder}, expected a libtorch with its headers")


def dynamic_metadata(field, settings, project):
    if field != "dependencies" or settings:
        raise RuntimeError(f"{field} with settings {settings}, expected dependencies without any")
    return [f"torch=={'.'.join(torch_version().split('.')[:2])}.*"]
