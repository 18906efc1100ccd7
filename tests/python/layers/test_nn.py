"""`fovea.nn`: torch.nn's layers give the same numbers and exchange states; the others do what their formula says."""

import copy
import inspect
import io

import pytest
import torch

import fovea


def randn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed + sum(shape)))


def assert_same(ours, theirs, inputs):
    torch.testing.assert_close(ours, theirs)
    gradients = (torch.autograd.grad(x.square().sum(), inputs, retain_graph=True, allow_unused=True) for x in (ours, theirs))
    for a, b in zip(*gradients):
        torch.testing.assert_close(torch.zeros_like(b) if a is None else a, b)


# ---- multi-head attention ----

LAYERS = {
    "plain": {},
    "batch first": {"batch_first": True},
    "no bias": {"bias": False, "batch_first": True},
    "bias of key and value": {"add_bias_kv": True},
    "a zero key": {"add_zero_attn": True, "add_bias_kv": True, "batch_first": True},
    "other widths": {"kdim": 6, "vdim": 5, "batch_first": True},
}
CALLS = {
    "nothing": lambda n, h, length, keys: {},
    "padding": lambda n, h, length, keys: {"key_padding_mask": torch.arange(keys) >= torch.tensor([keys, 2, 3])[:n, None]},
    "float padding": lambda n, h, length, keys: {"key_padding_mask": randn(n, keys)},
    "a mask": lambda n, h, length, keys: {"attn_mask": (randn(length, keys) > 0.5).index_fill(1, torch.tensor([0]), False)},
    "a float mask": lambda n, h, length, keys: {"attn_mask": randn(n * h, length, keys)},
    "both": lambda n, h, length, keys: {
        "attn_mask": (randn(n * h, length, keys) > 1).index_fill(2, torch.tensor([0]), False),
        "key_padding_mask": torch.arange(keys) >= torch.tensor([keys, 2, 3])[:n, None],
    },
    "every head": lambda n, h, length, keys: {"average_attn_weights": False},
}


def pair(**options):
    """A layer of torch's, and ours with its state."""
    torch.manual_seed(3)
    theirs = torch.nn.MultiheadAttention(8, 2, dtype=torch.float64, **options)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    ours = fovea.nn.MultiheadAttention(8, 2, dtype=torch.float64, **options)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def operands(layer, queries=5, keys=7, count=3):
    shapes = [(count, queries, 8), (count, keys, layer.kdim), (count, keys, layer.vdim)]
    inputs = [randn(*shape, seed=n).requires_grad_() for n, shape in enumerate(shapes)]
    return inputs, [x if layer.batch_first else x.transpose(0, 1) for x in inputs]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("call", CALLS)
def test_multihead_attention_is_torchs(layer, call):
    ours, theirs = pair(**LAYERS[layer])
    inputs, given = operands(ours)
    options = CALLS[call](3, 2, 5, 7)
    (a, a_weights), (b, b_weights) = ours(*given, **options), theirs(*given, **options)
    assert a.shape == b.shape and a_weights.shape == b_weights.shape
    assert_same(a, b, inputs)
    assert_same(a_weights, b_weights, inputs[:2])
    assert ours(*given, need_weights=False, **options)[1] is None
    leaves = list(ours.parameters()), list(theirs.parameters())
    for x, y in zip(*(torch.autograd.grad(out.square().sum(), p) for out, p in zip((a, b), leaves))):
        torch.testing.assert_close(x, y)


def test_without_a_batch_and_with_a_hint_of_causality():
    ours, theirs = pair()
    x = randn(6, 8)
    for a, b in zip(ours(x, x, x), theirs(x, x, x)):
        torch.testing.assert_close(a, b)
    padding = torch.tensor([False] * 5 + [True])
    torch.testing.assert_close(ours(x, x, x, key_padding_mask=padding), theirs(x, x, x, key_padding_mask=padding))
    mask = torch.ones(6, 6, dtype=torch.bool).triu(1)
    expected = theirs(x, x, x, attn_mask=mask, is_causal=True)
    torch.testing.assert_close(ours(x, x, x, attn_mask=mask, is_causal=True), expected)
    torch.testing.assert_close(ours(x, x, x, is_causal=True), expected)


