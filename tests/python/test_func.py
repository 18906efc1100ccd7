"""torch.func and forward mode: each transform gives what it gives of the naive formula."""

import math
import warnings

import pytest
import torch
from cases import B, E, EV, H, L, NORMALISERS, PACKED, S, SCORES, STRUCTURES, operands, parameters
from torch.autograd import forward_ad
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

import fovea

CLOSE = {"atol": 1e-10, "rtol": 1e-8}


@pytest.fixture(autouse=True)
def no_warning_of_performance():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*performance drop|.*batching rule")
        yield


def plain():
    return [x.detach() for x in operands("dot")]


def naive(query, key, value):
    """The default choices, and a cap, by libtorch's operations."""
    scores = 3 * torch.tanh(query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]) / 3)
    return scores.softmax(-1) @ value


def ours(query, key, value):
    return fovea.attend(query, key, value, fovea.Dot().soft_cap(3.0))


def loss(function):
    return lambda *inputs: function(*inputs).square().sum()


def assert_same(got, expected):
    torch.testing.assert_close(got, expected, **CLOSE)


def test_grad():
    inputs = plain()
    assert_same(grad(loss(ours), argnums=(0, 1, 2))(*inputs), grad(loss(naive), argnums=(0, 1, 2))(*inputs))


def test_grad_of_grad():
    inputs = plain()
    second = lambda f: grad(lambda *x: grad(loss(f))(*x).square().sum(), argnums=(0, 1, 2))(*inputs)
    assert_same(second(ours), second(naive))


def test_vjp():
    inputs = plain()
    (out, back), (expected, expected_back) = vjp(ours, *inputs), vjp(naive, *inputs)
    assert_same(out, expected)
    direction = torch.randn_like(out)
    assert_same(back(direction), expected_back(direction))


def test_jvp():
    inputs = plain()
    tangents = [torch.randn_like(x) for x in inputs]
    assert_same(jvp(ours, tuple(inputs), tuple(tangents)), jvp(naive, tuple(inputs), tuple(tangents)))
    # Only one of them moves.
    one = lambda f: jvp(lambda key: f(inputs[0], key, inputs[2]), (inputs[1],), (tangents[1],))
    assert_same(one(ours), one(naive))


def test_forward_mode_of_libtorchs_own_kind():
    inputs, tangents = plain(), plain()[::-1]
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x, torch.ones_like(x)) for x in inputs]
        got, expected = (forward_ad.unpack_dual(f(*duals)) for f in (ours, naive))
    assert_same(got.primal, expected.primal)
    assert_same(got.tangent, expected.tangent)
    assert len(tangents) == 3


def test_jacrev_and_jacfwd():
    inputs = [x[:1, :, :3] for x in plain()]
    expected = jacrev(naive, argnums=(0, 1, 2))(*inputs)
    assert_same(jacrev(ours, argnums=(0, 1, 2))(*inputs), expected)
    assert_same(jacfwd(ours, argnums=(0, 1, 2))(*inputs), expected)


def test_hessian():
    inputs = [x[:1, :1, :2] for x in plain()]
    second = lambda f: hessian(loss(f), argnums=(0, 1))(*inputs)
    assert_same(second(ours), second(naive))


def test_reverse_over_reverse_jacobian():
    inputs = [x[:1, :1, :2] for x in plain()]
    second = lambda f: jacrev(jacrev(loss(f)))(*inputs)
    assert_same(second(ours), second(naive))


def test_vmap_of_each_argument():
    query, key, value = (torch.randn(3, *x.shape, dtype=torch.float64) for x in plain())
    one = plain()
    for dims, inputs in (
        ((0, 0, 0), (query, key, value)),
        ((0, None, None), (query, one[1], one[2])),
        ((None, 0, 0), (one[0], key, value)),
        ((1, None, 2), (query.movedim(0, 1), one[1], value.movedim(0, 2))),
    ):
        assert_same(vmap(ours, in_dims=dims)(*inputs), vmap(naive, in_dims=dims)(*inputs))


