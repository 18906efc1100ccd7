"""What attend promises whatever the choices."""

import pytest
import torch
from cases import NORMALISERS, SCORES, operands

import fovea


def run(threads, score, normaliser):
    torch.set_num_threads(threads)
    generator = torch.Generator().manual_seed(5)
    query_width, key_width, build = SCORES[score]
    query, key, value = (
        torch.randn(2, 2, n, width, generator=generator, requires_grad=True)
        for n, width in ((131, query_width), (97, key_width), (97, 8))
    )
    chosen = build()
    for name, array in vars(chosen).items():
        if isinstance(array, torch.Tensor):
            object.__setattr__(chosen, name, array.detach().float().requires_grad_())
    out = fovea.attend(query, key, value, chosen, NORMALISERS[normaliser](), dropout_p=0.2, seed=3)
    out.square().sum().backward()
    return [out.detach(), query.grad, key.grad, value.grad]


@pytest.mark.parametrize("score", ["dot", "bilinear", "additive", "rank_one"])
@pytest.mark.parametrize("normaliser", ["softmax", "sigmoid", "sparsemax", "entmax", "top_k"])
def test_is_bitwise_the_same_for_one_and_two_threads(score, normaliser):
    before = torch.get_num_threads()
    try:
        for one, two in zip(run(1, score, normaliser), run(2, score, normaliser)):
            assert torch.equal(one, two)
    finally:
        torch.set_num_threads(before)


def test_dropout_follows_the_seed():
    query, key, value = operands("dot")
    drop = lambda seed: fovea.attend(query, key, value, dropout_p=0.5, seed=seed)
    assert torch.equal(drop(1), drop(1))
    assert not torch.equal(drop(1), drop(2))
    torch.manual_seed(0)
    first = fovea.attend(query, key, value, dropout_p=0.5)
    torch.manual_seed(0)
    assert torch.equal(first, fovea.attend(query, key, value, dropout_p=0.5))


def test_dropout_keeps_the_mean():
    query, key = torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 4096, 2)
    value = torch.ones(1, 1, 4096, 1)
    mean = torch.stack([fovea.attend(query, key, value, dropout_p=0.25, seed=s) for s in range(16)]).mean()
    # 65536 weights of variance p / (1 - p): three standard errors are 0.007.
    assert abs(mean.item() - 1) < 0.007


def test_an_empty_row_gives_zero_and_is_counted():
    query, key, value = operands("dot")
    keep = torch.ones(5, 7, dtype=torch.bool)
    keep[2] = False
    out, lse, empty = fovea.attend(
        query, key, value, structure=fovea.Keep(keep), return_lse=True, return_empty_rows=True
    )
    assert (out[:, :, 2] == 0).all() and (lse[:, :, 2] == -torch.inf).all() and empty.item() == 2 * 2
    out.sum().backward()
    assert (query.grad[:, :, 2] == 0).all() and query.grad.isfinite().all()
    with pytest.raises(ValueError, match="structure: 4 rows without a key"):
        fovea.attend(query, key, value, structure=fovea.Keep(keep), allow_empty_rows=False)
    keep[2, 1] = True
    fovea.attend(query, key, value, structure=fovea.Keep(keep), allow_empty_rows=False)


def test_nan_in_masked_places_stays_there():
    query, key, value = (x.detach() for x in operands("dot"))
    lengths = torch.tensor([4, 6])
    clean = fovea.attend(query, key, value, key_lengths=lengths)
    for b, n in enumerate(lengths):
        key[b, :, n:] = value[b, :, n:] = torch.nan
    for x in (query, key, value):
        x.requires_grad_()
    out = fovea.attend(query, key, value, key_lengths=lengths)
    assert torch.allclose(out, clean)
    out.sum().backward()
    assert all(x.grad.isfinite().all() for x in (query, key, value))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_stored_and_computed_in_single(dtype):
    query, key, value = (x.detach().to(dtype).requires_grad_() for x in operands("dot"))
    out, lse = fovea.attend(query, key, value, return_lse=True)
    assert out.dtype == dtype and lse.dtype == torch.float32
    wide = fovea.attend(query.float(), key.float(), value.float())
    assert torch.equal(out, wide.to(dtype))
    out.float().sum().backward()
    assert query.grad.dtype == dtype


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_is_that_of_libtorchs_attention(dtype):
    query, key, value = (x.detach().float().requires_grad_() for x in operands("dot"))
    bias = torch.randn(2, 5, 7, requires_grad=True)
    with torch.autocast("cpu", dtype=dtype):
        theirs = torch.nn.functional.scaled_dot_product_attention(query, key, value)
        ours = fovea.attend(query, key, value)
        mixed = fovea.attend(query.to(dtype), key, value, fovea.Dot().bias(bias))  # of two types, one under autocast
        assert fovea.weights(query, key).dtype == torch.float32
    assert ours.dtype == theirs.dtype == mixed.dtype == dtype
    assert torch.equal(ours, fovea.attend(query.to(dtype), key.to(dtype), value.to(dtype)))
    gradients = torch.autograd.grad(ours.float().sum() + mixed.float().sum(), (query, key, bias))
    assert [g.dtype for g in gradients] == [torch.float32] * 3
    with torch.autocast("cpu", dtype=dtype):
        wide = [x.detach().double() for x in (query, key, value)]
        assert fovea.attend(*wide).dtype == torch.nn.functional.scaled_dot_product_attention(*wide).dtype


