"""First and second derivatives in double precision, by finite differences, for the choices one at a time."""

import pytest
import torch
from cases import NORMALISERS, PACKED, SCORES, STRUCTURES, operands, parameters

import fovea


def function_of(score, normaliser, structure, return_lse=False, **options):
    """attend as a function of its tensors, those of the choices included."""
    slots = parameters(score, normaliser)

    def function(query, key, value, *arrays):
        for (part, name, _), array in zip(slots, arrays):
            object.__setattr__(part, name, array)
        return fovea.attend(query, key, value, score, normaliser, structure, return_lse=return_lse, **options)

    return function, [array for _, _, array in slots]


def check(score="dot", normaliser="softmax", structure=None, second=True, **options):
    packed = structure in PACKED
    build = PACKED[structure] if packed else STRUCTURES[structure or "dense"]
    function, arrays = function_of(SCORES[score][2](), NORMALISERS[normaliser](), build(), **options)
    inputs = (*operands(score, packed), *arrays)
    assert torch.autograd.gradcheck(function, inputs, eps=1e-6, atol=1e-6, rtol=1e-5)
    if second:
        assert torch.autograd.gradgradcheck(function, inputs, eps=1e-6, atol=1e-5, rtol=1e-4, fast_mode=True)


@pytest.mark.parametrize("score", SCORES)
def test_of_each_score(score):
    check(score=score)


@pytest.mark.parametrize("normaliser", [name for name in NORMALISERS if name != "kernel_ratio"])
def test_of_each_normaliser(normaliser):
    check(score="bias", normaliser=normaliser)


def test_of_the_kernel_ratio():
    check(score="gaussian", normaliser="kernel_ratio")


@pytest.mark.parametrize("structure", [*STRUCTURES, *PACKED])
def test_of_each_structure(structure):
    check(score="additive", structure=structure)


@pytest.mark.parametrize("normaliser", ["softmax", "softmax_sink", "top_k", "hard"])
def test_of_the_log_sum_exp(normaliser):
    check(normaliser=normaliser, return_lse=True)


def test_with_dropout_replayed_by_its_seed():
    check(dropout_p=0.3, seed=11)


def test_with_grouped_heads():
    query = torch.randn(2, 4, 3, 5, dtype=torch.float64, requires_grad=True)
    key = torch.randn(2, 2, 6, 5, dtype=torch.float64, requires_grad=True)
    value = torch.randn(2, 2, 6, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(fovea.attend, (query, key, value))
    assert torch.autograd.gradgradcheck(fovea.attend, (query, key, value), fast_mode=True)


def test_third_derivatives_are_right_too():
    query, key, value = operands("dot")
    function = lambda q: torch.autograd.grad(fovea.attend(q, key, value).square().sum(), q, create_graph=True)[0]
    assert torch.autograd.gradgradcheck(function, (query,), eps=1e-6, atol=1e-4, rtol=1e-3, fast_mode=True)
