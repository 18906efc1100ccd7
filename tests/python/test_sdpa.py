"""`fovea.scaled_dot_product_attention` is torch's: the same numbers, gradients, shapes and refusals, over a wide random sweep."""

import inspect
import random

import pytest
import torch

import fovea

THEIRS = torch.nn.functional.scaled_dot_product_attention
OURS = fovea.scaled_dot_product_attention


def thinned(sizes, rng):
    """Sizes that broadcast to these: some of them 1, some of the first left out."""
    sizes = [1 if rng.random() < 0.25 else n for n in sizes]
    return sizes[rng.randrange(len(sizes) + 1) if rng.random() < 0.2 else 0:]


def problem(seed):
    """Operands and options of a call that torch takes."""
    rng = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    dtype = rng.choice([torch.float64] * 3 + [torch.float32, torch.bfloat16, torch.float16])
    lead = [rng.choice([0, 1, 2, 3] if rng.random() < 0.1 else [1, 2, 3]) for _ in range(rng.choice([0, 1, 2, 2, 2, 3]))]
    queries, keys = (rng.choice([0, 1, 2, 5, 9, 17, 33] if rng.random() < 0.1 else [1, 2, 5, 9, 17, 33]) for _ in range(2))
    width, value_width = rng.choice([1, 4, 8, 11]), rng.choice([1, 3, 8])
    grouped = len(lead) > 0 and rng.random() < 0.25
    if grouped:
        heads = rng.choice([1, 2, 4])
        key_heads, value_heads = rng.choice([1, 2]), rng.choice([1, 2])
        leads = [[*thinned(lead[:-1], rng), h] for h in (heads * 2, key_heads, value_heads)]
        full = [*lead[:-1], heads * 2]
    else:
        leads = [thinned(lead, rng) for _ in range(3)]
        full = lead

    def tensor(*shape):
        x = torch.randn(*shape, dtype=torch.float64, generator=generator).to(dtype)
        if len(shape) > 2 and rng.random() < 0.3:
            x = x.transpose(-2, -3).contiguous().transpose(-2, -3)  # as a transformer's heads lie
        elif rng.random() < 0.2:
            x = x.repeat_interleave(2, -1)[..., ::2]
        return x.requires_grad_()

    operands = [tensor(*leads[0], queries, width), tensor(*leads[1], keys, width), tensor(*leads[2], keys, value_width)]
    options = {"enable_gqa": grouped, "scale": rng.choice([None, None, 0.3, -1.0, 0.0, 2])}
    kind = rng.choice(["none", "causal", "bool", "float", "infinite"])
    if kind == "causal":
        options["is_causal"] = True
    elif kind != "none":
        skipped = 3 if grouped else 2
        met = [*torch.broadcast_shapes(operands[0].shape[:-skipped], operands[1].shape[:-skipped]), *operands[0].shape[-skipped:-1]]
        shape = [1 if rng.random() < 0.3 else n for n in [*met, keys]]
        shape = shape[rng.randrange(len(shape) - 1) if rng.random() < 0.4 else 0:]
        mask = torch.randn(*shape, dtype=torch.float64, generator=generator)
        if kind == "bool":
            options["attn_mask"] = mask > -0.5
        else:
            if kind == "infinite":
                mask = mask.masked_fill(mask < 0, -torch.inf)
            options["attn_mask"] = mask.to(rng.choice([dtype, torch.float32]))
            if dtype == torch.float64 and kind == "float":
                options["attn_mask"] = mask.clone().requires_grad_()
    return operands, options


def results(function, operands, options, dtype):
    """The output and the gradients of every leaf, computed in a type."""
    leaves = [x.detach().to(dtype).requires_grad_() for x in operands]
    options = dict(options)
    if (mask := options.get("attn_mask")) is not None and mask.is_floating_point():
        options["attn_mask"] = mask.detach().to(dtype if mask.dtype == operands[0].dtype else torch.float32).requires_grad_(mask.requires_grad)
        leaves += [options["attn_mask"]] if mask.requires_grad else []
    out = function(*leaves[:3], **options)
    gradients = torch.autograd.grad(out.square().sum(), leaves, allow_unused=True) if out.requires_grad else ()
    return [out.detach(), *(torch.zeros_like(x) if g is None else g for x, g in zip(leaves, gradients))]