def test_a_call_of_the_defaults_is_mapped_like_any():
    query, key, value = (torch.randn(3, *x.shape, dtype=torch.float64) for x in plain())
    softmax = lambda q, k, v: (q @ k.transpose(-1, -2) / math.sqrt(E)).softmax(-1) @ v
    assert_same(vmap(fovea.attend)(query, key, value), vmap(softmax)(query, key, value))
    assert_same(vmap(grad(loss(fovea.attend)))(query, key, value), vmap(grad(loss(softmax)))(query, key, value))
    assert_same(hessian(loss(fovea.attend))(*(x[0, :1, :1, :2] for x in (query, key, value))), hessian(loss(softmax))(*(x[0, :1, :1, :2] for x in (query, key, value))))


def test_vmap_of_vmap():
    query, key, value = (torch.randn(3, 2, *x.shape, dtype=torch.float64) for x in plain())
    assert_same(vmap(vmap(ours))(query, key, value), vmap(vmap(naive))(query, key, value))
    nested = lambda f: vmap(vmap(f, in_dims=(0, None, None)), in_dims=(0, 0, 0))
    assert_same(nested(ours)(query, key[:, 0], value[:, 0]), nested(naive)(query, key[:, 0], value[:, 0]))


def test_vmap_of_grad():
    query, key, value = (torch.randn(3, *x.shape, dtype=torch.float64) for x in plain())
    each = lambda f: vmap(grad(loss(f), argnums=(0, 1, 2)), in_dims=(0, None, 0))(query, key[0], value)
    assert_same(each(ours), each(naive))


def test_batched_gradients():
    inputs = [x.requires_grad_() for x in plain()]
    directions = torch.randn(4, B, H, L, EV, dtype=torch.float64)
    got, expected = (torch.autograd.grad(f(*inputs), inputs, directions, is_grads_batched=True) for f in (ours, naive))
    assert_same(got, expected)


def test_vectorised_jacobian_of_autograd():
    query, key, value = (x[:1, :1, :3] for x in plain())
    got, expected = (torch.autograd.functional.jacobian(lambda q: f(q, key, value), query, vectorize=True) for f in (ours, naive))
    assert_same(got, expected)


def one_by_one(function, in_dims, *inputs):
    """What vmap means: each item on its own, stacked."""
    count = next(x.shape[d] for x, d in zip(inputs, in_dims) if d is not None)
    items = [function(*(x if d is None else x.select(d, n) for x, d in zip(inputs, in_dims))) for n in range(count)]
    return torch.utils._pytree.tree_map(lambda *parts: torch.stack(parts), *items)


def with_arrays(score, normaliser, structure):
    """attend as a function of its operands and of the arrays of its choices, and the arrays."""
    slots = parameters(score, normaliser)

    def function(query, key, value, *arrays):
        for (part, name, _), array in zip(slots, arrays):
            object.__setattr__(part, name, array)
        return fovea.attend(query, key, value, score, normaliser, structure)

    return function, [array.detach() for _, _, array in slots]


CASES = [
    *((score, "softmax", "dense") for score in SCORES),
    *(("bias", normaliser, "dense") for normaliser in ("softmax_sink", "entmax_trained", "top_k", "sigmoid")),
    *(("additive", "softmax", structure) for structure in (*STRUCTURES, *PACKED)),
]


@pytest.mark.parametrize(("score", "normaliser", "structure"), CASES)
def test_choices_under_vmap_of_grad(score, normaliser, structure):
    packed = structure in PACKED
    build = (PACKED if packed else STRUCTURES)[structure]
    function, arrays = with_arrays(SCORES[score][2](), NORMALISERS[normaliser](), build())
    inputs = [*(x.detach() for x in operands(score, packed)), *arrays]
    many = [torch.stack([x, x.flip(0), 2 * x]) if x.is_floating_point() else x for x in inputs]
    if normaliser == "entmax_trained":
        many[-1] = torch.stack([inputs[-1], inputs[-1] + 0.2, inputs[-1].flip(0)])
    if score == "cauchy":
        many[3] = torch.stack([inputs[3], inputs[3] + 0.2, inputs[3] + 0.4])
    argnums = tuple(range(len(inputs)))
    derivative = grad(loss(function), argnums=argnums)
    for given, dims in (
        (many, (0,) * len(many)),
        ([many[0], *inputs[1:]], (0, *(None,) * (len(inputs) - 1))),  # shared parameters, a gradient for each item
        ([inputs[0], *many[1:3], *inputs[3:]], (None, 0, 0, *(None,) * len(arrays))),
        *([([*inputs[:3], *many[3:]], (None, None, None, *(0,) * len(arrays)))] if arrays else []),  # the choices' own alone
    ):
        assert_same(vmap(function, in_dims=dims)(*given), one_by_one(function, dims, *given))
        assert_same(vmap(derivative, in_dims=dims)(*given), one_by_one(derivative, dims, *given))


