"""The problems are small: one thread, so that a busy machine does not spend its time waiting for a second.

`FOVEA_TEST_DEVICE=cuda python3 -m pytest tests/python/layers` makes every tensor of the tests on a GPU.
"""

import os

import pytest
import torch

DEVICE = os.environ.get("FOVEA_TEST_DEVICE")
if DEVICE:
    torch.set_default_device(DEVICE)

    class Generator(torch.Generator):
        """Of the device that is asked for: a generator knows no default."""

        def __new__(cls, device=DEVICE):
            return super().__new__(cls, device)

    torch.Generator = Generator


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
