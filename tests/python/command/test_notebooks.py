"""The notebooks run from their first cell to their last, and are stored without outputs."""

import ast
import importlib.util
import json
import os
from pathlib import Path

import pytest
import torch

NOTEBOOKS = sorted((Path(__file__).parents[3] / "notebooks").glob("*.ipynb"))
NEEDS = {"huggingface": "transformers"}


def cells(path):
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def execute(cell, scope, name):
    """As a notebook does: the last expression is shown, by its own picture where it has one."""
    tree = ast.parse("".join(cell["source"]), name)
    shown = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), scope)
    if shown is None:
        return None
    value = eval(compile(ast.Expression(shown.value), name, "eval"), scope)
    return value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)


def test_the_notebooks_are_there():
    assert [path.stem for path in NOTEBOOKS] == ["gat", "huggingface", "mil", "tour", "translation"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_has_no_outputs(path):
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells(path))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path, monkeypatch, tmp_path):
    if path.stem in NEEDS and importlib.util.find_spec(NEEDS[path.stem]) is None:
        pytest.skip(f"{NEEDS[path.stem]}: not installed")
    if path.stem == "translation" and not os.environ.get("FOVEA_COMMAND"):
        pytest.skip("FOVEA_COMMAND: not set; run through ctest")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FOVEA_DATA", raising=False)  # generated data: the same everywhere, and quick
    state, began = torch.get_rng_state(), sum(os.times()[:4])
    scope = {"__name__": "__main__"}
    shown = [execute(cell, scope, f"{path.name}[{n}]") for n, cell in enumerate(cells(path))]
    torch.set_rng_state(state)
    assert any(shown)
    assert sum(os.times()[:4]) - began < 60  # seconds of processor, of the command's processes too: what other programs do is not counted
    if path.stem == "translation":
        assert shown[-1].startswith("<iframe")


def test_the_graph_of_fovea_data_is_read(monkeypatch, tmp_path):
    files = {"features": "0: 1 3\n1:\n2: 0\n", "labels": "1\n0\n1\n", "edges": "0 1\n1 2\n", "split_train": "0\n", "split_test": "2\n"}
    folder = tmp_path / "planetoid" / "cora"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    monkeypatch.setenv("FOVEA_DATA", str(tmp_path))
    scope = {"__name__": "__main__"}
    (path,) = (path for path in NOTEBOOKS if path.stem == "gat")
    execute(cells(path)[0], scope, "gat.ipynb[0]")
    assert scope["x"].tolist() == [[0, 0.5, 0, 0.5], [0, 0, 0, 0], [1, 0, 0, 0]]
    assert scope["edges"].tolist() == [[0, 1, 1, 2], [1, 2, 0, 1]] and scope["train"].tolist() == [0] and scope["test"].tolist() == [2]