def test_hard_sampling_follows_the_probabilities():
    logits = torch.tensor([0.1, 0.2, 0.3, 0.4]).log()
    query = logits.expand(1, 1, 20000, 4).contiguous()
    key, value = torch.zeros(1, 1, 4, 1), torch.eye(4)[None, None]
    out, log_probability = fovea.attend(
        query, key, value, fovea.Location(), fovea.Hard(sample=True), seed=2, return_lse=True
    )
    assert torch.allclose(out.mean(2).flatten(), logits.exp(), atol=0.015)
    assert torch.allclose((out * logits).sum(-1), log_probability, atol=1e-5)


def test_structures_compose_in_any_number_and_order():
    query, key, value = (x[:, :, :5].detach() for x in operands("dot"))
    ids = torch.tensor([0, 0, 1, 1, 1])
    i, j = torch.arange(5)[:, None], torch.arange(5)
    near, same, past = (i - j).abs() <= 1, ids[:, None] == ids, j <= i
    window, documents = fovea.Window(1, 1), fovea.Documents(ids, ids)
    for structure, mask in (
        (window & documents, near & same),
        (documents & window, near & same),
        (window & documents & fovea.Causal(), near & same & past),
        (fovea.Causal() & (window & documents), near & same & past),
        (fovea.Keep(past) & window & fovea.Dense(), near & past),
    ):
        kept = fovea.attend(query, key, value, structure=fovea.Keep(mask))
        torch.testing.assert_close(fovea.attend(query, key, value, structure=structure), kept, rtol=1e-12, atol=1e-12)
    with pytest.raises(TypeError, match="unsupported operand"):
        window & fovea.Softmax()


def test_modifiers_leave_the_score_they_are_put_on():
    plain = fovea.Dot()
    capped = plain.soft_cap(3.0)
    assert not plain._modifiers and len(capped._modifiers) == 1


def test_scale_may_be_given_in_either_place():
    query, key, value = operands("dot")
    assert torch.equal(fovea.attend(query, key, value, scale=0.3), fovea.attend(query, key, value, fovea.Dot(scale=0.3)))


def test_a_number_as_scale_takes_the_short_operator_and_is_checked_all_the_same(monkeypatch):
    query, key, value = operands("dot")
    expected = fovea.attend(query, key, value, scale=torch.tensor(0.3, dtype=query.dtype))
    with monkeypatch.context() as patch:
        patch.setattr("fovea._attend._attend", None)  # the long one
        assert torch.allclose(fovea.attend(query, key, value, scale=0.3), expected)
        fovea.attend(query, key, value, scale=0.3, structure=fovea.Causal())
    for wrong in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="^scale: (nan|inf), expected a finite number"):
            fovea.attend(query, key, value, scale=wrong)
    with pytest.raises(ValueError, match="scale: given twice"):
        fovea.attend(query, key, value, fovea.Dot(scale=0.2), scale=0.3)
    with pytest.raises(ValueError, match="scale: cosine has none"):
        fovea.attend(query, key, value, fovea.Cosine(), scale=0.3)


def test_explain_dispatch_names_the_path_and_the_reasons():
    query, key, value = operands("dot")
    said = fovea.explain_dispatch(query, key, value, normaliser=fovea.Sigmoid())
    assert said.startswith("engine: taken")
    assert "sdpa: " in said and "normaliser sigmoid" in said


def test_version_is_the_projects():
    assert fovea.__version__.count(".") == 2


def test_every_option_of_a_call_of_the_defaults_has_its_effect():
    query, key, value = (torch.randn(2, 2, 5, 8) for _ in range(3))
    causal, window = fovea.Causal(), fovea.Window(1, 0)
    plain = fovea.attend(query, key, value, structure=causal)
    changed = {
        "scale": fovea.attend(query, key, value, structure=causal, scale=2.0),
        "dropout_p": fovea.attend(query, key, value, structure=causal, dropout_p=0.5, seed=1),
        "key_lengths": fovea.attend(query, key, value, structure=causal, key_lengths=torch.tensor([1, 2])),
        "query_offset": fovea.attend(query, key, value, structure=causal, query_offset=2),
        "query_offset for each item": fovea.attend(query, key, value, structure=causal, query_offset=torch.tensor([2, 0])),
        "modifier": fovea.attend(query, key, value, fovea.Dot().soft_cap(0.1), structure=causal),
        "structure": fovea.attend(query, key, value, structure=causal & window),
        "sample": fovea.attend(query, key, value, normaliser=fovea.Hard(sample=True), seed=1),
    }
    assert [name for name, output in changed.items() if torch.equal(output, plain)] == []
    assert len(fovea.attend(query, key, value, structure=causal, return_lse=True, return_empty_rows=True)) == 3
    query[0, 0, 0, 0] = float("nan")
    with pytest.raises(ValueError, match="query"):
        fovea.attend(query, key, value, structure=causal, check_finite=True)