def test_states_move_both_ways_and_the_same_seed_makes_the_same_layer():
    torch.manual_seed(5)
    theirs = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    torch.manual_seed(5)
    ours = fovea.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for name, tensor in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], tensor), name
    theirs.load_state_dict(ours.state_dict())
    assert isinstance(ours, torch.nn.TransformerEncoderLayer) and isinstance(ours.self_attn, torch.nn.MultiheadAttention)


def test_a_row_without_a_key_is_zero_where_torchs_is_not_a_number():
    ours, theirs = pair(batch_first=True, bias=False)
    x = randn(2, 4, 8)
    padding = torch.tensor([[False] * 4, [True] * 4])  # a batch with an empty sequence
    a, b = (layer(x, x, x, key_padding_mask=padding)[0] for layer in (ours, theirs))
    torch.testing.assert_close(a[0], b[0])
    assert b[1].isnan().all() and (a[1] == 0).all()


@pytest.mark.parametrize(
    ("choices", "formula"),
    [
        ({"normaliser": fovea.Sigmoid()}, lambda e: e.sigmoid()),
        ({"normaliser": fovea.Softmax(torch.nn.Parameter(torch.zeros(2, dtype=torch.float64)))}, lambda e: e.exp() / (e.exp().sum(-1, True) + 1)),
        ({"score": fovea.Dot().soft_cap(0.5)}, lambda e: (0.5 * torch.tanh(e / 0.5)).softmax(-1)),
        ({"structure": fovea.Causal() & fovea.Window(1, 0)}, lambda e: e.masked_fill(~torch.ones(6, 6).tril().triu(-1).bool(), -torch.inf).softmax(-1)),
    ],
)
def test_the_choices_do_what_they_say(choices, formula):
    layer = fovea.nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64, **choices)
    x = randn(3, 6, 8)
    q, k, v = (y.view(3, 6, 2, 4).transpose(1, 2) for y in torch.nn.functional.linear(x, layer.in_proj_weight, layer.in_proj_bias).chunk(3, -1))
    expected = layer.out_proj((formula(q @ k.transpose(-1, -2) / 2) @ v).transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer(x, x, x)[0], expected)


def test_parameters_of_a_choice_are_the_modules():
    weight = torch.nn.Parameter(torch.randn(2, 4))
    layer = fovea.nn.MultiheadAttention(8, 2, score=fovea.Additive(weight).alibi(torch.tensor([0.5, 0.25])), batch_first=True)
    assert dict(layer.named_parameters())["score.weight"] is weight
    assert "score.weight" in layer.state_dict() and len([n for n in layer.state_dict() if n.startswith("score")]) == 1
    x = torch.randn(2, 5, 8)
    out = layer(x, x, x)[0]
    out.sum().backward()
    assert weight.grad.abs().sum() > 0
    # Copied, saved, moved, and called with other parameters: always the module's own.
    twin = copy.deepcopy(layer)
    with torch.no_grad():
        twin.score.weight.zero_()
    assert not torch.allclose(twin(x, x, x)[0], out) and torch.allclose(layer(x, x, x)[0], out)
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    torch.testing.assert_close(torch.load(file, weights_only=False)(x, x, x)[0], out)
    zeros = {name: torch.zeros_like(p) if name == "score.weight" else p for name, p in layer.named_parameters()}
    torch.testing.assert_close(torch.func.functional_call(layer, zeros, (x, x, x))[0], twin(x, x, x)[0])
    assert layer.double()(x.double(), x.double(), x.double())[0].dtype == torch.float64


