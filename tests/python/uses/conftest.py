"""A group of one process, for what is divided among several."""

import pytest
import torch
import torch.distributed


@pytest.fixture(scope="module")
def one_process(tmp_path_factory):
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("torch.distributed with gloo: not in this torch")
    place = tmp_path_factory.mktemp("group") / "store"
    torch.distributed.init_process_group("gloo", init_method=f"file://{place}", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()
