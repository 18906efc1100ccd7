"""Numbers that are learned: a scale and entmax's alpha have gradients; a number that has none refuses a tensor that wants one."""

import pytest
import torch
from cases import E, H, operands, tensor

import fovea


def naive(query, key, value, scale):
    return (query @ key.transpose(-1, -2) * scale).softmax(-1) @ value


@pytest.mark.parametrize("shape", [(), (1,), (H,)])
def test_a_scale_has_a_gradient_wherever_it_is_given(shape):
    query, key, value = operands("dot")
    scale = torch.full(shape, 0.3, dtype=torch.float64, requires_grad=True)
    expected = naive(query, key, value, scale.reshape(-1, 1, 1))
    wanted = torch.autograd.grad(expected.square().sum(), (query, scale))
    for out in (
        fovea.attend(query, key, value, scale=scale),
        fovea.attend(query, key, value, fovea.Dot(scale=scale)),
        fovea.attend(query, key, value, fovea.Bilinear(torch.eye(E, dtype=torch.float64), scale=scale)),
        fovea.attend(query, key, value, fovea.Bilinear(torch.eye(E, dtype=torch.float64)), scale=scale),
    ):
        torch.testing.assert_close(out, expected)
        for a, b in zip(torch.autograd.grad(out.square().sum(), (query, scale)), wanted):
            torch.testing.assert_close(a, b)
    torch.testing.assert_close(fovea.weights(query, key, scale=scale), fovea.weights(query, key, fovea.Dot(0.3)))


def test_a_scale_goes_with_modifiers_and_packed_operands():
    query, key, value = operands("dot", packed=True)
    scale, ragged = tensor(H, seed=3), fovea.Ragged(torch.tensor([0, 2, 5]), torch.tensor([0, 3, 7]))
    table = tensor(5, E)
    score = lambda s: fovea.Dot(scale=s).relative(table, None, 2).soft_cap(2.0)
    assert torch.autograd.gradcheck(lambda s: fovea.attend(query, key, value, score(s), structure=ragged), (scale,))
    fixed = fovea.attend(query, key, value, score(0.7), structure=ragged)
    torch.testing.assert_close(fovea.attend(query, key, value, score(torch.tensor(0.7, dtype=torch.float64)), structure=ragged), fixed)


def test_half_precision_keeps_its_type_under_a_learned_scale():
    query, key, value = (x.detach().bfloat16() for x in operands("dot"))
    for scale in (torch.tensor(0.3, requires_grad=True), torch.full((H,), 0.3, requires_grad=True)):
        out = fovea.attend(query, key, value, scale=scale)
        assert out.dtype == torch.bfloat16
        (gradient,) = torch.autograd.grad(out.float().sum(), scale)
        assert gradient.shape == scale.shape and gradient.abs().sum() > 0


def test_a_number_without_a_gradient_refuses_a_tensor_that_wants_one():
    learned = torch.tensor(30.0, requires_grad=True)
    for make in (
        lambda: fovea.Dot().soft_cap(learned),
        lambda: fovea.RankOne(learned),
        lambda: fovea.Additive(torch.ones(4), "leaky_relu", learned),
    ):
        with pytest.raises(ValueError, match=r"(soft_cap.cap|negative_slope): a tensor that requires a gradient, .*pass float\(\.\.\.\)"):
            make()
    assert fovea.Dot().soft_cap(learned.detach()) == fovea.Dot().soft_cap(30.0)


def test_an_alpha_pushed_below_one_comes_back():
    query, key, value = (x.detach() for x in operands("dot"))
    target = fovea.attend(query, key, value, normaliser=fovea.Entmax(1.6))
    alpha = torch.tensor([1.02, 1.02], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.SGD([alpha], lr=2.0)
    with torch.no_grad():
        alpha.sub_(0.1)  # a step too far
    below = alpha.detach().clone()
    assert torch.equal(fovea.attend(query, key, value, normaliser=fovea.Entmax(alpha)), fovea.attend(query, key, value, normaliser=fovea.Entmax(1.0)))
    for _ in range(60):
        optimiser.zero_grad()
        (fovea.attend(query, key, value, normaliser=fovea.Entmax(alpha)) - target).square().sum().backward()
        optimiser.step()
    assert (below < 1).all() and (alpha > 1.3).all()


def test_alpha_one_is_softmax_and_its_gradient_is_the_limit():
    query, key, value = operands("dot")
    alpha = torch.ones(H, dtype=torch.float64, requires_grad=True)
    attend = lambda a: fovea.attend(query, key, value, normaliser=fovea.Entmax(a))
    torch.testing.assert_close(attend(alpha), fovea.attend(query, key, value))
    weight = torch.randn(attend(alpha).shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    loss = lambda a: (attend(a) * weight).sum()
    at_one = torch.autograd.grad(loss(alpha), (alpha, query))
    close = torch.autograd.grad(loss(alpha.detach().add(1e-5).requires_grad_()), query)
    torch.testing.assert_close(at_one[1], close[0], atol=1e-4, rtol=1e-3)
    for head in range(H):
        step = torch.zeros(H, dtype=torch.float64)
        step[head] = 1e-3
        one, two = (loss(alpha + n * step) - loss(alpha) for n in (1, 2))
        torch.testing.assert_close(at_one[0][head], (4 * one - two).detach() / 2e-3, atol=1e-4, rtol=1e-3)


def test_second_derivatives_at_an_alpha_of_one_and_below():
    query, key, value = operands("dot")
    alpha = torch.tensor([1.0, 0.4], dtype=torch.float64, requires_grad=True)
    # By the operands: alpha's own second derivative is taken as 0 there.
    assert torch.autograd.gradgradcheck(lambda q, k, v: fovea.attend(q, k, v, normaliser=fovea.Entmax(alpha)), (query, key, value), fast_mode=True)
    (first,) = torch.autograd.grad(fovea.attend(query, key, value, normaliser=fovea.Entmax(alpha)).square().sum(), alpha, create_graph=True)
    assert torch.autograd.grad(first.sum(), query)[0].isfinite().all()