def test_layers_in_bfloat16_in_inference_mode_and_compiled():
    layer = fovea.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dropout=0.0, normaliser=fovea.Entmax(1.5))
    x = torch.randn(2, 6, 16)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), layer(x))
    attention = fovea.nn.MultiheadAttention(16, 4, batch_first=True)
    for a, b in zip(torch.compile(attention, fullgraph=True, backend="aot_eager")(x, x, x), attention(x, x, x)):
        torch.testing.assert_close(a, b)
    with torch.inference_mode():
        half = copy.deepcopy(layer).bfloat16()
        torch.testing.assert_close(half(x.bfloat16()).float(), layer(x), atol=0.1, rtol=0.1)


def test_torch_func_reaches_the_parameters_weights_or_not():
    layer = fovea.nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64)
    x, parameters = randn(2, 5, 8), dict(layer.named_parameters())
    for place in (0, 1):
        loss = lambda p: torch.func.functional_call(layer, p, (x, x, x))[place].square().sum()
        ours = torch.func.grad(loss)(parameters)
        theirs = torch.autograd.grad(layer(x, x, x)[place].square().sum(), list(parameters.values()), allow_unused=True)
        for name, gradient in zip(parameters, theirs):
            torch.testing.assert_close(ours[name], torch.zeros_like(ours[name]) if gradient is None else gradient)


def test_dropout_acts_in_training_alone():
    layer = fovea.nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True)
    x = torch.randn(2, 9, 8)
    assert not torch.equal(layer(x, x, x)[0], layer(x, x, x)[0])
    layer.eval()
    assert torch.equal(layer(x, x, x)[0], layer(x, x, x)[0])


@pytest.mark.parametrize(("name", "mask", "said"), [
    ("attn_mask", torch.zeros(3, 3, dtype=torch.bool), r"attn_mask: shape \[3, 3\], expected \[4, 4\] or \[4, 4, 4\]"),
    ("key_padding_mask", torch.zeros(3, 4, dtype=torch.bool), r"key_padding_mask: shape \[3, 4\], expected \[2, 4\]$"),
    ("key_padding_mask", torch.zeros(4, dtype=torch.bool), r"key_padding_mask: shape \[4\], expected \[2, 4\]$"),
    ("attn_mask", torch.zeros(4, 4, dtype=torch.int32), "attn_mask: a tensor .* of int32, expected bool"),
])  # fmt: skip
def test_a_wrong_mask_is_named(name, mask, said):
    x = torch.randn(2, 4, 8)
    with pytest.raises(ValueError, match=said):
        fovea.nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x, **{name: mask})
    with pytest.raises(TypeError, match="normaliser: .*expected a Normaliser"):
        fovea.nn.MultiheadAttention(8, 2, normaliser=fovea.Dot())


# ---- the layers of a Transformer ----


@pytest.mark.parametrize("options", [{}, {"norm_first": True, "activation": "gelu"}, {"batch_first": True, "bias": False}])
def test_encoder_and_decoder_layers_are_torchs(options):
    torch.manual_seed(1)
    options = {"dropout": 0.0, "dtype": torch.float64, **options}
    x, memory = randn(4, 4, 8).requires_grad_(), randn(4, 4, 8, seed=1).requires_grad_()
    padding = torch.tensor([[False, False, False, True]] * 4)
    causal = torch.ones(4, 4, dtype=torch.bool).triu(1)
    theirs = torch.nn.TransformerEncoderLayer(8, 2, 16, **options)
    ours = fovea.nn.TransformerEncoderLayer(8, 2, 16, **options)
    ours.load_state_dict(theirs.state_dict())
    assert_same(ours(x, causal, padding), theirs(x, causal, padding), (x,))
    assert_same(ours(x, is_causal=True), theirs(x, causal), (x,))
    with torch.no_grad():
        torch.testing.assert_close(ours.eval()(x, None, padding), theirs.train()(x, None, padding))
    theirs = torch.nn.TransformerDecoderLayer(8, 2, 16, **options)
    ours = fovea.nn.TransformerDecoderLayer(8, 2, 16, **options)
    ours.load_state_dict(theirs.state_dict())
    call = dict(tgt_mask=causal, memory_key_padding_mask=padding)
    assert_same(ours(x, memory, **call), theirs(x, memory, **call), (x, memory))


