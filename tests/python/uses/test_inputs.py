"""Inputs as they come: of any strides, of no size, shared, and of the wrong kind."""

import numpy as np
import pytest
import torch

import fovea

LAYOUTS = {
    "channels last": lambda: torch.randn(2, 4, 9, 8).to(memory_format=torch.channels_last),
    "heads after rows": lambda: torch.randn(2, 9, 4, 8).transpose(1, 2),
    "every other number": lambda: torch.randn(2, 4, 9, 16)[..., ::2],
    "reversed sizes": lambda: torch.randn(8, 9, 4, 2).permute(3, 2, 1, 0),
    "one head for all": lambda: torch.randn(2, 1, 9, 8).expand(2, 4, 9, 8),
    "one item for all": lambda: torch.randn(1, 4, 9, 8).expand(2, 4, 9, 8),
    "inside a larger one": lambda: torch.randn(3, 6, 20, 12)[1:, 1:5, 4:13, 2:10],
    "one row for all": lambda: torch.randn(2, 4, 1, 8).expand(2, 4, 9, 8),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("normaliser", [fovea.Softmax(), fovea.Sparsemax()])
def test_strides_do_not_change_the_answer(name, normaliser):
    x = LAYOUTS[name]()
    plain = x.contiguous().requires_grad_()
    odd = x.detach().requires_grad_()
    outs = [fovea.attend(t, t, t, normaliser=normaliser, structure=fovea.Window(3, 1)) for t in (odd, plain)]
    torch.testing.assert_close(*outs)
    torch.testing.assert_close(*(torch.autograd.grad(out.square().sum(), t)[0] for out, t in zip(outs, (odd, plain))))


@pytest.mark.parametrize("shape", [(0, 2, 3, 4), (2, 0, 3, 4), (2, 2, 0, 4), (2, 2, 3, 0)])
@pytest.mark.parametrize("structure", [fovea.Dense(), fovea.Causal(), fovea.Window(2, 0), fovea.First(1)])
def test_a_size_of_zero_is_a_size(shape, structure):
    x = torch.zeros(*shape, requires_grad=True)
    out = fovea.attend(x, x, x, structure=structure)
    assert out.shape == shape
    out.sum().backward()
    assert x.grad is not None and x.grad.shape == shape


def test_no_keys_are_an_output_of_zero():
    query, none = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 0, 4)
    out, empty = fovea.attend(query, none, none, return_empty_rows=True)
    assert not out.any() and empty == 2 * 3 * 5


@pytest.mark.parametrize("size", [(0, 5, 16), (2, 0, 16)])
def test_layers_take_a_batch_of_none(size):
    for layer in (fovea.nn.TransformerEncoderLayer(16, 2, 16, batch_first=True), fovea.nn.TransformerDecoderLayer(16, 2, 16, batch_first=True)):
        x = torch.randn(*size)
        assert (layer(x) if isinstance(layer, fovea.nn.TransformerEncoderLayer) else layer(x, torch.randn(size[0], 3, 16))).shape == size
    assert fovea.nn.GATConv(16, 4, heads=2)(torch.randn(0, 16), torch.zeros(2, 0, dtype=torch.int64)).shape == (0, 8)
    assert fovea.nn.MultipleInstance(6, 4)(torch.randn(0, 6), torch.tensor([0])).shape == (0, 6)
    assert fovea.nn.MultipleInstance(0, 4)(torch.randn(2, 3, 0)).shape == (2, 0)
    assert fovea.nn.NadarayaWatson()(torch.randn(2, 3), torch.randn(0, 3), torch.randn(0, 1)).eq(0).all()
    assert fovea.nn.NadarayaWatson()(torch.randn(0, 4, 2, 3), torch.randn(0, 4, 5, 3), torch.randn(0, 4, 5, 1)).shape == (0, 4, 2, 1)


