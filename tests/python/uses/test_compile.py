"""torch.compile and torch.export of the modules, and calls whose sizes vary."""

import pytest
import torch
from layers_of import MODULES, first, made

import fovea


# torch.nn's decoder layer is an encoder layer with one attention more: the test of the one tells of both, in half the time.
@pytest.mark.parametrize("name", [name for name in MODULES if name != "TransformerDecoderLayer"])
def test_a_compiled_module_is_the_module(name):
    module, inputs = made(name)
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True, dynamic=True)
    gradients = [torch.autograd.grad(first(f(*inputs)).square().sum(), list(module.parameters()), allow_unused=True) for f in (compiled, module)]
    for ours, theirs in zip(*gradients):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours, theirs)


def test_sizes_that_vary_are_one_graph():
    graphs = 0

    def count(graph, _):
        nonlocal graphs
        graphs += 1
        return graph

    def call(query, key, value):
        structure = fovea.Causal() & fovea.Window(key.shape[2] // 2, 0)
        return fovea.attend(query, key, value, fovea.Dot().soft_cap(3.0), fovea.Entmax(1.5), structure)

    compiled = torch.compile(call, backend=count, fullgraph=True, dynamic=True)
    for batch, rows in ((3, 5), (4, 7), (6, 11)):
        query, key, value = (torch.randn(batch, 2, rows, 8) for _ in range(3))
        torch.testing.assert_close(compiled(query, key, value), call(query, key, value))
    assert graphs == 1


@pytest.mark.parametrize("name", MODULES)
def test_an_exported_module_is_the_module(name):
    module, inputs = made(name)
    program = torch.export.export(module, inputs)
    torch.testing.assert_close(first(program.module()(*inputs)), first(module(*inputs)))


def test_an_exported_layer_takes_other_batches_and_lengths():
    layer = fovea.nn.TransformerEncoderLayer(32, 4, 48, batch_first=True, structure=fovea.Causal()).eval()
    sizes = {0: torch.export.Dim("batch", min=1, max=64), 1: torch.export.Dim("length", min=2, max=512)}
    program = torch.export.export(layer, (torch.randn(3, 7, 32),), dynamic_shapes={"src": sizes})
    for shape in ((1, 2, 32), (5, 30, 32)):
        x = torch.randn(*shape)
        torch.testing.assert_close(program.module()(x), layer(x))


def test_torch_script_traces_choices_of_words_and_refuses_the_rest():
    query, key, value = (torch.randn(2, 2, 5, 8) for _ in range(3))
    for structure in (fovea.Dense(), fovea.Causal()):
        call = lambda q, k, v, structure=structure: fovea.attend(q, k, v, normaliser=fovea.Entmax(1.4), structure=structure, scale=0.3)
        traced = torch.jit.trace(call, (query, key, value))
        torch.testing.assert_close(traced(2 * query, key, value), call(2 * query, key, value))
    with pytest.raises(RuntimeError, match="unsupported input list type"):
        torch.jit.trace(lambda q, k, v: fovea.attend(q, k, v, fovea.Dot().bias(torch.ones(5, 5))), (query, key, value))
