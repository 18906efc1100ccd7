"""Graphs divided among ranks: processes over loopback, each compared with the whole graph in one process."""

import graph_cases
import loopback
import pytest
import torch
import torch.distributed as dist

import fovea
import fovea.distributed as fd

BOUNDS = {"torch.float32": 1e-5, "torch.float64": 1e-13}


@pytest.mark.parametrize("ranks", [2, 3])
def test_every_rank_has_its_part_of_the_whole(ranks):
    for found in loopback.answers("graph_cases.py", ranks):
        assert len(found) == 4
        assert not {case: error for case, error in found.items() if not error <= BOUNDS[case.split(", ")[1]]}


@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
def test_ranks_hold_equal_numbers_and_few_edges_are_cut(ranks):
    graph = graph_cases.some_graph(3000)
    cuts = {}
    for method in ("contiguous", "edge_cut"):
        owner = fd.partition(graph, ranks, method)
        counts = torch.bincount(owner.long(), minlength=ranks)
        assert counts.sum() == 3000 and counts.max() <= -(-3000 // ranks)
        cuts[method] = fd.edge_cut(graph, owner)
    # Numbers of the nodes say nothing here, so a stretch of them cuts as many edges as chance does.
    assert cuts["contiguous"] == pytest.approx((1 - 1 / ranks) * graph.columns.numel(), rel=0.05)
    assert cuts["edge_cut"] < 0.7 * cuts["contiguous"] or ranks == 1


@pytest.fixture
def alone(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_what_is_refused(alone):
    graph = fovea.Graph(row_offsets=torch.tensor([0, 1, 2]), columns=torch.tensor([1, 0]))
    with pytest.raises(ValueError, match="method: 'metis', expected 'contiguous' or 'edge_cut'"):
        fd.partition(graph, 2, "metis")
    with pytest.raises(ValueError, match="owner: 1 to 1, expected 0 to 0, the ranks"):
        fd.GraphPart(torch.tensor([0]), torch.tensor([0, 1]), torch.tensor([1]), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="nodes: some are not this rank's"):
        fd.GraphPart(torch.tensor([1]), torch.tensor([0, 1]), torch.tensor([1]), torch.tensor([0, 1]))
    part = fd.GraphPart.of(graph, torch.tensor([0, 0]))
    with pytest.raises(ValueError, match="features: 3 rows, expected 2, this rank's nodes"):
        part.halo(torch.zeros(3, 4))


def test_a_graph_without_nodes(alone):
    part = fd.GraphPart.of(fovea.Graph(row_offsets=torch.tensor([0]), columns=torch.tensor([], dtype=torch.int64)), torch.tensor([], dtype=torch.int32))
    assert part.halo(torch.zeros(0, 4)).shape == (0, 4)