@pytest.mark.parametrize("score", SCORES)
def test_forward_mode_of_each_score(score):
    function, arrays = with_arrays(SCORES[score][2](), fovea.Softmax(), fovea.Causal())
    inputs = tuple(x.detach().requires_grad_() for x in (*operands(score), *arrays))
    assert torch.autograd.gradcheck(function, inputs, check_forward_ad=True, check_backward_ad=False, fast_mode=True, atol=1e-6)


@pytest.mark.parametrize("normaliser", NORMALISERS)
def test_forward_mode_of_each_normaliser(normaliser):
    score = "gaussian" if normaliser == "kernel_ratio" else "bias"
    function, arrays = with_arrays(SCORES[score][2](), NORMALISERS[normaliser](), fovea.Dense())
    inputs = tuple(x.detach().requires_grad_() for x in (*operands(score), *arrays))
    assert torch.autograd.gradcheck(function, inputs, check_forward_ad=True, check_backward_ad=False, fast_mode=True, atol=1e-6)


def test_forward_over_reverse_of_a_choice_with_parameters():
    function, arrays = with_arrays(SCORES["additive"][2](), fovea.Softmax(), fovea.Causal())
    inputs = tuple(x.detach().requires_grad_() for x in (*operands("additive"), *arrays))
    assert torch.autograd.gradgradcheck(function, inputs, check_fwd_over_rev=True, fast_mode=True, atol=1e-6)


def test_the_log_sum_exp_moves_too():
    query, key, value = plain()
    lse = lambda q: fovea.attend(q, key, value, return_lse=True)[1]
    expected = lambda q: (q @ key.transpose(-1, -2) / math.sqrt(E)).logsumexp(-1)
    direction = torch.randn_like(query)
    assert_same(jvp(lse, (query,), (direction,)), jvp(expected, (query,), (direction,)))
    assert_same(vmap(grad(lambda q: lse(q).sum()))(torch.stack([query, 2 * query])), vmap(grad(lambda q: expected(q).sum()))(torch.stack([query, 2 * query])))


def test_key_lengths_and_empty_rows_under_vmap():
    query, key, value = (torch.randn(3, *x.shape, dtype=torch.float64) for x in plain())
    lengths = torch.tensor([[3, 7], [0, 2], [7, 7]])
    function = lambda q, k, v, n: fovea.attend(q, k, v, key_lengths=n, return_empty_rows=True)
    for dims, given in (((0, 0, 0, 0), lengths), ((0, 0, 0, None), lengths[0]), ((0, 0, 0, None), lengths[1])):
        got, expected = vmap(function, in_dims=dims)(query, key, value, given), one_by_one(function, dims, query, key, value, given)
        assert_same(got, expected)


def test_a_seed_means_the_same_for_every_item():
    query, key, value = (torch.randn(3, *x.shape, dtype=torch.float64) for x in plain())
    function = lambda q, k, v: fovea.attend(q, k, v, dropout_p=0.5, seed=3)
    assert_same(vmap(function)(query, key, value), one_by_one(function, (0, 0, 0), query, key, value))


def test_weights_under_vmap():
    query, key, _ = (torch.randn(3, *x.shape, dtype=torch.float64) for x in plain())
    function = lambda q, k: fovea.weights(q, k, structure=fovea.Causal(), rows=[1, 3], heads=[1])
    assert_same(vmap(function)(query, key), one_by_one(function, (0, 0), query, key))


def test_what_cannot_be_is_refused_by_name():
    query, key, value = (x[:1, :1, :2] for x in plain())
    f = lambda q: loss(ours)(q, key, value)
    with pytest.raises(RuntimeError, match="forward mode over forward mode; take forward mode over reverse mode, as torch.func.hessian does"):
        jacfwd(jacfwd(f))(query)
    with pytest.raises(RuntimeError, match="reverse mode over forward mode, inside torch.func; take torch.func.hessian"):
        jacrev(jacfwd(f))(query)
    with pytest.raises(RuntimeError, match="a third derivative.*torch.autograd.grad with create_graph=True for a third"):
        grad(lambda q: grad(lambda q: grad(f)(q).sum())(q).sum())(query)
