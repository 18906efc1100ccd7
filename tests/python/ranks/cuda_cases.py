"""One rank of a test of test_distributed_cuda.py: its part on a CUDA device against the whole call on the CPU, in float64. Prints a JSON object of the largest
differences."""

import json
import os
import sys

import torch
import torch.distributed as dist

import fovea
import fovea.distributed as fd

STRUCTURES = {
    "dense": lambda ids: fovea.Dense(),
    "causal": lambda ids: fovea.Causal(),
    "window": lambda ids: fovea.Window(5, 3),
    "documents": lambda ids: fovea.Documents(ids, ids) & fovea.Causal(),
    "nothing": lambda ids: fovea.Causal() & ~fovea.Window(40, 0),  # some queries see no key
}
# An array of the size of the heads is the sink, the slopes or the bandwidth, and has a gradient.
CHOICES = {
    "softmax": lambda own: (fovea.Dot(), fovea.Softmax()),
    "sink": lambda own: (fovea.Dot(), fovea.Softmax(sink=own)),
    "slopes": lambda own: (fovea.Dot().alibi(own / 16), fovea.Softmax()),
    "kernel ratio": lambda own: (fovea.Kernel("gaussian", own.abs() + 1), fovea.KernelRatio()),
    "unnormalised": lambda own: (fovea.Dot(), fovea.Unnormalised()),
    "uniform": lambda own: (fovea.Dot(), fovea.Uniform()),
}


def compared(choices, structure, layout, device, dtype, rows=48):
    torch.manual_seed(0)
    whole = [torch.randn(2, heads, rows, 16, dtype=dtype).double().requires_grad_() for heads in (4, 2, 2)]
    array = torch.randn(4, dtype=torch.float64, requires_grad=True)
    ids = torch.arange(rows) // 11
    d_output = torch.randn(2, 4, rows, 16, dtype=dtype).double()

    def shard(tensor, dim=2):
        return fd.shard(tensor.detach(), dim, layout=layout).clone()

    expected = fovea.attend(*whole, *choices(array), structure(ids))
    (expected * d_output).sum().backward()
    parts = [shard(t).to(device, dtype).requires_grad_() for t in whole]
    own_array = array.detach().to(device, torch.float32 if dtype != torch.float64 else dtype).requires_grad_()
    own = fd.attend(*parts, *choices(own_array), structure(shard(ids, 0).to(device)), layout=layout)
    (own * shard(d_output).to(own)).sum().backward()
    pairs = [(own, shard(expected))]
    for a, b in zip(parts, whole):  # a uniform mean has no gradient of query and key
        pairs.append((torch.zeros_like(a) if a.grad is None else a.grad, shard(torch.zeros_like(b) if b.grad is None else b.grad)))
    if own_array.grad is not None:
        dist.all_reduce(own_array.grad)
        pairs.append((own_array.grad, array.grad))
    assert all(a.device.type == device.type for a, _ in pairs)
    return max(((a.detach().cpu().double() - b).abs().max() / (1 + b.abs().max())).item() for a, b in pairs)


def main():
    backend = sys.argv[1]
    device = torch.device("cuda", int(os.environ["RANK"]) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    dist.init_process_group(backend)
    fd._sizes = (4, 64)  # a piece of four rows: each rank sends several
    out = {}
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        for layout in ("contiguous", "zigzag"):
            for structure_name, structure in STRUCTURES.items():
                for name, choices in CHOICES.items():
                    if dtype != torch.bfloat16 or name == "softmax":
                        out[f"{name}, {structure_name}, {layout}, {dtype}"] = compared(choices, structure, layout, device, dtype)
    try:
        fd.attend(*[torch.randn(1, 1, 4, 8, device=device)] * 3, normaliser=fovea.Sparsemax())
    except ValueError as error:
        out["refused"] = str(error)
    print(json.dumps(out))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
