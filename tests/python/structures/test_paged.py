"""Keys and values in pages: the same as in rows, whatever the call asks besides."""

import pytest
import torch

import fovea

B, H, HKV, L, E, PAGE, PAGES = 3, 4, 2, 5, 8, 4, 3
LENGTHS = torch.tensor([12, 5, 8])
CHOICES = {
    "plain": {},
    "bottom right": {"structure": fovea.Causal("bottom_right")},
    "window": {"structure": fovea.Causal("bottom_right") & fovea.Window(3, 0)},
    "streaming": {"structure": fovea.Causal("bottom_right") & (fovea.Window(2, 0) | fovea.First(1))},
    "alibi": {"score": fovea.Dot().alibi(torch.rand(H, dtype=torch.float64)), "structure": fovea.Causal("bottom_right")},
    "soft cap": {"score": fovea.Dot().soft_cap(2.0)},
    "entmax": {"normaliser": fovea.Entmax(1.5)},
    "offset": {"structure": fovea.Causal(), "query_offset": LENGTHS - L},
    "bias": {"score": fovea.Dot().bias(torch.randn(H, L, PAGE * PAGES, dtype=torch.float64))},
    "additive": {"score": fovea.Additive(torch.randn(H, E, dtype=torch.float64))},
}


def problem(dtype=torch.float64, queries=L):
    """A query, pools with NaN where no key is, a table with pages in any order, and the same keys and values in rows."""
    made = torch.Generator().manual_seed(7)
    query = torch.randn(B, H, queries, E, dtype=dtype, generator=made, requires_grad=True)
    table = torch.tensor([[9, 0, 4], [2, 7, -1], [1, 5, 99]])
    pools, rows = [], []
    for _ in range(2):
        pool = torch.full((10, PAGE, HKV, E), torch.nan, dtype=dtype)
        for b in range(B):
            for j in range(LENGTHS[b]):
                pool[table[b, j // PAGE], j % PAGE] = torch.randn(HKV, E, dtype=dtype, generator=made)
        pools.append(pool.requires_grad_())
        rows.append(pool.detach()[table.clamp(0, 9)].reshape(B, PAGES * PAGE, HKV, E).transpose(1, 2).requires_grad_())
    return query, pools, rows, table


def given(choices, table):
    """The arguments of the call on pages."""
    pages = fovea.Paged(table, LENGTHS)
    return {**choices, "structure": pages & choices["structure"] if "structure" in choices else pages}


@pytest.mark.parametrize("name", CHOICES)
def test_pages_are_rows(name):
    query, pools, rows, table = problem()
    gradient = torch.randn(B, H, L, E, dtype=torch.float64)
    out = fovea.attend(query, *pools, **given(CHOICES[name], table))
    expected = fovea.attend(query, *rows, key_lengths=LENGTHS, **CHOICES[name])
    torch.testing.assert_close(out, expected)
    ours = torch.autograd.grad(out, (query, *pools), gradient)
    theirs = torch.autograd.grad(expected, (query, *rows), gradient)
    torch.testing.assert_close(ours[0], theirs[0])
    for pool, row in zip(ours[1:], theirs[1:]):
        for b in range(B):
            for j in range(LENGTHS[b]):
                torch.testing.assert_close(pool[table[b, j // PAGE], j % PAGE], row[b, :, j])
        assert not pool[[3, 6, 8]].any()  # pages of no one


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("integers", [torch.int32, torch.int64])
def test_decoding_of_every_type_reads_pages_in_place(dtype, integers):
    query, pools, rows, table = problem(dtype, queries=1)
    pages = fovea.Paged(table.to(integers), LENGTHS.to(integers))
    out = fovea.attend(query, *pools, structure=pages & fovea.Causal("bottom_right"))
    torch.testing.assert_close(out, fovea.attend(query, *rows, key_lengths=LENGTHS, structure=fovea.Causal("bottom_right")))
    assert "decode: taken" in fovea.explain_dispatch(query, *pools, structure=pages)


def test_heads_may_lie_before_rows():
    """FlashInfer's HND layout is a view of this one."""
    query, pools, _, table = problem()
    other = [pool.detach().transpose(1, 2).contiguous().transpose(1, 2) for pool in pools]
    pages = fovea.Paged(table, LENGTHS)
    torch.testing.assert_close(fovea.attend(query, *other, structure=pages), fovea.attend(query, *pools, structure=pages))
    last = query[:, :, -1:]
    torch.testing.assert_close(fovea.attend(last, *other, structure=pages), fovea.attend(last, *pools, structure=pages))


def test_second_derivatives_tangents_and_vmap():
    query, pools, _, table = problem()
    pools = [pool.detach().nan_to_num(0.1).requires_grad_() for pool in pools]
    pages = fovea.Paged(table, LENGTHS) & fovea.Causal("bottom_right")
    small = (query[:, :2, :2].detach().requires_grad_(), *pools)

    def call(*operands):
        return fovea.attend(*operands, structure=pages)

    out = call(*small)
    first = torch.autograd.grad(out.square().sum(), small, create_graph=True)
    second = torch.autograd.grad(sum(x.square().sum() for x in first), small)
    assert all(x.isfinite().all() for x in second) and second[1].abs().sum() > 0
    assert torch.autograd.gradgradcheck(lambda q: call(q, *pools), (small[0],))
    mapped = torch.func.vmap(call, in_dims=(0, None, None))(torch.stack([small[0], 2 * small[0]]), *pools)
    torch.testing.assert_close(mapped[1], call(2 * small[0], *pools))
    _, tangent = torch.func.jvp(lambda k: call(small[0], k, pools[1]), (pools[0].detach(),), (torch.ones_like(pools[0]),))
    moved = (call(small[0], pools[0] + 1e-6, pools[1]) - call(small[0], pools[0] - 1e-6, pools[1])) / 2e-6
    torch.testing.assert_close(tangent, moved, atol=1e-7, rtol=1e-5)


def test_weights_have_a_column_for_each_key_of_the_table():
    query, pools, rows, table = problem()
    pages = fovea.Paged(table, LENGTHS)
    torch.testing.assert_close(
        fovea.weights(query, pools[0], structure=pages), fovea.weights(query, rows[0], key_lengths=LENGTHS), equal_nan=True
    )
    traced = torch.ops.fovea.weights(
        *(x.detach().to("meta") for x in (query, pools[0])), "dot;softmax;paged:table=@,lengths=@", [table.to("meta"), LENGTHS.to("meta")]
    )
    assert traced[0].shape == (B, H, L, PAGE * PAGES)


def test_opcheck_and_compile_without_a_break():
    query, pools, _, table = problem(torch.float32)
    pools = [pool.detach().nan_to_num(0.1).requires_grad_() for pool in pools]
    arguments = (query, *pools, "dot;softmax;paged:table=@,lengths=@&causal", [table, LENGTHS])
    torch.library.opcheck(torch.ops.fovea.attend.default, arguments)

    def step(query, key, value, table, lengths):
        return fovea.attend(query, key, value, structure=fovea.Paged(table, lengths) & fovea.Causal("bottom_right"))

    compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
    for lengths in (LENGTHS, LENGTHS - 2):
        out = compiled(query, *pools, table, lengths)
        torch.testing.assert_close(out, step(query, *pools, table, lengths))
        for ours, theirs in zip(*(torch.autograd.grad(f(query, *pools, table, lengths).sum(), pools) for f in (compiled, step))):
            torch.testing.assert_close(ours, theirs)


def test_sequences_without_keys_have_outputs_of_zero():
    query, pools, _, table = problem()
    out, empty = fovea.attend(query, *pools, structure=fovea.Paged(table, torch.tensor([0, 5, 0])), return_empty_rows=True)
    assert not out[[0, 2]].any() and out[1].all() and empty == 2 * H * L
    none = torch.zeros(B, dtype=torch.int64)
    assert not fovea.attend(query, *pools, structure=fovea.Paged(table, none)).any()
    assert not fovea.attend(query[:, :, :1], *pools, structure=fovea.Paged(table, none)).any()
    nothing = fovea.Paged(table[:0], LENGTHS[:0])
    assert fovea.attend(query[:0], *pools, structure=nothing).shape == (0, H, L, E)
    no_pages = [pool[:0] for pool in pools]
    assert not fovea.attend(query, *no_pages, structure=fovea.Paged(table, none)).any()


@pytest.mark.parametrize(
    ("table", "lengths", "message"),
    [
        ([[10, 0, 4], [2, 7, -1], [1, 5, 99]], LENGTHS, r"structure.table\[0\]\[0\]: 10, expected between 0 and 9 \(the pages\)"),
        ([[9, 0, 4], [2, -1, -1], [1, 5, 99]], LENGTHS, r"structure.table\[1\]\[1\]: -1, expected between 0 and 9"),
        ([[9, 0, 4], [2, 7, -1], [1, 5, 3]], torch.tensor([12, 5, 13]), r"structure.lengths\[2\]: 13, expected between 0 and 12"),
        ([[9, 0, 4], [2, 7, -1]], LENGTHS, r"structure.table: size 2 in dimension 0, expected 3 \(the query's batch\)"),
    ],
)
def test_what_is_wrong_is_named(table, lengths, message):
    query, pools, _, _ = problem()
    with pytest.raises(ValueError, match=message):
        fovea.attend(query, *pools, structure=fovea.Paged(torch.tensor(table), lengths))


def test_what_has_no_meaning_is_refused():
    query, pools, _, table = problem()
    pages = fovea.Paged(table, LENGTHS)
    with pytest.raises(RuntimeError, match="key_lengths with paged"):
        fovea.attend(query, *pools, structure=pages, key_lengths=LENGTHS)
    with pytest.raises(ValueError, match="Paged inside |, expected it in & only"):
        pages | fovea.Causal()
    with pytest.raises(ValueError, match="Paged.table: a tensor .* of float32, expected a tensor of whole numbers"):
        fovea.Paged(table.float(), LENGTHS)
    with pytest.raises(ValueError, match="structure: Paged, expected keys and values in rows"):
        fovea.attend(query, *pools, structure=pages & fovea.Where(lambda b, h, i, j: i >= j))
