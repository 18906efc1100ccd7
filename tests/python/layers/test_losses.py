"""Fenchel–Young losses: those of the package entmax, their gradients, and what they promise."""

import pytest
import torch

import fovea

NORMALISERS = {"softmax": fovea.Softmax(), "sparsemax": fovea.Sparsemax(), "entmax15": fovea.Entmax(1.5), "entmax13": fovea.Entmax(1.3)}


def drawn(*shape, seed=0):
    scores = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * 2
    return scores.requires_grad_(), torch.randint(0, shape[-1], shape[:-1], generator=torch.Generator().manual_seed(seed + 1))


@pytest.mark.parametrize("name", ["sparsemax", "entmax15", "entmax13"])
def test_they_are_the_losses_of_entmax_with_their_gradients(name):
    entmax = pytest.importorskip("entmax", reason="the package entmax is not installed")
    theirs = {
        "sparsemax": entmax.SparsemaxLoss(reduction="none"),
        "entmax15": entmax.Entmax15Loss(reduction="none"),
        "entmax13": entmax.EntmaxBisectLoss(1.3, reduction="none", n_iter=100),
    }[name]
    scores, target = drawn(40, 9)
    ours, expected = fovea.nn.fenchel_young_loss(scores, target, NORMALISERS[name]), theirs(scores, target)
    torch.testing.assert_close(ours, expected, atol=1e-9, rtol=1e-9)
    weight = torch.linspace(0.5, 2, 40, dtype=torch.float64)
    gradients = [torch.autograd.grad((loss * weight).sum(), scores)[0] for loss in (ours, expected)]
    torch.testing.assert_close(*gradients, atol=1e-9, rtol=1e-9)


def test_that_of_softmax_is_cross_entropy():
    scores, target = drawn(3, 5, 7)
    ours = fovea.nn.fenchel_young_loss(scores, target, fovea.Softmax())
    torch.testing.assert_close(ours, torch.nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten(), reduction="none").view(3, 5))


@pytest.mark.parametrize("name", NORMALISERS)
def test_the_gradient_is_the_difference_of_distributions(name):
    scores, _ = drawn(6, 5)
    y = torch.rand(6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    y = y / y.sum(-1, keepdim=True)
    assert torch.autograd.gradcheck(lambda e: fovea.nn.fenchel_young_loss(e, y, NORMALISERS[name]), scores)
    own = fovea.weights(
        scores.detach().view(1, 1, 6, 5), torch.zeros(1, 1, 5, 1, dtype=torch.float64), fovea.Location(), NORMALISERS[name]
    ).view(6, 5)
    assert torch.allclose(fovea.nn.fenchel_young_loss(scores, own, NORMALISERS[name]), torch.zeros(6, dtype=torch.float64), atol=1e-12)


@pytest.mark.parametrize("name", NORMALISERS)
def test_second_derivatives_are_those_of_the_distribution(name):
    scores, target = drawn(3, 4)
    loss = lambda e: fovea.nn.fenchel_young_loss(e, target, NORMALISERS[name])
    assert torch.autograd.gradcheck(loss, scores, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(loss, scores)
    total = lambda e: loss(e).sum()
    for hessian in (torch.func.hessian(total)(scores.detach()), torch.autograd.functional.hessian(total, scores)):
        expected = torch.zeros(3, 4, 3, 4, dtype=torch.float64)
        for row in range(3):
            for j in range(4):  # central differences of p
                moved = [scores.detach()[row] + sign * 1e-6 * torch.eye(4, dtype=torch.float64)[j] for sign in (1, -1)]
                key = torch.zeros(1, 1, 4, 1, dtype=torch.float64)
                up, down = (fovea.weights(e.view(1, 1, 1, 4), key, fovea.Location(), NORMALISERS[name]).view(4) for e in moved)
                expected[row, :, row, j] = (up - down) / 2e-6
        torch.testing.assert_close(hessian, expected, atol=1e-5, rtol=1e-5)


def test_samples_of_their_own_gradients():
    scores, target = drawn(6, 5)
    one = lambda e, y: fovea.nn.fenchel_young_loss(e, y, fovea.Entmax(1.5))
    y = torch.nn.functional.one_hot(target, 5).double()
    got = torch.func.vmap(torch.func.grad(one))(scores.detach(), y)
    torch.testing.assert_close(got, torch.autograd.grad(one(scores, target).sum(), scores)[0])


@pytest.mark.parametrize("name", NORMALISERS)
def test_compiled_they_are_the_same(name):
    torch._dynamo.reset()
    scores, target = drawn(3, 5)
    y = torch.nn.functional.one_hot(target, 5).double()
    loss = lambda e: fovea.nn.fenchel_young_loss(e, y, NORMALISERS[name])
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(scores), loss(scores))
    torch.testing.assert_close(*(torch.autograd.grad(f(scores).sum(), scores)[0] for f in (compiled, loss)))


def test_a_class_that_cannot_be_costs_infinitely_much():
    scores = torch.tensor([[0.0, -torch.inf], [-torch.inf, -torch.inf]], requires_grad=True)
    assert fovea.nn.fenchel_young_loss(scores, torch.tensor([1, 0]), fovea.Sparsemax()).tolist() == [torch.inf] * 2


def test_a_lead_that_is_enough_costs_nothing():
    scores = torch.tensor([[2.5, 0.0, 0.0]], requires_grad=True)
    for normaliser in (fovea.Sparsemax(), fovea.Entmax(1.5)):
        loss = fovea.nn.fenchel_young_loss(scores, torch.tensor([0]), normaliser)
        assert loss.item() == 0
        assert torch.autograd.grad(loss.sum(), scores)[0].count_nonzero() == 0


@pytest.mark.parametrize("name", NORMALISERS)
def test_a_class_that_is_not_there_changes_nothing(name):
    scores, target = drawn(8, 4)
    more = torch.cat([scores, torch.full((8, 1), -torch.inf, dtype=torch.float64)], 1)
    ours = fovea.nn.fenchel_young_loss(more, target, NORMALISERS[name])
    torch.testing.assert_close(ours, fovea.nn.fenchel_young_loss(scores, target, NORMALISERS[name]))
    assert torch.autograd.grad(ours.sum(), scores)[0].isfinite().all()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((torch.zeros(2, 3), torch.tensor([0, 3])), "target: a class of 0 to 3, expected 0 to 2"),
        ((torch.zeros(2, 3), torch.tensor([0])), "expected classes as int64 of shape"),
        ((torch.zeros(2, 3), torch.zeros(2, 4)), "target: shape (2, 4), expected (2, 3)"),
        ((torch.zeros(2, 3), torch.tensor([0, 1]), fovea.Sigmoid()), "normaliser:"),
    ],
)
def test_mistakes_are_named(arguments, said):
    with pytest.raises(ValueError, match=".*") as error:
        fovea.nn.fenchel_young_loss(*arguments)
    assert said in str(error.value)