def check(operands, options):
    """Within twice the distance of torch's result from torch's result in double precision."""
    dtype = operands[0].dtype
    for a, b, exact in zip(*(results(*x) for x in ((OURS, operands, options, dtype), (THEIRS, operands, options, dtype),
                                                   (THEIRS, operands, options, torch.float64))), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        if exact.numel() and not exact.isnan().any():  # of a row without a key libtorch's gradients may be
            allowed = 2 * (b - exact).abs().max() + 128 * torch.finfo(dtype).eps * max(1.0, exact.abs().max())
            assert (a - exact).abs().max() <= allowed, f"{(a - exact).abs().max()} away, allowed {allowed}"


@pytest.mark.parametrize("start", range(0, 1500, 300))
def test_a_random_call_equals_torchs_forward_and_backward(start):
    for seed in range(start, start + 300):
        operands, options = problem(seed)
        try:
            check(operands, options)
        except Exception as error:
            shapes = [list(x.shape) for x in operands], operands[0].dtype, {n: getattr(o, "shape", o) for n, o in options.items()}
            raise AssertionError(f"seed {seed}: {shapes}: {error}") from error


def test_the_signature_is_torchs():
    names = ["query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa"]
    parameters = inspect.signature(OURS).parameters
    assert list(parameters) == names
    assert [parameters[n].default for n in names[3:]] == [None, 0.0, False, None, False]
    operands = randn(2, 3, 7, 4), randn(2, 3, 9, 4), randn(2, 3, 9, 5)
    torch.testing.assert_close(OURS(*operands, None, 0.0, True), THEIRS(*operands, None, 0.0, True))


def randn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


REFUSED = {
    "one dimension": lambda f: f(randn(4), randn(5, 4), randn(5, 6)),
    "heads that do not broadcast": lambda f: f(randn(2, 4, 3, 4), randn(2, 2, 5, 4), randn(2, 2, 5, 6)),
    "heads that do not divide": lambda f: f(randn(1, 4, 3, 4), randn(1, 3, 5, 4), randn(1, 3, 5, 6), enable_gqa=True),
    "groups without heads": lambda f: f(randn(3, 4), randn(5, 4), randn(5, 6), enable_gqa=True),
    "a mask and is_causal": lambda f: f(randn(2, 3, 4), randn(2, 5, 4), randn(2, 5, 6), attn_mask=randn(3, 5), is_causal=True),
    "a dropout below zero": lambda f: f(*[randn(2, 2, 3, 4)] * 3, dropout_p=-1.0),
    "a mask of one dimension": lambda f: f(*[randn(2, 2, 3, 4)] * 3, attn_mask=randn(3)),
    "a mask of whole numbers": lambda f: f(*[randn(2, 2, 3, 4)] * 3, attn_mask=torch.ones(3, 3, dtype=torch.int32)),
    "a mask of more dimensions": lambda f: f(*[randn(2, 2, 3, 4)] * 3, attn_mask=randn(3, 2, 2, 3, 3)),
    "a mask of a larger batch": lambda f: f(*[randn(1, 2, 3, 4)] * 3, attn_mask=randn(3, 2, 3, 3)),
    "a mask of another length": lambda f: f(*[randn(2, 2, 3, 4)] * 3, attn_mask=randn(3, 4)),
    "types that differ": lambda f: f(randn(2, 3, 4), randn(2, 3, 4).double(), randn(2, 3, 4)),
    "widths that differ": lambda f: f(randn(2, 4, 3, 4), randn(2, 4, 5, 5), randn(2, 4, 5, 6)),
    "lengths that differ": lambda f: f(randn(2, 4, 3, 4), randn(2, 4, 5, 4), randn(2, 4, 6, 6)),
    "a dropout above one": lambda f: f(*[randn(2, 2, 3, 4)] * 3, dropout_p=1.5),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_torch_refuses_is_refused_with_the_same_exception(name):
    with pytest.raises(Exception) as theirs:
        REFUSED[name](THEIRS)
    with pytest.raises(type(theirs.value)) as ours:
        REFUSED[name](OURS)
    assert str(ours.value) == str(theirs.value)


def test_none_is_named():
    x = randn(1, 2, 3, 4)
    for place, name in enumerate(("query", "key", "value")):
        with pytest.raises(TypeError, match=f"{name}: None, expected a torch.Tensor"):
            OURS(*(None if n == place else x for n in range(3)))


def test_dropout_drops_its_share_and_all_of_it():
    value = torch.ones(1, 1, 400, 8)
    query = torch.zeros(1, 1, 50, 4)
    torch.manual_seed(0)
    out = OURS(query, torch.zeros(1, 1, 400, 4), value, dropout_p=0.3)
    assert 0.9 < out.mean() < 1.1 and out.std() > 0.01
    assert OURS(query, torch.zeros(1, 1, 400, 4), value, dropout_p=1.0).abs().max() == 0


@pytest.mark.parametrize("dynamic", [False, True])
def test_it_compiles_without_a_graph_break(dynamic):
    mask = randn(7, 9).gt(-0.5)

    def model(query, key, value, bias):
        plain = OURS(query, key, value, is_causal=True)
        masked = OURS(query[0], key, value[:1], attn_mask=mask, scale=0.5)
        return plain.square().sum() + masked.square().sum() + OURS(query, key, value, attn_mask=bias).sum()

    inputs = [randn(2, 3, 7, 4), randn(2, 3, 9, 4), randn(2, 3, 9, 5), randn(3, 7, 9)]
    inputs = [x.requires_grad_() for x in inputs]
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for a, b in zip(*(torch.autograd.grad(f(*inputs), inputs) for f in (compiled, model))):
        torch.testing.assert_close(a, b)


def test_it_takes_torchs_place_in_a_module(monkeypatch):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dropout=0.0)
    x = randn(2, 6, 16)
    theirs = layer(x, src_mask=torch.triu(torch.full((6, 6), -torch.inf), 1))
    calls = []
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", lambda *a, **k: calls.append(1) or OURS(*a, **k))
    torch.testing.assert_close(layer(x, src_mask=torch.triu(torch.full((6, 6), -torch.inf), 1)), theirs)
    assert calls


def test_autocast_and_inference_mode_and_double_backward():
    operands = [randn(2, 2, 5, 4).double().requires_grad_() for _ in range(3)]
    with torch.autocast("cpu", torch.bfloat16):
        single = [x.detach().float() for x in operands]
        assert OURS(*single).dtype == THEIRS(*single).dtype == torch.bfloat16
        mixed = [single[0], *(x.bfloat16() for x in single[1:])]
        assert OURS(*mixed).dtype == torch.bfloat16
    with torch.inference_mode():
        torch.testing.assert_close(OURS(*operands), THEIRS(*operands))
    assert torch.autograd.gradgradcheck(lambda *x: OURS(*x, is_causal=True), operands)
