"""Memory that second derivatives take, beyond what first ones do: the figure in docs/attend.md."""

import resource

import torch

import fovea

torch.set_num_threads(1)
query, key, value = (torch.randn(1, 4, 1024, 64, requires_grad=True) for _ in range(3))


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


gradients = torch.autograd.grad(fovea.attend(query, key, value).square().sum(), (query, key, value), create_graph=True)
before = megabytes()
torch.autograd.grad(sum(g.square().sum() for g in gradients), (query, key, value))
print(f"{megabytes() - before:.0f} MB")
