"""Attention and graphs over ranks on GPUs, by NCCL: one rank for each GPU, compared with the whole call on one.

    torchrun --nproc-per-node GPUS tests/python/ranks/nccl_cases.py

NCCL gives a GPU to one rank only, so a machine with one GPU runs one rank: the path, without a transfer.
"""

import os

import torch
import torch.distributed as dist

import fovea
import fovea.distributed as fd


def difference(pairs):
    return max(((a.detach() - b.detach()).abs().max() / (1 + b.detach().abs().max())).item() for a, b in pairs)


def sequence(structure, layout):
    torch.manual_seed(0)
    whole = [torch.randn(1, 4, 512 * dist.get_world_size(), 64, device="cuda", requires_grad=True) for _ in range(3)]
    expected = fovea.attend(*whole, structure=structure)
    weight = torch.randn_like(expected)
    (expected * weight).sum().backward()
    parts = [fd.shard(t.detach(), layout=layout).clone().requires_grad_() for t in whole]
    found = fd.attend(*parts, structure=structure, layout=layout)
    (found * fd.shard(weight, layout=layout)).sum().backward()
    return difference([(found, fd.shard(expected, layout=layout))] + [(a.grad, fd.shard(b.grad, layout=layout)) for a, b in zip(parts, whole)])


def main():
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl")
    total = torch.ones(1, device="cuda")
    dist.all_reduce(total)
    found = {f"{type(structure).__name__}, {layout}": sequence(structure, layout)
             for structure in (fovea.Dense(), fovea.Causal(), fovea.Window(100, 0)) for layout in ("contiguous", "zigzag")}  # fmt: skip
    if dist.get_rank() == 0:
        print(f"NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}, {int(total.item())} ranks: " + ", ".join(f"{k} {v:.1e}" for k, v in found.items()))
    assert max(found.values()) < 2e-3, found
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
