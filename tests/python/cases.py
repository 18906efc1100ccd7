"""Small problems that between them use every score, normaliser and structure."""

import torch

import fovea

L, S, E, EV, H, B = 5, 7, 4, 3, 2, 2


def tensor(*shape, dtype=torch.float64, seed=0, requires_grad=True):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, dtype=dtype, generator=generator).requires_grad_(requires_grad)


def positive(*shape, **options):
    return (tensor(*shape, requires_grad=False, **options).abs() + 0.7).requires_grad_()


# name -> (query width, key width, a score from nothing)
SCORES = {
    "dot": (E, E, lambda: fovea.Dot()),
    "bilinear": (E, E + 1, lambda: fovea.Bilinear(tensor(E, E + 1))),
    "additive": (E, E, lambda: fovea.Additive(tensor(H, E))),
    "additive_leaky_relu": (E, E, lambda: fovea.Additive(tensor(E), activation="leaky_relu")),
    "gated_additive": (E, E, lambda: fovea.GatedAdditive(tensor(E // 2))),
    "gaussian": (E, E, lambda: fovea.Kernel("gaussian", positive(H), tensor(E, E))),
    "cauchy": (E, E, lambda: fovea.Kernel("cauchy", positive(B, H, L), tensor(E))),
    "cosine": (E, E, lambda: fovea.Cosine(positive(H))),
    "rank_one": (1, 1, lambda: fovea.RankOne()),
    "location": (S, E, lambda: fovea.Location()),
    "constant": (E, E, lambda: fovea.Constant()),
    "bias": (E, E, lambda: fovea.Dot().bias(tensor(H, L, S))),
    "alibi": (E, E, lambda: fovea.Dot().alibi(positive(H))),
    "relative": (E, E, lambda: fovea.Dot().relative(tensor(5, E), tensor(5, EV), 2)),
    "soft_cap": (E, E, lambda: fovea.Dot().soft_cap(2.0)),
    "capped_kernel": (E, E, lambda: fovea.Kernel("quartic", 2.5).soft_cap(2.0)),  # which ends among the pairs
}
NORMALISERS = {
    "softmax": lambda: fovea.Softmax(),
    "softmax_sink": lambda: fovea.Softmax(tensor(H)),
    "kernel_ratio": lambda: fovea.KernelRatio(),
    "unnormalised": lambda: fovea.Unnormalised(),
    "uniform": lambda: fovea.Uniform(),
    "sigmoid": lambda: fovea.Sigmoid(),
    "sparsemax": lambda: fovea.Sparsemax(),
    "entmax": lambda: fovea.Entmax(),
    "entmax_1.3": lambda: fovea.Entmax(1.3),
    "entmax_trained": lambda: fovea.Entmax(torch.tensor([1.4, 1.7], dtype=torch.float64, requires_grad=True)),
    "top_k": lambda: fovea.TopK(3),
    "hard": lambda: fovea.Hard(),
}
STRUCTURES = {
    "dense": lambda: fovea.Dense(),
    "causal": lambda: fovea.Causal(),
    "causal_bottom_right": lambda: fovea.Causal("bottom_right"),
    "window": lambda: fovea.Window(2, 1),
    "prefix": lambda: fovea.Prefix(3),
    "documents": lambda: fovea.Documents(torch.tensor([0, 0, 1, 1, 2]), torch.tensor([0, 0, 0, 1, 1, 1, 3])),
    "blocks": lambda: fovea.Blocks(torch.tensor([[1, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 1]], dtype=torch.bool), 2),
    "keep": lambda: fovea.Keep(torch.arange(B * L * S).reshape(B, 1, L, S) % 3 != 0),
    "strided": lambda: fovea.Strided(2),
    "fixed": lambda: fovea.Fixed(3, 1),
    "causal_and_window": lambda: fovea.Causal() & fovea.Window(1, -1),
    "first": lambda: fovea.First(3),
    "streaming": lambda: fovea.Causal() & (fovea.Window(1, 0) | fovea.First(2)),
    "not_keep": lambda: ~fovea.Keep(torch.arange(B * L * S).reshape(B, 1, L, S) % 3 != 0),
}
PACKED = {
    "ragged": lambda: fovea.Ragged(torch.tensor([0, 2, 5]), torch.tensor([0, 3, 7])),
    "ragged_causal": lambda: fovea.Ragged(torch.tensor([0, 2, 5]), torch.tensor([0, 3, 7])) & fovea.Causal(),
    "graph": lambda: fovea.Graph(torch.tensor([0, 2, 2, 5, 6, 9]), torch.tensor([3, 0, 1, 6, 2, 5, 4, 0, 6])),
}


def operands(score: str, packed: bool = False, dtype=torch.float64):
    query_width, key_width, _ = SCORES[score]
    if packed:
        shapes = (L, H, query_width), (S, H, key_width), (S, H, EV)
    else:
        shapes = (B, H, L, query_width), (B, H, S, key_width), (B, H, S, EV)
    return [tensor(*shape, dtype=dtype, seed=n) for n, shape in enumerate(shapes)]


def parameters(*choices):
    """The tensors of some choices that require a gradient, with a way to put others in their place."""
    found = []
    for choice in choices:
        for part in (choice, *getattr(choice, "_modifiers", ())):
            for name, value in vars(part).items():
                if isinstance(value, torch.Tensor) and value.requires_grad:
                    found.append((part, name, value))
    return found
