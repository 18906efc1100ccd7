"""What a program has made torch's default: another device, another type of numbers."""

import pytest
import torch
from layers_of import MODULES, first, made

import fovea


@pytest.fixture
def default_device():
    before = torch.get_default_device()
    yield torch.set_default_device
    torch.set_default_device(before)


@pytest.fixture(params=[torch.float64, torch.bfloat16, torch.float16], ids=str)
def default_dtype(request):
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    yield request.param
    torch.set_default_dtype(before)


CALLS = {
    "dropout": lambda x: fovea.attend(x, x, x, dropout_p=0.4),
    "a seed": lambda x: fovea.attend(x, x, x, dropout_p=0.4, seed=3),
    "sampling": lambda x: fovea.attend(x, x, x, normaliser=fovea.Hard(sample=True)),
    "an offset": lambda x: fovea.attend(x, x, x, structure=fovea.Causal(), query_offset=2),
    "a score's function": lambda x: fovea.attend(x, x, x, fovea.Dot().apply(lambda score, b, h, i, j: score - (i - j).abs()), dropout_p=0.4),
    "libtorch's dropout": lambda x: fovea.scaled_dot_product_attention(x, x, x, dropout_p=0.4),
    "chosen weights": lambda x: fovea.weights(x, x, structure=fovea.Causal(), rows=[1, -1], heads=[0], query_offset=2),
    "the largest weights": lambda x: fovea.weights(x, x, top_k=2)[0],
    "a window": lambda x: fovea.attend(x, x, x, normaliser=fovea.TopK(2), structure=~fovea.First(1) & fovea.Window(3, 1)),
}


@pytest.mark.parametrize("name", CALLS)
def test_tensors_decide_the_device_and_not_torchs_default(name, default_device):
    """A default of "cuda" with tensors on the CPU is the same, and needs a GPU."""
    x = torch.randn(1, 2, 5, 8, device="cpu")
    torch.manual_seed(3)
    expected = CALLS[name](x)
    default_device("meta")
    torch.manual_seed(3)
    found = CALLS[name](x)
    assert found.device == x.device and torch.equal(found, expected)


@pytest.mark.parametrize("method", ["contiguous", "edge_cut"])
def test_a_graph_decides_the_device_of_its_parts(method, default_device, one_process):
    graph = fovea.Graph.from_edge_index(torch.randint(0, 90, (2, 400)), num_nodes=90)
    x, owner = torch.randn(90, 2, 8), fovea.distributed.partition(graph, 3, method)
    default_device("meta")
    assert torch.equal(fovea.distributed.partition(graph, 3, method), owner)
    part = fovea.distributed.GraphPart.of(graph, fovea.distributed.partition(graph, 1, method))
    assert torch.equal(part.halo(x), x) and torch.equal(part.graph.columns, graph.columns)


@pytest.mark.parametrize("name", MODULES)
def test_modules_learn_in_torchs_default_type(name, default_dtype):
    module, inputs = made(name)
    out = first(module(*inputs))
    assert out.dtype == default_dtype
    out.sum().backward()
    assert all(p.grad is not None and p.grad.dtype == default_dtype for p in module.parameters())


def test_attention_weights_have_the_type_of_torchs(default_dtype):
    theirs, x = torch.nn.MultiheadAttention(16, 2, batch_first=True), torch.randn(2, 5, 16, requires_grad=True)
    ours = fovea.nn.MultiheadAttention.from_torch(theirs)
    expected = theirs(x, x, x)[1]
    for layer in (ours, torch.compile(ours, backend="eager")):
        weights = layer(x, x, x)[1]
        assert weights.dtype == expected.dtype == default_dtype
        torch.testing.assert_close(weights, expected, atol=4 * torch.finfo(default_dtype).eps, rtol=0)
        (slope,) = torch.autograd.grad(weights.square().sum(), x)
        assert slope.dtype == default_dtype and slope.any()