def test_a_layer_serves_in_torchs_encoder():
    torch.manual_seed(2)
    layer = fovea.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    theirs = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0), 2, enable_nested_tensor=False)
    theirs.load_state_dict(encoder.state_dict())
    x, padding = torch.randn(2, 5, 8), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad():
        for mode in (True, False):
            torch.testing.assert_close(
                encoder.train(mode)(x, src_key_padding_mask=padding)[~padding], theirs.train(mode)(x, src_key_padding_mask=padding)[~padding]
            )


# ---- bags, kernels, additive attention ----


def test_additive_attention():
    layer = fovea.nn.AdditiveAttention(3, 4, 6).double()
    query, key, value = randn(2, 5, 3), randn(2, 7, 4), randn(2, 7, 2)
    lengths = torch.tensor([7, 4])
    scores = torch.tanh(layer.query_proj(query)[:, :, None] + layer.key_proj(key)[:, None]) @ layer.weight
    scores = scores.masked_fill(torch.arange(7) >= lengths[:, None, None], -torch.inf)
    torch.testing.assert_close(layer(query, key, value, key_lengths=lengths), scores.softmax(-1) @ value)
    torch.testing.assert_close(layer(query, key, value, key_padding_mask=torch.arange(7) >= lengths[:, None]), scores.softmax(-1) @ value)
    torch.testing.assert_close(layer.weights(query, key, key_lengths=lengths), scores.softmax(-1).detach())
    assert layer(query, key).shape == (2, 5, 4)


def test_kernel_regression_learns_its_bandwidth():
    layer = fovea.nn.NadarayaWatson(2, bandwidth=0.7).double()
    query, key, value = randn(5, 2), randn(30, 2), randn(30, 1)
    expected = (-(torch.cdist(query, key) / 0.7).square() / 2).softmax(-1)
    torch.testing.assert_close(layer(query, key, value), expected @ value)
    torch.testing.assert_close(layer.weights(query, key), expected)
    assert layer(query[None, None].expand(3, 4, -1, -1), key.expand(3, 4, -1, -1), value.expand(3, 4, -1, -1)).shape == (3, 4, 5, 1)
    layer(query, key, value).sum().backward()
    assert layer.log_bandwidth.grad.abs() > 0 and layer.metric.grad.shape == (2,)


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize("heads", [1, 3])
def test_bags_packed_padded_and_alone_agree(gated, heads):
    pool = fovea.nn.MultipleInstance(4, 6, gated, heads).double()
    bags = [randn(3, 4), randn(0, 4), randn(5, 4)]
    packed, offsets = torch.cat(bags), torch.tensor([0, 3, 3, 8])
    out = pool(packed, offsets)
    hidden = pool.proj(bags[2])
    scores = (hidden[:, :6].tanh() * hidden[:, 6:].sigmoid() if gated else hidden.tanh()) @ pool.weight.t()
    torch.testing.assert_close(out[2], (scores.softmax(0).t() @ bags[2]).flatten())
    torch.testing.assert_close(pool(bags[2])[0], out[2])
    assert (out[1] == 0).all()
    padded, mask = torch.zeros(3, 5, 4, dtype=torch.float64), torch.ones(3, 5, dtype=torch.bool)
    for n, bag in enumerate(bags):
        padded[n, : len(bag)], mask[n, : len(bag)] = bag, False
    torch.testing.assert_close(pool(padded, key_padding_mask=mask), out)
    torch.testing.assert_close(pool.weights(packed, offsets)[3:], scores.softmax(0).detach())
    assert pool.weights(padded, key_padding_mask=mask).shape == (3, heads, 5)
    out.sum().backward()
    assert pool.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("name", ["MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer"])
def test_the_arguments_are_torchs_in_their_order(name):
    ours, theirs = (list(inspect.signature(getattr(place, name)).parameters.values()) for place in (fovea.nn, torch.nn))
    assert [(p.name, p.default) for p in ours[: len(theirs)]] == [(p.name, p.default) for p in theirs]
    assert {"score", "normaliser", "structure"} <= {p.name for p in ours[len(theirs) :]}
