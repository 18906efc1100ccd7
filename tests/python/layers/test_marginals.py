"""Marginals of chains and trees as operators: derivatives, opcheck, torch.compile, errors."""

import itertools
import warnings

import pytest
import torch

import fovea

CHAIN = (torch.randn(3, 5, 2, dtype=torch.float64), torch.randn(2, 2, dtype=torch.float64))
LENGTHS = torch.tensor([5, 1, 3])


def arcs(words=4, items=3, dtype=torch.float64):
    return torch.randn(items, words, words, dtype=dtype, generator=torch.Generator().manual_seed(1))


def every_chain(unary, pairwise):
    """The log partition by enumeration."""
    n, states = unary.shape
    scores = []
    for z in itertools.product(range(states), repeat=n):
        score = sum(unary[i, z[i]] for i in range(n)) + sum(pairwise[z[i], z[i + 1]] for i in range(n - 1))
        scores.append(score)
    return torch.stack(scores).logsumexp(0)


def test_chain_marginals_are_the_gradient_of_the_log_partition():
    unary, pairwise = (x.clone().requires_grad_() for x in CHAIN)
    for b, n in enumerate(LENGTHS):
        expected = torch.autograd.grad(every_chain(unary[b, :n], pairwise), unary)[0][b]
        got = fovea.chain_marginals(unary, pairwise, LENGTHS)
        torch.testing.assert_close(got.states[b], expected)
        torch.testing.assert_close(got.log_partition[b], every_chain(unary[b, :n], pairwise))


@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_gradients_in_both_modes(lengths):
    unary, pairwise = (x.clone().requires_grad_() for x in CHAIN)
    tree = arcs().requires_grad_()
    at_most = None if lengths is None else lengths.clamp(max=4)
    for mode in ({}, {"check_forward_ad": True, "check_backward_ad": False}):
        assert torch.autograd.gradcheck(lambda u, p: tuple(fovea.chain_marginals(u, p, lengths)), (unary, pairwise), **mode)
        assert torch.autograd.gradcheck(lambda a: tuple(fovea.tree_marginals(a, at_most)), (tree,), **mode)


def test_pairs_that_differ_from_step_to_step():
    unary = CHAIN[0]
    pairs = CHAIN[1].expand(3, 4, 2, 2)
    one = fovea.chain_marginals(unary, CHAIN[1])
    for many in (pairs, pairs.contiguous(), pairs.transpose(2, 3).contiguous().transpose(2, 3)):
        for a, b in zip(fovea.chain_marginals(unary, many), one):
            assert torch.equal(a, b)


def test_opcheck():
    unary, pairwise = CHAIN[0].float().requires_grad_(), CHAIN[1].float().requires_grad_()
    pairs = torch.randn(3, 4, 2, 2, requires_grad=True)
    tree = arcs(dtype=torch.float32).requires_grad_()
    torch.library.opcheck(torch.ops.fovea.chain_marginals.default, (unary, pairwise, LENGTHS))
    torch.library.opcheck(torch.ops.fovea._chain_marginals.default, (unary, pairs, None))
    torch.library.opcheck(torch.ops.fovea.tree_marginals.default, (tree, None))
    torch.library.opcheck(torch.ops.fovea._tree_marginals.default, (tree, LENGTHS.clamp(max=4)))
    u, p, a = (x.detach() for x in (unary, pairs, tree))
    torch.library.opcheck(torch.ops.fovea._chain_marginals_along.default, (u, p, u, p, LENGTHS))
    torch.library.opcheck(torch.ops.fovea._tree_marginals_along.default, (a, a, None))


def test_compiles_without_a_graph_break():
    def read(score, pairwise, values):
        unary = torch.stack([torch.zeros_like(score), score], -1)
        weights = fovea.chain_marginals(unary, pairwise).states[..., 1]
        heads = fovea.tree_marginals(values @ values.transpose(1, 2)).arcs
        return (weights.unsqueeze(1) @ values).sum() + (heads.transpose(1, 2) @ values).sum()

    inputs = [torch.randn(2, 6), torch.randn(2, 2), torch.randn(2, 6, 3)]
    eager = [x.clone().requires_grad_() for x in inputs]
    compiled = [x.clone().requires_grad_() for x in inputs]
    torch.testing.assert_close(torch.compile(read, fullgraph=True)(*compiled), read(*eager))
    torch.compile(read, fullgraph=True)(*compiled).backward()
    read(*eager).backward()
    for x, y in zip(compiled, eager):
        torch.testing.assert_close(x.grad, y.grad)


def test_sixteen_bit_types_are_computed_in_float32():
    tree = arcs(dtype=torch.float32)
    short = tree.bfloat16()
    got, exact = fovea.tree_marginals(short), fovea.tree_marginals(short.float())
    assert got.arcs.dtype == torch.bfloat16
    assert torch.equal(got.arcs, exact.arcs.bfloat16())


def test_torch_func():
    tree = arcs(words=3, items=2)
    full = torch.func.jacrev(lambda a: fovea.tree_marginals(a).arcs)(tree)
    forward = torch.func.jacfwd(lambda a: fovea.tree_marginals(a).arcs)(tree)
    torch.testing.assert_close(full, forward)


