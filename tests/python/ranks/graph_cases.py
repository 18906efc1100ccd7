"""One rank of a test of test_graph_part.py: two layers of a GAT on its part of a graph, compared with the whole. Prints the largest differences."""

import json
import sys

import torch
import torch.distributed as dist

import fovea
import fovea.distributed as fd


def some_graph(nodes):
    """Communities whose nodes are shuffled; some nodes see nobody."""
    draw = torch.Generator().manual_seed(3)
    place = torch.randperm(nodes, generator=draw)
    source = torch.randint(0, nodes, (6 * nodes,), generator=draw)
    near = torch.randint(-20, 21, (6 * nodes,), generator=draw)
    target = (source + near).remainder(nodes)
    keep = target % 17 > 0
    return fovea.Graph.from_edge_index(torch.stack([place[source[keep]], place[target[keep]]]), nodes)


def layers(dtype):
    torch.manual_seed(0)
    return torch.nn.ModuleList([fovea.nn.GATConv(8, 4, heads=2), fovea.nn.GATv2Conv(8, 3, heads=1)]).to(dtype)


def compared(graph, method, dtype):
    nodes = graph.row_offsets.numel() - 1
    torch.manual_seed(1)
    x, weight = torch.randn(nodes, 8, dtype=dtype, requires_grad=True), torch.randn(nodes, 3, dtype=dtype)
    whole = layers(dtype)
    expected = whole[1](whole[0](x, graph).relu(), graph)
    (expected * weight).sum().backward()

    part = fd.GraphPart.of(graph, fd.partition(graph, dist.get_world_size(), method))
    own = layers(dtype)
    rows = x.detach()[part.nodes].requires_grad_()
    middle = own[0]((part.halo(rows), rows), part.graph).relu()
    found = own[1]((part.halo(middle), middle), part.graph)
    (found * weight[part.nodes]).sum().backward()
    pairs = [(found, expected[part.nodes]), (rows.grad, x.grad[part.nodes])]
    for a, b in zip(own.parameters(), whole.parameters()):
        dist.all_reduce(a.grad)
        pairs.append((a.grad, b.grad))
    return max(((a - b).abs().max() / (1 + b.abs().max())).item() for a, b in pairs)


def main():
    dist.init_process_group("gloo")
    graph = some_graph(600)
    found = {f"{method}, {dtype}": compared(graph, method, dtype) for method in ("contiguous", "edge_cut") for dtype in (torch.float32, torch.float64)}
    print(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
