"""Choices are values: shown and compared whole, made of any number, and what the library says they are."""

import copy
import inspect
import json
import pickle
import typing

import numpy as np
import pytest
import torch
from cases import NORMALISERS, PACKED, SCORES, STRUCTURES, operands

import fovea
from fovea._choice import Choice
from fovea._scores import _Modifier

ALL = {**{n: build for n, (_, _, build) in SCORES.items()}, **NORMALISERS, **STRUCTURES, **PACKED}


def families():
    return json.loads(torch.ops.fovea.describe())


def classes(base):
    """Every choice of a family, by the name the library has for it."""
    found = {}
    for kind in base.__subclasses__():
        found.update(classes(kind))
        if kind._kind:
            found[kind._kind] = kind
    return found


def test_the_classes_are_those_of_the_library():
    bases = {"score": fovea.Score, "modifier": _Modifier, "normaliser": fovea.Normaliser, "structure": fovea.Structure}
    for family, described in families().items():
        names = {choice["name"] for choice in described} - {"custom"}  # a user's own function is C++
        assert set(classes(bases[family])) == names


def test_the_fields_and_their_defaults_are_those_of_the_library():
    for described in families().values():
        for choice in described:
            if choice["name"] == "custom":
                continue
            parameters = inspect.signature(classes(Choice)[choice["name"]]).parameters
            # One field in Python, a number or a tensor, where C++ has one for each.
            fields = [field for field in choice["fields"] if (choice["name"], field[0]) not in (("entmax", "alpha_tensor"), ("prefix", "lengths"))]
            assert list(parameters) == [name for name, _, _ in fields]
            for name, kind, default in fields:
                ours = parameters[name].default
                if ours is inspect.Parameter.empty or (choice["name"], name) == ("kernel", "bandwidth"):
                    continue  # must be given, or a number for a tensor
                assert ours == default and type(ours) is type(default), (choice["name"], name)


@pytest.mark.parametrize("name", ALL)
def test_two_that_are_made_alike_are_equal(name):
    assert ALL[name]() == ALL[name]()
    assert hash(ALL[name]()) == hash(ALL[name]())


def test_no_two_of_the_cases_are_equal():
    made = {name: build() for name, build in ALL.items()}
    for a in made:
        for b in made:
            assert (made[a] == made[b]) == (a == b), (a, b)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (fovea.Dot(), fovea.Dot(scale=1.0)),
        (fovea.Dot(1.0), fovea.Dot(scale=torch.tensor(1.0))),
        (fovea.Dot(), fovea.Dot().soft_cap(3.0)),
        (fovea.Dot().soft_cap(2.0), fovea.Dot().soft_cap(3.0)),
        (fovea.Dot().bias(torch.zeros(3)), fovea.Dot().bias(torch.ones(3))),
        (fovea.Window(1, 2), fovea.Window(1, 3)),
        (fovea.Causal(), fovea.Causal("bottom_right")),
        (fovea.Causal() & fovea.Window(1, 1), fovea.Causal() & fovea.Window(1, 2)),
        (fovea.Entmax(1.5), fovea.Entmax(torch.tensor([1.5]))),
        (fovea.Keep(torch.ones(2, dtype=torch.bool)), fovea.Keep(torch.zeros(2, dtype=torch.bool))),
        (fovea.Causal(), fovea.Softmax()),
        (fovea.Causal(), "causal"),
    ],
)
def test_a_difference_anywhere_is_one(one, other):
    assert one != other


def test_the_same_tensor_is_equal_to_itself_whatever_it_holds():
    nan = torch.tensor([torch.nan])
    assert fovea.Softmax(nan) == fovea.Softmax(nan)


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        (fovea.Dot(0.5).soft_cap(30).bias(torch.zeros(2, 9)), "Dot(scale=0.5).soft_cap(cap=30.0).bias(bias=<tensor [2, 9] of float32>)"),
        (fovea.Entmax(torch.tensor([1.5, 2.0])), "Entmax(alpha=tensor([1.5000, 2.0000]))"),
        (fovea.Causal() & fovea.Window(3), "Causal(alignment='top_left') & Window(left=3, right=-1)"),
        (fovea.Kernel("box", 0.5), "Kernel(name='box', bandwidth=0.5, metric=None)"),
        (fovea.Uniform(), "Uniform()"),
    ],
)
def test_repr_tells_all(choice, text):
    assert repr(choice) == text


@pytest.mark.parametrize("name", ALL)
def test_copies_and_pickles_are_equal(name):
    choice = ALL[name]()
    assert copy.deepcopy(choice) == choice
    assert pickle.loads(pickle.dumps(choice)) == choice


def test_numpys_numbers_are_numbers():
    query, key, value = operands("dot")
    for ours, plain in (
        (fovea.Dot(np.float32(0.5)), fovea.Dot(0.5)),
        (fovea.Dot().soft_cap(np.float64(3)), fovea.Dot().soft_cap(3.0)),
        (fovea.Kernel("box", np.float64(2)), fovea.Kernel("box", 2.0)),
        (fovea.TopK(np.int64(3)), fovea.TopK(3)),
        (fovea.Window(np.int32(2), np.uint8(1)), fovea.Window(2, 1)),
        (fovea.Hard(np.bool_(True)), fovea.Hard(True)),
        (fovea.Entmax(np.float64(1.25)), fovea.Entmax(1.25)),
    ):
        assert ours == plain
    expected = fovea.attend(query, key, value, scale=0.5, dropout_p=0.25, seed=3)
    got = fovea.attend(query, key, value, scale=np.float64(0.5), dropout_p=np.float32(0.25), seed=np.int64(3), return_lse=np.bool_(False))
    assert torch.equal(got, expected)
    assert torch.equal(fovea.weights(query, key, rows=np.int64(1), top_k=np.int32(2))[0], fovea.weights(query, key, rows=[1], top_k=2)[0])


def test_top_k_of_more_than_there_are_keeps_all():
    query, key, value = operands("dot")
    for k in (7, 8, 2**62):
        torch.testing.assert_close(fovea.attend(query, key, value, normaliser=fovea.TopK(k)), fovea.attend(query, key, value))
    for a, b in zip(*(torch.autograd.grad(fovea.attend(query, key, value, normaliser=n).square().sum(), (query, key)) for n in (fovea.TopK(99), fovea.Softmax()))):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", typing.get_args(fovea._scores.KernelName))
def test_every_kernel_has_the_integral_one(name):
    step = 1e-3
    key = torch.arange(-60, 60, step, dtype=torch.float64)[None, None, :, None]
    whole = fovea.attend(torch.zeros(1, 1, 1, 1, dtype=torch.float64), key, torch.full_like(key, step), fovea.Kernel(name), fovea.Unnormalised())
    assert abs(whole.item() - 1) < (0.02 if name == "cauchy" else 1e-3)  # whose tails beyond 60 are 0.011