X = torch.zeros(1, 1, 2, 3)
ARRAY = np.zeros((2, 3), dtype=np.float32)
CALLS = {
    "query": [
        lambda: fovea.attend(ARRAY, X, X),
        lambda: fovea.scaled_dot_product_attention(ARRAY, X, X),
        lambda: fovea.weights(ARRAY, X),
        lambda: fovea.explain_dispatch(ARRAY, X, X),
        lambda: fovea.nn.MultiheadAttention(4, 2)(ARRAY, ARRAY, ARRAY),
        lambda: fovea.nn.TransformerEncoderLayer(4, 2)(ARRAY),
        lambda: fovea.nn.AdditiveAttention(3, 3, 4)(ARRAY, X),
        lambda: fovea.nn.NadarayaWatson()(ARRAY, X, X),
    ],
    "key": [lambda: fovea.nn.AdditiveAttention(3, 3, 4)(X[0], ARRAY), lambda: fovea.scaled_dot_product_attention(X, ARRAY, X)],
    "value": [lambda: fovea.nn.AdditiveAttention(3, 3, 4)(X[0], X[0], ARRAY), lambda: fovea.attend(X, X, ARRAY)],
    "x": [lambda: fovea.nn.GATConv(3, 2)(ARRAY, torch.zeros(2, 0, dtype=torch.int64)), lambda: fovea.nn.GATv2Conv(3, 2)(ARRAY, torch.zeros(2, 0))],
    "x[0]": [lambda: fovea.nn.GATConv((3, 3), 2)((ARRAY, X[0, 0]), torch.zeros(2, 0, dtype=torch.int64))],
    "edge_index": [
        lambda: fovea.nn.GATConv(3, 2)(X[0, 0], np.array([[0], [1]])),
        lambda: fovea.Graph.from_edge_index(np.array([[0], [1]])),
    ],
    "instances": [lambda: fovea.nn.MultipleInstance(3, 2)(ARRAY)],
    "attn_mask": [lambda: fovea.nn.MultiheadAttention(4, 2)(torch.zeros(2, 4), torch.zeros(2, 4), torch.zeros(2, 4), attn_mask=ARRAY > 0)],
    "key_padding_mask": [lambda: fovea.nn.MultipleInstance(3, 2)(X[0], key_padding_mask=ARRAY[0] > 0)],
    "Keep.mask": [lambda: fovea.Keep(ARRAY > 0)],
    "unary": [lambda: fovea.chain_marginals(ARRAY, ARRAY)],
    "arcs": [lambda: fovea.tree_marginals(ARRAY)],
    "scores": [lambda: fovea.nn.fenchel_young_loss(ARRAY, torch.tensor([0, 1]))],
    "target": [lambda: fovea.nn.fenchel_young_loss(X[0, 0], np.array([0, 1]))],
}


@pytest.mark.parametrize(("name", "call"), [(name, call) for name, calls in CALLS.items() for call in calls])
def test_numpys_arrays_are_refused_with_what_to_do(name, call):
    with pytest.raises(TypeError) as error:
        call()
    last = name.rsplit(".", 1)[-1]
    assert str(error.value) == f"{name}: numpy.ndarray, expected a torch.Tensor; torch.from_numpy({last}) makes one"


INTO = torch.tensor([[0], [1]])
WIDTHS = {
    "query: width 3, expected 4 (embed_dim)": lambda: fovea.nn.MultiheadAttention(4, 2)(X[0], X[0], X[0]),
    "value: width 3, expected 5 (vdim)": lambda: fovea.nn.MultiheadAttention(4, 2, vdim=5)(torch.zeros(2, 4), torch.zeros(2, 4), X[0, 0]),
    "key: width 3, expected 5 (key_dim)": lambda: fovea.nn.AdditiveAttention(3, 5, 2)(X[0], X[0]),
    "instances: width 3, expected 5 (in_features)": lambda: fovea.nn.MultipleInstance(5, 2)(X[0]),
    "x: width 3, expected 5 (in_channels)": lambda: fovea.nn.GATConv(5, 2)(X[0, 0], INTO),
    "x[1]: width 3, expected 5 (in_channels)": lambda: fovea.nn.GATv2Conv((3, 5), 2)((X[0, 0], X[0, 0]), INTO),
    "edge_attr: width 3, expected 2 (edge_dim)": lambda: fovea.nn.GATConv(3, 2, edge_dim=2)(X[0, 0], INTO, X[0, 0, :1]),
}


@pytest.mark.parametrize("said", WIDTHS)
def test_a_wrong_width_is_said_by_its_argument(said):
    with pytest.raises(ValueError) as error:
        WIDTHS[said]()
    assert str(error.value) == said


def test_what_backward_of_libtorch_allows_is_allowed():
    from torch.utils.checkpoint import checkpoint

    x = torch.randn(2, 2, 5, 8, requires_grad=True)
    call = lambda x: fovea.attend(x, x, x, dropout_p=0.3)
    gradients = []
    for run in (call, lambda x: checkpoint(call, x, use_reentrant=False)):  # which calls again in backward, with the same seed
        torch.manual_seed(3)
        gradients.append(torch.autograd.grad(run(x).square().sum(), x)[0])
    assert torch.equal(*gradients)
    torch.use_deterministic_algorithms(True)
    try:
        fovea.attend(x, x, x).sum().backward()
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("wanted", ["query", "key", "value"])
def test_a_gradient_of_one_input_alone_is_that_of_all(wanted):
    """Frozen encoders: the others take another path through backward, or none."""
    inputs = dict(zip(("query", "key", "value"), torch.randn(3, 2, 4, 9, 8).unbind()))
    mask = torch.randn(9, 9)
    mask[2] = -torch.inf  # a row that sees nothing
    gradients = []
    for learned in ((wanted,), tuple(inputs)):
        given = {name: x.clone().requires_grad_(name in learned) for name, x in inputs.items()}
        out = fovea.scaled_dot_product_attention(**given, attn_mask=mask)
        assert not out[:, :, 2].any()
        gradients.append(torch.autograd.grad(out.square().sum(), given[wanted])[0])
    torch.testing.assert_close(*gradients)
    assert gradients[0].isfinite().all() and gradients[0].any()
