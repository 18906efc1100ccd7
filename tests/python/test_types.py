"""What a type checker sees of the package: a user's file passes mypy --strict and pyright, and the stub says what the functions take."""

import ast
import inspect
import json
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fovea
import fovea._attend

HERE = Path(__file__).parent
PACKAGE = Path(fovea.__file__).parent


def test_a_users_file_and_the_package_pass_mypy_strict(tmp_path):
    pytest.importorskip("mypy")
    outcome = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, "-p", "fovea", "-m", "typed_user"],
        env={"MYPYPATH": f"{HERE}:{PACKAGE.parent}", "PATH": ""}, text=True, capture_output=True,
    )  # fmt: skip
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_a_users_file_and_the_package_pass_pyright(tmp_path):
    pytest.importorskip("pyright")
    (tmp_path / "fovea").symlink_to(PACKAGE)  # it takes no files from elsewhere
    (tmp_path / "typed_user.py").symlink_to(HERE / "typed_user.py")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"include": ["fovea", "typed_user.py"], "pythonVersion": "3.10"}))
    outcome = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable], text=True, capture_output=True, cwd=tmp_path
    )
    said = json.loads(outcome.stdout)
    assert said["summary"]["filesAnalyzed"] > len(list(PACKAGE.rglob("*.py")))  # and the user's file
    assert not said["generalDiagnostics"], outcome.stdout


def test_the_stub_names_the_parameters_that_are_there():
    declared = {}
    for node in ast.parse((PACKAGE / "_attend.pyi").read_text()).body:
        if isinstance(node, ast.FunctionDef):
            names = {a.arg for a in (*node.args.args, *node.args.kwonlyargs)}
            declared.setdefault(node.name, []).append(names)
    assert sorted(name for name in declared if not name.startswith("_")) == ["attend", "explain_dispatch", "weights"]
    for name, signatures in declared.items():
        real = set(inspect.signature(getattr(fovea._attend, name)).parameters) - {"unknown"}  # taken only to be refused by name
        assert all(names == real for names in signatures), name


def test_everything_public_has_a_docstring_and_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()
    for name in (name for name in vars(fovea) if not name.startswith("_")):
        assert inspect.getdoc(getattr(fovea, name)), name


def test_help_of_the_package_is_a_page_with_every_name():
    shown = pydoc.plain(pydoc.render_doc(fovea))
    assert len(shown.splitlines()) < 100, "help(fovea) prints the help of its classes"
    described = inspect.getdoc(fovea)
    for name in vars(fovea):
        assert name.startswith("_") or re.search(rf"\b{name}\b", described), name
    for name in ("fovea.nn", "fovea.hf.register()", "fovea.sklearn"):
        assert name in described
    assert set(dir(fovea.Window())) - set(dir(object())) >= {"left", "right"}
    assert not [name for name in dir(fovea.Window()) if not name.startswith("_") and name not in ("left", "right")]


@pytest.mark.parametrize("name", ["nn", "sklearn"])
def test_help_of_a_part_is_a_page_with_every_name(name):
    if name == "sklearn":
        pytest.importorskip("sklearn")
    part = getattr(fovea, name)
    assert len(pydoc.plain(pydoc.render_doc(part)).splitlines()) < 50
    for public in (name for name, found in vars(part).items() if callable(found) and not name.startswith("_")):
        assert re.search(rf"^ .*\b{public}\b", part.__doc__, re.M), public


def test_help_of_attend_has_its_arguments_and_an_example():
    shown = pydoc.plain(pydoc.render_doc(fovea.attend))
    for name in set(inspect.signature(fovea.attend).parameters) - {"unknown"}:
        assert re.search(rf"^ +{name}: ", shown, re.M), name
    assert ">>> out = fovea.attend(query, key, value)" in shown