def test_vmap_is_one_call_of_all_items():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*performance drop")  # one call for each item
        trees, lengths = torch.stack([arcs(), 2 * arcs()]), torch.tensor([[4, 1, 3], [2, 4, 0]])
        mapped = torch.vmap(fovea.tree_marginals)(trees, lengths)
        one = [fovea.tree_marginals(tree, n) for tree, n in zip(trees, lengths)]
        torch.testing.assert_close(tuple(mapped), tuple(torch.stack(parts) for parts in zip(*one)))
        unary = torch.stack([CHAIN[0], 2 * CHAIN[0]], 2)
        mapped = torch.vmap(fovea.chain_marginals, in_dims=(2, None, None), out_dims=1)(unary, CHAIN[1], LENGTHS)
        one = [fovea.chain_marginals(unary[:, :, n], CHAIN[1], LENGTHS) for n in range(2)]
        torch.testing.assert_close(tuple(mapped), tuple(torch.stack(parts, 1) for parts in zip(*one)))
        states = lambda u, p: fovea.chain_marginals(u, p).states
        for both in zip(*(jacobian(states, (0, 1))(*CHAIN) for jacobian in (torch.func.jacrev, torch.func.jacfwd))):
            torch.testing.assert_close(*both)
        tree = arcs().requires_grad_()
        found = fovea.tree_marginals(tree).arcs
        directions = torch.randn(2, *found.shape, dtype=torch.float64)
        (batched,) = torch.autograd.grad(found, tree, directions, is_grads_batched=True, retain_graph=True)
        torch.testing.assert_close(batched, torch.stack([torch.autograd.grad(found, tree, d, retain_graph=True)[0] for d in directions]))


SECOND = {
    "forward of reverse": lambda f, x: torch.func.jacfwd(torch.func.jacrev(f))(x),
    "reverse of forward": lambda f, x: torch.func.jacrev(torch.func.jacfwd(f))(x),
    "reverse of reverse": lambda f, x: torch.func.jacrev(torch.func.jacrev(f))(x),
    "autograd": lambda f, x: torch.autograd.functional.hessian(f, x),
}


@pytest.mark.parametrize("way", SECOND)
def test_the_log_partition_has_second_derivatives(way):
    # They are the first derivatives of the marginals.
    unary, pairwise = CHAIN
    got = SECOND[way](lambda u: fovea.chain_marginals(u, pairwise, LENGTHS).log_partition.sum(), unary)
    torch.testing.assert_close(got, torch.func.jacrev(lambda u: fovea.chain_marginals(u, pairwise, LENGTHS).states)(unary))
    got = SECOND[way](lambda p: fovea.chain_marginals(unary, p, LENGTHS).log_partition.sum(), pairwise)
    torch.testing.assert_close(got, torch.func.jacrev(lambda p: fovea.chain_marginals(unary, p, LENGTHS).transitions.sum((0, 1)))(pairwise))
    got = SECOND[way](lambda a: fovea.tree_marginals(a).log_partition.sum(), arcs())
    torch.testing.assert_close(got, torch.func.jacrev(lambda a: fovea.tree_marginals(a).arcs)(arcs()))


def test_what_is_past_a_length_is_in_no_derivative():
    bad = arcs()
    bad[:, 2:] = torch.nan
    bad[:, :, 2:] = torch.nan
    _, found = torch.func.jvp(lambda a: fovea.tree_marginals(a, torch.tensor([2, 2, 1])).log_partition, (bad,), (bad,))
    assert found.isfinite().all()


@pytest.mark.parametrize("way", SECOND)
def test_a_second_derivative_of_marginals_is_refused_by_name(way):
    with pytest.raises(RuntimeError, match="second derivative"):
        SECOND[way](lambda a: fovea.tree_marginals(a).arcs.square().sum(), arcs())
    with pytest.raises(RuntimeError, match="second derivative"):
        SECOND[way](lambda p: fovea.chain_marginals(CHAIN[0], p).states.square().sum(), CHAIN[1])


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: fovea.chain_marginals(torch.randn(3, 5), CHAIN[1]), r"unary: \[3, 5\], expected"),
        (lambda: fovea.chain_marginals(CHAIN[0], torch.randn(3, 3)), r"pairwise: \[3, 3\], expected"),
        (lambda: fovea.chain_marginals(*CHAIN, torch.tensor([5, 6, 1])), r"lengths\[1\]: 6, expected 0 .. 5"),
        (lambda: fovea.chain_marginals(*CHAIN, torch.tensor([5])), r"lengths: \[1\]"),
        (lambda: fovea.tree_marginals(torch.randn(2, 3, 4)), r"arcs: \[2, 3, 4\], expected"),
        (lambda: fovea.tree_marginals(torch.zeros(2, 3, 3, dtype=torch.int64)), "arcs: Long, expected"),
        (lambda: fovea.tree_marginals(torch.randn(2, 0, 0)), "at least one position"),
        (lambda: fovea.tree_marginals(arcs(), torch.tensor([4, 4, 4], device="meta")), "lengths: on meta, expected cpu as arcs"),
        (lambda: fovea.chain_marginals(*CHAIN, LENGTHS.to("meta")), "lengths: on meta, expected cpu as unary"),
    ],
)
def test_what_is_wrong_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_nothing_to_do_and_one_word():
    assert fovea.tree_marginals(torch.randn(0, 3, 3)).arcs.shape == (0, 3, 3)
    one = fovea.tree_marginals(torch.tensor([[[3.0]]]))
    assert one.arcs.item() == 1 and one.log_partition.item() == 3
    none = fovea.tree_marginals(arcs(), torch.tensor([0, 4, 4]))
    assert none.log_partition[0] == 0 and none.arcs[0].abs().sum() == 0
