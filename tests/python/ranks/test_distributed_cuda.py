"""fovea.distributed on CUDA devices, through Gloo and through NCCL. `make test-cuda` runs it where there is a device.

NCCL wants a device for each rank: with one device it runs with one rank, and Gloo, through the memory of the host, with two.
"""

import loopback
import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

BOUNDS = {"torch.float64": 1e-10, "torch.float32": 1e-4, "torch.bfloat16": 4e-2}


def ways():
    most = max(1, min(4, torch.cuda.device_count()))
    return [("gloo", 2), ("gloo", 3), *(("nccl", ranks) for ranks in range(1, most + 1))]


@pytest.mark.parametrize(("backend", "ranks"), ways())
def test_every_rank_has_its_part_of_the_whole(backend, ranks):
    for found in loopback.answers("cuda_cases.py", ranks, backend):
        assert "expected the CPU with sparsemax" in found.pop("refused")
        assert len(found) == 2 * 5 * (2 * 6 + 1)
        assert not {case: error for case, error in found.items() if not error <= BOUNDS[case.split(", ")[3]]}


@pytest.mark.skipif(torch.cuda.device_count() != 1, reason="more than one device")
def test_two_ranks_of_nccl_on_one_device_are_refused_by_it():
    with pytest.raises(AssertionError):
        list(loopback.answers("cuda_cases.py", 2, "nccl"))
