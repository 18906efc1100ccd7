"""A run of every system from Python: loaded, asked, explained; one of each kind, and all others in `make slow`."""

import os
import sys
from pathlib import Path

import pytest

import fovea

if not os.environ.get("FOVEA_COMMAND"):
    pytest.skip("FOVEA_COMMAND: not set; run through ctest", allow_module_level=True)

SOURCE = Path(__file__).parents[3]
os.environ["FOVEA_SOURCE_DIR"] = str(SOURCE)
sys.path += [str(SOURCE / "tests/faults"), str(SOURCE / "tests/cli")]
from answers_test import INPUTS, SENTENCES, picture  # noqa: E402
from small_runs import WITHOUT_EPOCHS, every, write  # noqa: E402

#: Two items for each; answers_test has no more than it needs.
ITEMS = {
    **INPUTS,
    "general": "1 0 0 0 0 0 0 0\n0 1 0 0 0 0 0 1\n",
    "squeeze-excitation": "set\nset\n",  # a picture for each of two channels
    "image-to-set": "picture.png\nset/one.png\n",
    "inverse-cooking": "picture.png\nset/one.png\n",
    "structured-attention": SENTENCES,
    "bert": "anna is a baker .\tshe works in the [MASK] .\nshe works in the [MASK] .\n",
    "relative-positions": "a b c d\nd c b a\n",
    "sparse-patterns": "0000000 0111110\n0001000\n",
    "sparse-normalisers": "1 0.5 -1\n0 0\n",
}
#: A classifier, a translator, a graph, pictures, a language model; test_runs.py has a table and bags.
ONE_OF_A_KIND = {"word-sum", "bahdanau", "gat", "show-attend-tell", "next-word"}
OF_THEMSELVES = {"general", "gradient-masking", "cost"}  # draw what they hold or measured, and no items
SMALL = {small.system: small for small in every(os.environ["FOVEA_COMMAND"])}


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in ONE_OF_A_KIND else pytest.mark.slow) for name in SMALL])
def test_a_run_answers_and_explains(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "set").mkdir()
    for path in ("set/one.png", "set/two.png", "picture.png"):
        picture(tmp_path / path)
    small = SMALL[name]
    settings = dict(small.settings)
    if small.size:
        settings[small.size] = 60
    epochs = None if name in WITHOUT_EPOCHS else 1
    data = write(small.data, tmp_path / "data", 60) if small.data else None
    trained = fovea.train(name, data, tmp_path / "run", epochs=epochs, threads=1, **settings)
    assert all(isinstance(value, (int, float)) for value in trained.metrics.values())
    run = fovea.load(tmp_path / "run")
    assert run.config["system"] == name

    items = ITEMS[name].splitlines()
    answers = run.predict(items)
    assert len(answers) >= 2 and (all(answers) or name == "dnc")  # which after one epoch says nothing
    if name in OF_THEMSELVES:
        with pytest.raises(ValueError, match=f"--input: {name} .*draws"):
            run.explain(items)
    report = run.explain(None if name in OF_THEMSELVES else items)
    assert report.html.lstrip().lower().startswith("<!doctype html>") and "<iframe" in report._repr_html_()
