"""bench/peers/cuda_peers.py, small and on the processor: every row runs, ours and its peer compute the same, and the table holds each."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "bench" / "peers" / "cuda_peers.py"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    file = tmp_path_factory.mktemp("peers") / "rows.json"
    said = subprocess.run([sys.executable, SCRIPT, "--try", "--json", file], text=True, capture_output=True, timeout=280)
    assert said.returncode == 0, said.stderr
    return said.stdout, json.loads(file.read_text())


def test_every_row_and_its_peer_compute_the_same(run):
    compared = [row for row in run[1] if row["apart"] is not None]
    assert len(compared) > 30
    # The top-k rows of bfloat16 scores: rounding may choose another key.
    for row, before in zip(run[1][1:], run[1]):
        if row["apart"] is not None:
            sixteen = "dot" in before["row"] or "bfloat16" in before["row"]
            bound = 0.1 if "top-k" in before["row"] and sixteen else 1e-2 if sixteen else 1e-5
            assert row["apart"] < bound, (before["row"], row)


def test_the_table_has_every_row_of_ours_and_no_verdict_of_a_trial(run):
    table = [line for line in run[0].splitlines() if line.startswith("| ")]
    ours = [row["row"] for row in run[1] if not row["row"].startswith(" ")]
    assert [line.split(" | ")[0][2:] for line in table[1:]] == ours
    assert "✓" not in run[0] and "✗" not in run[0]
    for name in ("dot 128, causal, ALiBi", "graph, rank one", "decode, soft cap", "additive", "gaussian"):
        line = next(line for line in table if line.startswith(f"| {name}"))
        assert line.split(" | ")[3].strip() and line.split(" | ")[6].strip(), line


def test_without_a_device_it_says_so():
    said = subprocess.run([sys.executable, SCRIPT, "additive"], text=True, capture_output=True, timeout=100)
    if "forward" in said.stdout:
        pytest.skip("a device is here")
    assert said.returncode == 1 and "sees no CUDA device" in said.stderr and len(said.stderr.splitlines()) == 1


def test_a_part_that_is_not_there_is_named():
    said = subprocess.run([sys.executable, SCRIPT, "--try", "points"], text=True, capture_output=True, timeout=100)
    assert said.returncode == 1 and "points: no part; there are roofs, dot" in said.stderr
