"""Copies and files: of modules, of choices, and what torch.load takes without being told to trust a file."""

import copy
import io
import pickle

import pytest
import torch
from layers_of import MODULES, first, learned, made

import fovea


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("how", ["deepcopy", "pickle", "torch.save"])
def test_a_copy_of_a_module_is_its_own(name, how):
    module, inputs = made(name)
    if how == "torch.save":
        file = io.BytesIO()
        torch.save(module, file)
        file.seek(0)
        other = torch.load(file, weights_only=False)
    else:
        other = copy.deepcopy(module) if how == "deepcopy" else pickle.loads(pickle.dumps(module))
    expected = first(module(*inputs))
    assert torch.equal(first(other(*inputs)), expected)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1.5)
    assert torch.equal(first(module(*inputs)), expected)
    assert not torch.equal(first(other(*inputs)), expected)  # its choices hold its own parameters


def test_a_state_moves_between_copies():
    module, other = learned(), learned()
    with torch.no_grad():
        module.score.weight.add_(1)
    other.load_state_dict(module.state_dict())
    x = torch.randn(2, 5, 32)
    assert torch.equal(module(x, x, x)[0], other(x, x, x)[0])


CHOICES = {
    "score": lambda: fovea.Additive(torch.randn(2, 3)).soft_cap(3.0).alibi(torch.randn(2)),
    "learned score": lambda: fovea.Additive(torch.nn.Parameter(torch.randn(3))),
    "normaliser": lambda: fovea.Entmax(torch.tensor([1.2, 1.5])),
    "structure": lambda: fovea.Causal() & (fovea.Window(3, 0) | fovea.First(1)) & ~fovea.Keep(torch.ones(3, 3, dtype=torch.bool)),
    "pages": lambda: fovea.Paged(torch.tensor([[0, 1]]), torch.tensor([5])),
    "graph": lambda: fovea.Graph.from_edge_index(torch.tensor([[0, 1, 2], [2, 1, 0]])),
}


def saved(what):
    file = io.BytesIO()
    torch.save(what, file)
    file.seek(0)
    return file


@pytest.mark.parametrize("name", CHOICES)
def test_torch_load_takes_choices_as_they_were_saved(name):
    choice = CHOICES[name]()
    back = torch.load(saved({"choice": choice, "step": 3}))["choice"]  # weights_only, its default
    assert back == choice and repr(back) == repr(choice)
    assert getattr(back, "order", None) is None or torch.equal(back.order, choice.order)


def test_choices_of_a_file_are_checked_as_those_of_a_program():
    choice = fovea.Window(3, 0)
    object.__setattr__(choice, "left", -7)
    with pytest.raises((ValueError, pickle.UnpicklingError), match="Window.left: -7, expected at least -1"):
        torch.load(saved(choice))


def double(query, key):
    return query @ key.transpose(-1, -2) * 2


def test_a_python_function_is_code_and_is_not_loaded_by_default():
    choice = fovea.Function(double)
    assert pickle.loads(pickle.dumps(choice)).function is double
    with pytest.raises(pickle.UnpicklingError, match="Function"):
        torch.load(saved(choice))
