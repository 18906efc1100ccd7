"""What PyTorch's tools do with the operators: checkpointing, quantisation, ensembles, exports to ONNX, counts of operations."""

import copy
import functools

import pytest
import torch
from layers_of import randn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

import fovea


@pytest.mark.parametrize("how", ["reentrant", "not reentrant", "selective"])
def test_checkpointing_draws_the_same_dropout_again(how):
    layer, x = fovea.nn.TransformerEncoderLayer(32, 4, 48, dropout=0.3, batch_first=True, structure=fovea.Causal()), randn(2, 7, 32).requires_grad_()
    calls = []

    def policy(context, operator, *arguments, **keywords):
        calls.append(operator)
        return CheckpointPolicy.MUST_SAVE if operator is torch.ops.fovea.attend.default else CheckpointPolicy.PREFER_RECOMPUTE

    options = {"context_fn": functools.partial(create_selective_checkpoint_contexts, policy)} if how == "selective" else {}
    found = []
    for run in (layer, lambda x: checkpoint(layer, x, use_reentrant=how == "reentrant", **options)):
        torch.manual_seed(3)
        layer.zero_grad()
        slope = torch.autograd.grad if how != "reentrant" else lambda y, x: (y.backward(), x.grad.clone())[1:]  # which takes backward() alone
        found.append(slope(run(x).square().sum(), x)[0])
        x.grad = None
    torch.testing.assert_close(*found)
    assert how != "selective" or torch.ops.fovea.attend.default in calls


def test_an_ensemble_is_one_call_under_vmap():
    models = [fovea.nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True, normaliser=fovea.Sparsemax()) for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(models)
    base, x, padding = copy.deepcopy(models[0]).to("meta"), randn(2, 5, 16), torch.arange(5) >= torch.tensor([[5], [3]])
    one = lambda p, b: torch.func.functional_call(base, (p, b), (x,), {"src_key_padding_mask": padding})
    torch.testing.assert_close(torch.vmap(one)(parameters, buffers), torch.stack([model(x, src_key_padding_mask=padding) for model in models]))


def test_heads_are_mapped_one_by_one():
    query = randn(4, 2, 9, 8)  # heads first
    one = lambda x: fovea.attend(x[:, None], x[:, None], x[:, None], normaliser=fovea.Entmax(1.5), structure=fovea.Causal())[:, 0]
    x = query.transpose(0, 1)
    torch.testing.assert_close(torch.vmap(one)(query).transpose(0, 1), fovea.attend(x, x, x, normaliser=fovea.Entmax(1.5), structure=fovea.Causal()))
    whole = fovea.scaled_dot_product_attention(query, query, query)
    torch.testing.assert_close(torch.vmap(torch.vmap(fovea.scaled_dot_product_attention))(query, query, query), whole)


@pytest.mark.filterwarnings("ignore")  # of its place, which is torchao by and by
def test_linear_layers_beside_attention_are_quantised():
    layer, x = fovea.nn.TransformerEncoderLayer(32, 4, 48, batch_first=True), randn(2, 5, 32)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    quantised = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    assert "quantized" in type(quantised.layers[0].linear1).__module__ and type(quantised.layers[0].self_attn) is fovea.nn.MultiheadAttention
    with_gradients = quantised(x)
    with torch.no_grad():
        torch.testing.assert_close(quantised(x), with_gradients)
    torch.testing.assert_close(with_gradients, model(x), rtol=0, atol=0.1)


def test_a_graph_that_breaks_and_sizes_that_are_data_are_compiled():
    def breaks(query, key, value):
        out = fovea.attend(query, key, value, structure=fovea.Causal())
        if out.sum() > 0:
            out = 2 * out
        return fovea.attend(out, key, value, normaliser=fovea.Sparsemax())

    def chosen(query, key, value, mask, width):
        return fovea.attend(query[:, :, mask.nonzero()[:, 0]], key, value, structure=fovea.Window(width.item(), 0))

    inputs, mask = [randn(2, 4, 9, 8, seed=n) for n in range(3)], torch.arange(9) % 2 == 0
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(breaks, backend="aot_eager")(*inputs), breaks(*inputs))
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        found = torch.compile(chosen, backend="aot_eager", fullgraph=True)(*inputs, mask, torch.tensor(3))
    torch.testing.assert_close(found, chosen(*inputs, mask, torch.tensor(3)))


