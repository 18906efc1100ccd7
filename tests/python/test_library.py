"""Which torch the package loads with: the one its wheel was built for, and a clear word where it is another."""

import os
import subprocess
import sys

import pytest
import torch

from fovea._library import check_torch


@pytest.mark.parametrize("note", [None, torch.__version__, ".".join(torch.__version__.split(".")[:2]) + ".99"])
def test_takes_the_torch_it_was_built_for(note, tmp_path):
    if note is not None:
        (tmp_path / "built_for_torch.txt").write_text(note + "\n")
    check_torch(tmp_path, torch.__version__)


def test_says_so_with_another(tmp_path):
    library = tmp_path / "libfovea.so"
    library.write_bytes(b"")
    (tmp_path / "built_for_torch.txt").write_text("1.13.1\n")
    said = subprocess.run([sys.executable, "-c", "import fovea"], env={**os.environ, "FOVEA_LIBRARY": str(library)}, capture_output=True, text=True)
    assert said.returncode == 1
    assert said.stderr.splitlines()[-1] == (
        f"ImportError: fovea: built for torch 1.13.1, torch {torch.__version__} is installed; "
        "build it for this torch (`pip install . --no-build-isolation` in its source), or install torch 1.13"
    )


def test_an_editable_install_has_its_library_in_another_folder(tmp_path):
    (tmp_path / "libfovea.so").symlink_to(os.environ["FOVEA_LIBRARY"])
    # What the finder of an editable install does: the package of the source, with a second folder to look in.
    program = f"""
import sys
from importlib.machinery import PathFinder

class Editable:
    def find_spec(name, path, target=None):
        spec = PathFinder.find_spec(name, path, target) if name == "fovea" else None
        if spec is not None:
            spec.submodule_search_locations = [{str(tmp_path)!r}, *spec.submodule_search_locations]
        return spec

sys.meta_path.insert(0, Editable)
import fovea
print(fovea.simd_target())
"""
    elsewhere = {name: value for name, value in os.environ.items() if name != "FOVEA_LIBRARY"}
    said = subprocess.run([sys.executable, "-c", program], env=elsewhere, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
