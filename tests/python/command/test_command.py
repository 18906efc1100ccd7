"""`fovea attend` on files gives what the package gives on tensors, and says in one line what is wrong."""

import os
import subprocess

import numpy
import pytest
import torch
from cases import B, E, EV, H, L, S

import fovea

COMMAND = os.environ.get("FOVEA_COMMAND")
pytestmark = pytest.mark.skipif(not COMMAND, reason="FOVEA_COMMAND: not set; run through ctest")


@pytest.fixture
def files(tmp_path):
    generator = numpy.random.default_rng(3)
    shapes = {"q": (B, H, L, E), "k": (B, H, S, E), "v": (B, H, S, EV), "w": (E,)}
    arrays = {name: generator.standard_normal(shape).astype(numpy.float32) for name, shape in shapes.items()}
    arrays["k"] = numpy.asfortranarray(arrays["k"])
    arrays["n"] = numpy.array([3, 6])
    for name, array in arrays.items():
        numpy.save(tmp_path / f"{name}.npy", array)
    return tmp_path, {name: torch.from_numpy(numpy.ascontiguousarray(array)) for name, array in arrays.items()}


def run(folder, *options, out="o.npy"):
    command = [COMMAND, "attend", "--query", "q.npy", "--key", "k.npy", "--value", "v.npy", "--out", out, *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_applies_the_choices(files):
    folder, x = files
    outcome = run(
        folder, "--score", "additive:weight=w.npy,activation=tanh|soft_cap:cap=3", "--normaliser", "entmax:alpha=1.5",
        "--structure", "causal&window:left=2", "--key-lengths", "n.npy",
    )  # fmt: skip
    assert outcome.returncode == 0, outcome.stderr
    expected = fovea.attend(
        x["q"], x["k"], x["v"], fovea.Additive(x["w"]).soft_cap(3.0), fovea.Entmax(1.5), fovea.Causal() & fovea.Window(2, -1),
        key_lengths=x["n"],
    )  # fmt: skip
    assert torch.equal(torch.from_numpy(numpy.load(folder / "o.npy")), expected)


def test_a_step_takes_a_number_or_a_file(files):
    folder, x = files
    numpy.save(folder / "at.npy", numpy.array([2, 1]))
    for text, offset in (("2", 2), ("at.npy", torch.tensor([2, 1]))):
        outcome = run(folder, "--structure", "window:left=1,right=0", "--query-offset", text)
        assert outcome.returncode == 0, outcome.stderr
        expected = fovea.attend(x["q"], x["k"], x["v"], structure=fovea.Window(1, 0), query_offset=offset)
        assert torch.equal(torch.from_numpy(numpy.load(folder / "o.npy")), expected)


def test_check_finite_names_the_row(files):
    folder, x = files
    query = x["q"].numpy().copy()
    query[1, 0, 3, 0] = numpy.nan
    numpy.save(folder / "q.npy", query)
    assert run(folder).returncode == 0
    (folder / "o.npy").unlink()
    outcome = run(folder, "--check-finite")
    assert outcome.returncode == 1 and "batch 1, head 0, query 3" in outcome.stderr and not (folder / "o.npy").exists()


def test_a_number_is_enough_for_a_bandwidth(files):
    folder, x = files
    outcome = run(folder, "--score", "kernel:name=gaussian,bandwidth=0.7")
    assert outcome.returncode == 0, outcome.stderr
    expected = fovea.attend(x["q"], x["k"], x["v"], fovea.Kernel("gaussian", 0.7))
    assert torch.equal(torch.from_numpy(numpy.load(folder / "o.npy")), expected)


def test_writes_and_reads_safetensors(files):
    folder, x = files
    assert run(folder, out="o.safetensors").returncode == 0
    command = [COMMAND, "attend", "--query", "o.safetensors", "--key", "o.safetensors:output", "--value", "o.safetensors"]
    outcome = subprocess.run([*command, "--out", "p.npy"], cwd=folder, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
    middle = fovea.attend(x["q"], x["k"], x["v"])
    assert torch.equal(torch.from_numpy(numpy.load(folder / "p.npy")), fovea.attend(middle, middle, middle))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--score", "additve:weight=w.npy"], "--score: unknown score 'additve': did you mean 'additive'?"),
        (["--score", "additive:weigth=w.npy"], "did you mean 'weight'?"),
        (["--score", "additive:weight=missing.npy"], "missing.npy"),
        (["--score", "kernel:name=gaussian,bandwidth=nan"], "score.bandwidth"),
        (["--score", "additive:weight=3"], "score.weight"),
        (["--normaliser", "entmax:alpha=big"], "entmax.alpha: 'big', expected a number"),
        (["--structure", "causal:alignment=top_lft"], "did you mean 'top_left'?"),
        (["--structure", "causal&windw"], "did you mean 'window'?"),
        (["--key-lengths", "v.npy"], "key_lengths: Float, expected int32 or int64"),
        (["--query-offset", "1.5"], "--query-offset: '1.5', expected a whole number or a file"),
        (["--query-offset", "v.npy"], "query_offset: Float, expected int32 or int64"),
    ],
)
def test_names_what_is_wrong_in_one_line(files, options, message):
    folder, _ = files
    outcome = run(folder, *options)
    assert outcome.returncode in (1, 2) and message in outcome.stderr, outcome.stderr
    assert outcome.stderr.count("\n") == 1 and not (folder / "o.npy").exists()


def test_refuses_damaged_files(files):
    folder, _ = files
    good = (folder / "q.npy").read_bytes()
    for bad in (b"", good[:50], good[:-1], good + b"x", b"PK\x03\x04" + good):
        (folder / "q.npy").write_bytes(bad)
        outcome = run(folder)
        assert outcome.returncode == 1 and "q.npy" in outcome.stderr, outcome.stderr
        assert outcome.stderr.count("\n") == 1


def test_prints_json_and_the_count_of_empty_rows(files):
    folder, _ = files
    numpy.save(folder / "n.npy", numpy.array([0, 6]))
    outcome = run(folder, "--key-lengths", "n.npy", "--json")
    assert outcome.stdout == f'{{"out":"o.npy","shape":[{B},{H},{L},{EV}],"empty_rows":{H * L}}}\n'
