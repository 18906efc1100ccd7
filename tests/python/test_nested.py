"""NestedTensors in and out: each sequence as if it were alone, with gradients, and as torch's own attention has it."""

import pytest
import torch

import fovea

LENGTHS, KEY_LENGTHS = (3, 1, 6), (4, 2, 5)


def sequences(lengths, heads=2, width=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(n, heads, width, dtype=torch.float64, generator=generator).requires_grad_() for n in lengths]


def nested(parts):
    return torch.nested.as_nested_tensor(parts, layout=torch.jagged).transpose(1, 2)  # [B, H, lengths, E]


def alone(query, key, value, **options):
    batched = [x.transpose(0, 1)[None] for x in (query, key, value)]
    return fovea.attend(*batched, **options)


@pytest.mark.parametrize("options", [
    {}, {"structure": fovea.Causal()}, {"structure": fovea.Window(1, 1)}, {"normaliser": fovea.Sparsemax()}, {"score": fovea.Cosine(2.0)},
    {"scale": 0.3},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("key_lengths", [LENGTHS, KEY_LENGTHS, (2, 0, 5), (0, 0, 0)])
def test_each_sequence_is_as_if_alone(options, key_lengths):
    parts = sequences(LENGTHS), sequences(key_lengths, seed=1), sequences(key_lengths, width=3, seed=2)
    out = fovea.attend(*(nested(x) for x in parts), **options)
    assert out.is_nested and out.shape[0] == 3 and out.shape[1] == 2 and out.shape[3] == 3
    expected = [alone(*x, **options)[0] for x in zip(*parts)]
    for ours, theirs in zip(out.unbind(), expected):
        torch.testing.assert_close(ours, theirs)
    leaves = [x for part in parts for x in part]
    total = out.transpose(1, 2).values().square().sum()
    for a, b in zip(torch.autograd.grad(total, leaves), torch.autograd.grad(sum(x.square().sum() for x in expected), leaves)):
        torch.testing.assert_close(a, b)


def test_what_else_is_asked_for():
    parts = [sequences(LENGTHS, seed=n) for n in range(3)]
    out, lse, empty = fovea.attend(*(nested(x) for x in parts), return_lse=True, return_empty_rows=True)
    assert empty == 0 and lse.is_nested
    for n, ours in enumerate(lse.unbind()):
        torch.testing.assert_close(ours, alone(*(part[n] for part in parts), return_lse=True)[1][0])


@pytest.mark.parametrize("lengths", [(3, 5, 2), (3, 5, 8)])  # the last one ends before the storage does, or with it
def test_rows_between_sequences_are_not_read(lengths):
    padded = torch.randn(3, 8, 2, 4, dtype=torch.float64).requires_grad_()
    starts = torch.zeros(3, dtype=torch.long)
    x = torch.nested.narrow(padded, 1, starts, torch.tensor(lengths), layout=torch.jagged).transpose(1, 2)
    out = fovea.attend(x, x, x, structure=fovea.Causal())
    expected = [alone(*(row[:n],) * 3, structure=fovea.Causal())[0] for row, n in zip(padded, lengths)]
    for a, b in zip(out.unbind(), expected):
        torch.testing.assert_close(a, b)
    gradients = torch.autograd.grad(out.transpose(1, 2).values().square().sum(), padded), torch.autograd.grad(sum(b.square().sum() for b in expected), padded)
    torch.testing.assert_close(*gradients)


def test_in_the_place_of_torchs():
    parts = [[x.detach().float() for x in sequences(LENGTHS, seed=n)] for n in range(3)]
    inputs = [nested(part) for part in parts]
    ours, theirs = (f(*inputs) for f in (fovea.scaled_dot_product_attention, torch.nn.functional.scaled_dot_product_attention))
    for a, b in zip(ours.unbind(), theirs.unbind()):
        torch.testing.assert_close(a, b)
    causal = fovea.scaled_dot_product_attention(*inputs, is_causal=True)  # for which torch has nothing on the CPU
    for n, a in enumerate(causal.unbind()):
        torch.testing.assert_close(a, alone(*(part[n] for part in parts), structure=fovea.Causal())[0])


def test_what_is_wrong_is_named():
    query, other = nested(sequences(LENGTHS)), nested(sequences(KEY_LENGTHS))
    for call, said in (
        (lambda: fovea.attend(query, query, other), "value: sequences of other lengths, expected the key's"),
        (lambda: fovea.attend(query, torch.randn(3, 2, 6, 4), query), "key: a tensor, expected NestedTensors"),
        (lambda: fovea.attend(query, nested(sequences((1, 2))), nested(sequences((1, 2)))), r"key: 2 sequences, expected 3 \(the query's\)"),
        (lambda: fovea.attend(query, query, query, key_lengths=torch.tensor([1, 1, 1])), "key_lengths: given with NestedTensors"),
    ):
        with pytest.raises(ValueError, match=said):
            call()


def test_layers_take_them_and_weights_have_no_shape():
    x = torch.nested.as_nested_tensor([torch.randn(n, 16) for n in LENGTHS], layout=torch.jagged)
    attention = fovea.nn.MultiheadAttention(16, 4, batch_first=True)
    layer = fovea.nn.TransformerEncoderLayer(16, 4, 24, batch_first=True, structure=fovea.Causal()).eval()
    with torch.no_grad():
        for alone_, attended, whole in zip(x.unbind(), attention(x, x, x, need_weights=False)[0].unbind(), layer(x).unbind()):
            torch.testing.assert_close(attended, attention(alone_, alone_, alone_)[0])
            torch.testing.assert_close(whole, layer(alone_[None])[0])
    with pytest.raises(ValueError, match="need_weights: True with a NestedTensor, expected False"):
        attention(x, x, x)
    with pytest.raises(ValueError, match="batch_first: False with a NestedTensor, expected True"):
        fovea.nn.MultiheadAttention(16, 4)(x, x, x, need_weights=False)
    mask = torch.zeros(3, 6, dtype=torch.bool)
    for name, given in (("key_padding_mask", {"key_padding_mask": mask}), ("attn_mask", {"attn_mask": mask})):
        with pytest.raises(ValueError, match=f"{name}: given with a NestedTensor, expected none"):
            attention(x, x, x, need_weights=False, **given)
    with pytest.raises(ValueError, match="query: a NestedTensor, expected"):
        fovea.weights(nested(sequences(LENGTHS)), nested(sequences(LENGTHS)))
