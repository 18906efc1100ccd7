"""One rank of a test of test_distributed.py: compares its part with the whole call. Prints a JSON object of the largest differences."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

import fovea
import fovea.distributed as fd

STRUCTURES = {
    "dense": lambda ids: fovea.Dense(),
    "causal": lambda ids: fovea.Causal(),
    "window": lambda ids: fovea.Window(5, 3),
    "causal window": lambda ids: fovea.Causal() & fovea.Window(7, -1),
    "documents": lambda ids: fovea.Documents(ids, ids) & fovea.Causal(),
    "expression": lambda ids: fovea.Window(3, 0) | ~fovea.Causal(),
    "nothing": lambda ids: fovea.Causal() & ~fovea.Window(40, 0),  # some queries see no key
}
SCORES = {"dot": lambda: fovea.Dot(), "soft cap": lambda: fovea.Dot().soft_cap(5.0)}
# Each with a score it is used with; an array of the size of the heads is the sink, the slopes or the bandwidth, and has a gradient.
NORMALISERS = {
    "sink": lambda own: (fovea.Dot(), fovea.Softmax(sink=own)),
    "slopes": lambda own: (fovea.Dot().alibi(own / 16), fovea.Softmax()),
    "additive": lambda own: (fovea.Additive(own.repeat(2)), fovea.Softmax()),
    "kernel ratio": lambda own: (fovea.Kernel("gaussian", own.abs() + 1), fovea.KernelRatio()),
    "unnormalised": lambda own: (fovea.Dot(), fovea.Unnormalised()),
    "uniform": lambda own: (fovea.Dot(), fovea.Uniform()),
    "sigmoid": lambda own: (fovea.Cosine(own), fovea.Sigmoid()),
    "sparsemax": lambda own: (fovea.Dot(), fovea.Sparsemax()),
    "entmax": lambda own: (fovea.Dot(0.1), fovea.Entmax(1.3)),  # so flat that more candidates are needed than are kept at first
    "top-k": lambda own: (fovea.Dot(), fovea.TopK(5)),
    "hard": lambda own: (fovea.Dot(), fovea.Hard()),
}


def compared(structure, score, layout, dtype, rows):
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, heads, rows, 8, dtype=dtype, requires_grad=True) for heads in (4, 2, 2))
    ids = torch.arange(rows) // 11
    d_output, d_lse = torch.randn(2, 4, rows, 8, dtype=dtype), torch.randn(2, 4, rows, dtype=dtype)

    def shard(tensor, dim=2):
        return fd.shard(tensor.detach(), dim, layout=layout).clone()

    def loss(output, lse, d_output, d_lse):
        return (output * d_output).sum() + (lse.where(lse > -1e30, torch.zeros_like(lse)) * d_lse).sum()

    whole = fovea.attend(query, key, value, score, structure=structure(ids), return_lse=True)
    loss(*whole, d_output, d_lse).backward()
    parts = [shard(t).requires_grad_() for t in (query, key, value)]
    own = fd.attend(*parts, score, structure=structure(shard(ids, 0)), return_lse=True, layout=layout)
    loss(*own, shard(d_output), shard(d_lse)).backward()
    sums = [lse.detach().clamp_min(-1e3) for lse in (own[1], whole[1])]  # minus infinity where a query sees no key
    pairs = [(own[0], whole[0]), tuple(sums)] + [(a.grad, b.grad) for a, b in zip(parts, (query, key, value))]
    assert torch.equal(fd.unshard(own[0], layout=layout), fd.unshard(own[0].detach(), layout=layout))
    return max((a.detach() - shard(b)).abs().max().item() for a, b in pairs)


def normalised(choices, structure, layout, dtype, rows):
    """The same for a normaliser: output, and gradients of query, key, value and of an array, whose parts the ranks add."""
    torch.manual_seed(1)
    whole = [torch.randn(2, heads, rows, 8, dtype=dtype, requires_grad=True) for heads in (4, 2, 2)]
    array = torch.randn(4, dtype=dtype, requires_grad=True)
    ids = torch.arange(rows) // 11
    d_output = torch.randn(2, 4, rows, 8, dtype=dtype)

    def shard(tensor, dim=2):
        return fd.shard(tensor.detach(), dim, layout=layout).clone()

    expected = fovea.attend(*whole, *choices(array), structure(ids))
    (expected * d_output).sum().backward()
    parts, own_array = [shard(t).requires_grad_() for t in whole], array.detach().clone().requires_grad_()
    own = fd.attend(*parts, *choices(own_array), structure(shard(ids, 0)), layout=layout)
    (own * shard(d_output)).sum().backward()
    pairs = [(own, shard(expected))]
    for a, b in zip(parts, whole):  # a uniform mean has no gradient of query and key
        pairs.append((torch.zeros_like(a) if a.grad is None else a.grad, shard(torch.zeros_like(b) if b.grad is None else b.grad)))
    if own_array.grad is not None:
        dist.all_reduce(own_array.grad)
        pairs.append((own_array.grad, array.grad))
    # Sums that are not normalised, and those over distances, are large.
    return max(((a.detach() - b).abs().max() / (1 + b.abs().max())).item() for a, b in pairs)


def scaled(normaliser, layout, rows):
    """A scale that is a tensor: its gradient is the sum over ranks."""
    torch.manual_seed(3)
    whole = [torch.randn(2, 4, rows, 8, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    scale = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    d_output = torch.randn(2, 4, rows, 8, dtype=torch.float64)

    def shard(tensor):
        return fd.shard(tensor.detach(), layout=layout).clone()

    expected = fovea.attend(*whole, normaliser=normaliser, structure=fovea.Causal(), scale=scale)
    (expected * d_output).sum().backward()
    parts, own_scale = [shard(t).requires_grad_() for t in whole], scale.detach().clone().requires_grad_()
    own = fd.attend(*parts, normaliser=normaliser, structure=fovea.Causal(), scale=own_scale, layout=layout)
    (own * shard(d_output)).sum().backward()
    dist.all_reduce(own_scale.grad)
    pairs = [(own, shard(expected)), (own_scale.grad, scale.grad)] + [(a.grad, shard(b.grad)) for a, b in zip(parts, whole)]
    return max(((a.detach() - b).abs().max() / (1 + b.abs().max())).item() for a, b in pairs)


def as_dtensors(dim, structure):
    """The same call on tensors that know how they are divided."""
    torch.manual_seed(2)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    whole = [torch.randn(6, 6, 24, 8, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    expected, lse = fovea.attend(*whole, structure=structure, return_lse=True)
    (expected.square().sum() + lse.sum()).backward()
    parts = [distribute_tensor(t.detach(), mesh, [Shard(dim)]).requires_grad_() for t in whole]
    found, sums = fd.attend(*parts, structure=structure, return_lse=True)
    assert found.placements == (Shard(dim),)
    (found.square().sum() + sums.sum()).backward()
    pairs = [(found, expected), (sums, lse)] + [(a.grad, b.grad) for a, b in zip(parts, whole)]
    return max((a.full_tensor() - b).detach().abs().max().item() for a, b in pairs)


def main():
    dist.init_process_group("gloo")
    ranks = dist.get_world_size()
    group = dist.new_group(list(range(ranks)))
    assert fd.attend(*(torch.randn(1, 1, 2, 4),) * 3, group=group).shape == (1, 1, 2, 4)
    fd._sizes = (20, 8)  # so that several pieces travel, and candidates are too few at first
    found = {}
    for layout in ("contiguous", "zigzag"):
        for name, structure in STRUCTURES.items():
            for score, dtype in (("dot", torch.float32), ("dot", torch.float64), ("soft cap", torch.float64)):
                for rows in (8 * ranks, 96 * ranks):  # short rows and tiles
                    found[f"{layout}, {name}, {score}, {dtype}, {rows}"] = compared(structure, SCORES[score](), layout, dtype, rows)
        for name, choices in NORMALISERS.items():
            for structure in ("dense", "causal window", "documents", "nothing"):
                dtype = torch.float32 if structure == "dense" else torch.float64
                case = f"{layout}, {structure}, {name}, {dtype}, {32 * ranks}"
                found[case] = normalised(choices, STRUCTURES[structure], layout, dtype, 32 * ranks)
        for normaliser in (fovea.Softmax(), fovea.Sparsemax(), fovea.Entmax(1.5)):
            found[f"{layout}, causal, scale {normaliser!r}, torch.float64, {32 * ranks}"] = scaled(normaliser, layout, 32 * ranks)
    for dim in (0, 1, 2):
        found[f"DTensor, causal, {dim}, torch.float64, 24"] = as_dtensors(dim, fovea.Causal())
    print(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
