"""The Python in the documentation runs."""

import os
import re
from pathlib import Path

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


@pytest.mark.parametrize("function", [fovea.attend, fovea.scaled_dot_product_attention])
def test_the_example_in_the_help_runs(function, monkeypatch):
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", torch.nn.functional.scaled_dot_product_attention)
    lines = re.findall(r"^ *>>> (.*)$", function.__doc__, re.M)
    assert lines
    exec("\n".join(lines), {"torch": torch, "fovea": fovea})
