"""The figures of docs/scaling.md are those of bench/scaling.py, and its model does what a cost model must."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
spec = importlib.util.spec_from_file_location("scaling", ROOT / "bench/scaling.py")
scaling = importlib.util.module_from_spec(spec)
sys.modules["scaling"] = scaling
spec.loader.exec_module(scaling)


def test_the_page_has_the_script_s_tables():
    page = (ROOT / "docs/scaling.md").read_text()
    printed = subprocess.run([sys.executable, ROOT / "bench/scaling.py"], capture_output=True, text=True, check=True).stdout
    assert printed.strip() in page


@pytest.mark.parametrize("work", scaling.WORK.values(), ids=scaling.WORK)
def test_faster_links_and_fewer_ranks_are_more_efficient(work):
    slow, fast = scaling.MACHINES[:2]
    for n, more in zip(scaling.RANKS, scaling.RANKS[1:]):
        assert 0 < scaling.efficiency(work, slow, n) <= scaling.efficiency(work, fast, n) <= 1
        assert scaling.efficiency(work, fast, more) <= scaling.efficiency(work, fast, n)


def test_bytes_by_hand():
    """A machine without latency and with endless speed: only bytes count."""
    machine = scaling.Machine("", 1e30, 0, 1.0, 1e30)
    assert scaling.Data(1, 10).seconds(machine, 4) == pytest.approx(2 * 3 / 4 * 4 * 10)
    assert scaling.Sequence(1000, 2, 8).seconds(machine, 4) == pytest.approx(3 * 6 * 4 * 2 * 8 * 250)
    assert scaling.Graph(1000, 5, 8, 2, halo=0.1).seconds(machine, 4) == pytest.approx(2 * 4 * 4 * 8 * 25)