@pytest.mark.filterwarnings("ignore")  # the other exporter wants a package more
def test_onnx_has_no_such_operator_and_says_its_name(tmp_path):
    pytest.importorskip("onnx")
    layer, x = fovea.nn.TransformerEncoderLayer(32, 4, 48, batch_first=True).eval(), randn(2, 5, 32)
    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match="fovea::attend"):
        torch.onnx.export(layer, (x,), str(tmp_path / "ours.onnx"), dynamo=False)


def counted(call):
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def test_flops_are_those_of_libtorchs_attention():
    query, key, value = torch.randn(2, 4, 5, 8, requires_grad=True), torch.randn(2, 2, 7, 8), torch.randn(2, 2, 7, 3)
    shapes = [x.shape for x in (query, key, value)]
    whole = sdpa_flop_count(*shapes)
    for structure in (fovea.Dense(), fovea.Causal() & fovea.Window(2, 0)):
        assert counted(lambda: fovea.attend(query, key, value, normaliser=fovea.Entmax(1.5), structure=structure)) == whole
    repeated = [torch.Size((2, 4, *shape[2:])) for shape in shapes]  # which libtorch's backward wants
    backward = sdpa_backward_flop_count(torch.Size((2, 4, 5, 3)), *repeated)
    assert counted(lambda: fovea.attend(query, key, value, fovea.Dot().bias(torch.ones(5, 7))).sum().backward()) == whole + backward
    assert counted(lambda: fovea.weights(query, key)) == 2 * 2 * 4 * 5 * 7 * 8
    layer, x = fovea.nn.MultiheadAttention(32, 4, batch_first=True), torch.randn(2, 5, 32)
    projections = 2 * 2 * 5 * 32 * (3 * 32 + 32)
    assert counted(lambda: layer(x, x, x, need_weights=False)) == projections + sdpa_flop_count(*(torch.Size((2, 4, 5, 8)),) * 3)


def test_flops_of_graphs_packed_sequences_and_pages_are_those_of_their_pairs():
    x = torch.randn(10, 2, 8)
    graph = fovea.Graph.from_edge_index(torch.tensor([[0, 1, 2, 0], [1, 2, 0, 2]]), num_nodes=10)
    bias = torch.ones(4, 2)
    assert counted(lambda: fovea.attend(x, x, x, fovea.Dot().edge_bias(bias), structure=graph)) == 2 * 4 * 2 * (8 + 8)
    packed = fovea.Ragged(torch.tensor([0, 3, 10]), torch.tensor([0, 3, 10])) & fovea.Causal()
    assert counted(lambda: fovea.attend(x, x, x, structure=packed)) == 2 * (3 * 3 + 7 * 7) * 2 * (8 + 8)
    pool, pages = torch.randn(8, 16, 2, 64), fovea.Paged(torch.tensor([[5, 1], [0, -1], [2, 7]]), torch.tensor([20, 16, 32]))
    assert counted(lambda: fovea.attend(torch.randn(3, 4, 1, 64), pool, pool, structure=pages)) == 2 * 3 * 4 * 2 * 16 * (64 + 64)
    with torch._subclasses.FakeTensorMode() as mode:
        x, offsets = mode.from_tensor(x), mode.from_tensor(torch.tensor([0, 3, 10]))
        assert counted(lambda: fovea.attend(x, x, x, structure=fovea.Ragged(offsets, offsets))) == 2 * 10 * 10 * 2 * (8 + 8)
