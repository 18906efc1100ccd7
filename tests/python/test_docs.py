"""The Python in the documentation runs: that of the pages, and the example of every public name."""

import importlib
import os
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import fovea

PAGES = [Path(__file__).parents[2] / "docs" / name for name in ("attend.md", "python.md")]
BLOCKS = [
    pytest.param(page, block, id=f"{page.name}, block {n}")
    for page in PAGES
    for n, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.S))
]


@pytest.mark.parametrize(("page", "block"), BLOCKS)
def test_block(page, block):
    if "# needs the command\n" in block and not os.environ.get("FOVEA_COMMAND"):
        pytest.skip("FOVEA_COMMAND: not set; run through ctest")
    for package in re.findall(r"^# needs (\w+)$", block, re.M):
        pytest.importorskip(package)
    exec(compile(block, page.name, "exec"), {})


def test_there_are_blocks():
    assert all(len([b for b in BLOCKS if b.values[0] == page]) >= 1 for page in PAGES)


NEEDS = {"fovea.sklearn": "sklearn", "fovea.hf": "transformers"}
NAMES = [f"fovea.{name}" for name in vars(fovea) if not name.startswith("_") and name not in ("hf", "nn", "sklearn")]
NAMES += [f"fovea.nn.{name}" for name, found in vars(fovea.nn).items() if callable(found) and not name.startswith("_")] + ["fovea.hf.register"]
NAMES += [f"fovea.sklearn.{name}" for name in ("GATClassifier", "KernelClassifier", "MILClassifier", "NadarayaWatsonRegressor")]


@pytest.mark.parametrize("name", NAMES)
def test_the_example_in_the_help_runs(name, monkeypatch):
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", torch.nn.functional.scaled_dot_product_attention)
    module, _, last = name.rpartition(".")
    if module in NEEDS:
        pytest.importorskip(NEEDS[module])
    lines = re.findall(r"^ *(?:>>>|\.\.\.) (.*)$", getattr(importlib.import_module(module), last).__doc__, re.M)
    assert lines
    if "fovea.train(" in "".join(lines) and not os.environ.get("FOVEA_COMMAND"):
        pytest.skip("FOVEA_COMMAND: not set; run through ctest")
    others = {name: importlib.import_module(NEEDS[module]) for name in NEEDS.values() if NEEDS.get(module) == name}
    exec("\n".join(lines), {"torch": torch, "fovea": fovea, "np": np, **others})


def test_every_estimator_is_among_them():
    sklearn = pytest.importorskip("sklearn") and importlib.import_module("fovea.sklearn")
    assert {f"fovea.sklearn.{name}" for name in vars(sklearn) if name[0].isupper()} == {name for name in NAMES if name.startswith("fovea.sklearn.")}
