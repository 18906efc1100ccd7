"""Modules inside what PyTorch wraps around them: parallel and sharded training, functional calls, autocast, inference mode, other devices."""

import copy

import pytest
import torch
import torch.distributed
from layers_of import MODULES, first, learned, made

import fovea


def test_data_parallel():
    for name in ("MultiheadAttention", "TransformerEncoderLayer", "GATConv"):
        module, inputs = made(name)
        assert torch.equal(first(torch.nn.DataParallel(module)(*inputs)), first(module(*inputs)))


def trained(module, inputs):
    """The parameters after a step, under names without the wrapper's."""
    first(module(*inputs)).square().sum().backward()
    torch.optim.SGD(module.parameters(), 0.1).step()
    whole = lambda x: x.full_tensor() if hasattr(x, "full_tensor") else x
    return {name.removeprefix("module."): whole(value.detach()).clone() for name, value in module.named_parameters()}


@pytest.mark.parametrize("wrapper", ["DistributedDataParallel", "fully_shard"])
@pytest.mark.parametrize("name", MODULES)
def test_distributed_training_moves_the_same_parameters(name, wrapper, one_process):
    module, inputs = made(name)
    expected = trained(copy.deepcopy(module), inputs)
    if wrapper == "fully_shard":
        from torch.distributed.fsdp import fully_shard

        got = trained(fully_shard(module), inputs)
    else:
        got = trained(torch.nn.parallel.DistributedDataParallel(module), inputs)
    torch.testing.assert_close(got, expected)


def test_heads_divided_among_ranks_are_attended_by_their_local_parts(one_process):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard, distribute_tensor

    mesh, x = init_device_mesh("cpu", (1,)), torch.randn(2, 4, 6, 8)
    divided = distribute_tensor(x, mesh, [Shard(1)]).requires_grad_()
    local = divided.to_local()
    out = DTensor.from_local(fovea.attend(local, local, local), mesh, [Shard(1)])
    torch.testing.assert_close(out.full_tensor(), fovea.attend(x, x, x))
    out.to_local().sum().backward()
    assert divided.grad.full_tensor().any()
    with pytest.raises(NotImplementedError, match="does not have a sharding strategy"):
        fovea.attend(divided, divided, divided)


def test_a_functional_call_reaches_the_parameters_of_a_choice():
    module, x = learned(), torch.randn(2, 5, 32)
    other = {name: value * 2 for name, value in module.state_dict().items()}
    expected = copy.deepcopy(module)
    expected.load_state_dict(other)
    assert torch.equal(torch.func.functional_call(module, other, (x, x, x))[0], expected(x, x, x)[0])
    slope = torch.func.grad(lambda weight: torch.func.functional_call(module, {"score.weight": weight}, (x, x, x))[0].square().sum())
    assert slope(module.score.weight.detach()).abs().sum() > 0


@pytest.mark.parametrize(("dtype", "near"), [(torch.bfloat16, 0.06), (torch.float16, 0.06 / 8)], ids=str)  # float16 has three bits more
@pytest.mark.parametrize("name", MODULES)
def test_autocast_trains_in_half_precision_near_float32(name, dtype, near):
    module, inputs = made(name)
    expected = first(module(*inputs))
    with torch.autocast("cpu", dtype=dtype):
        got = first(module(*inputs))
        got.float().sum().backward()
    torch.testing.assert_close(got.float(), expected, rtol=near, atol=near)
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in module.parameters())


@pytest.mark.parametrize("name", MODULES)
def test_inference_mode_and_double_precision(name):
    module, inputs = made(name)
    with torch.inference_mode():
        assert torch.equal(first(module(*inputs)), first(module(*inputs)))
    wide = [x.double() if x.is_floating_point() else x for x in inputs]
    torch.testing.assert_close(first(copy.deepcopy(module).double()(*wide)).float(), first(module(*inputs)), rtol=1e-4, atol=1e-5)


def test_a_tensor_of_inference_mode_is_a_constant():
    with torch.inference_mode():
        key = torch.randn(1, 2, 5, 4)
    query = torch.randn(1, 2, 3, 4, requires_grad=True)
    assert fovea.attend(query.detach(), key, key).shape == (1, 2, 3, 4)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):  # libtorch's own words
        fovea.attend(query, key, key)


@pytest.mark.parametrize("name", MODULES)
def test_on_the_meta_device_there_are_shapes(name):
    module, inputs = made(name)
    if name.startswith("GAT"):
        pytest.skip("the number of self loops to drop is data, which the meta device has none of; torch_geometric's layers too")
    shapes = first(module.to("meta")(*(x.to("meta") for x in inputs)))
    assert shapes.device.type == "meta" and shapes.shape == first(made(name)[0](*inputs)).shape


@pytest.mark.parametrize("name", MODULES)
def test_a_module_says_what_it_is(name):
    text = repr(made(name)[0])
    assert text.startswith(name) and "object at 0x" not in text and len(text) < 1500


class Doubled(torch.nn.Module):
    def forward(self, weight):
        return 2 * weight


@pytest.mark.parametrize("how", ["parametrised", "pruned"])
def test_what_stands_in_for_a_parameter_of_a_choice_is_used(how):
    from torch.nn.utils import parametrize, prune

    module, x = learned(), torch.randn(2, 5, 32)
    before = module.score.weight.detach().clone()
    if how == "parametrised":
        parametrize.register_parametrization(module.score, "weight", Doubled())
        expected, parameter = 2 * before, "score.parametrizations.weight.original"
    else:
        prune.custom_from_mask(module.score, "weight", mask=before > 0)
        expected, parameter = before.clamp_min(0), "score.weight_orig"
    other = learned()
    other.load_state_dict({**other.state_dict(), "score.weight": expected})
    out = module(x, x, x)[0]
    assert torch.equal(out, other(x, x, x)[0])
    out.square().sum().backward()
    assert dict(module.named_parameters())[parameter].grad.any()


def encoder_of_torch(layer=torch.nn.TransformerEncoderLayer):
    torch.manual_seed(2)
    return torch.nn.TransformerEncoder(layer(32, 4, 48, batch_first=True, dropout=0.0), 2).eval()


def with_our_attention(encoder, **choices):
    for layer in encoder.layers:
        layer.self_attn = fovea.nn.MultiheadAttention.from_torch(layer.self_attn, **choices)
    return encoder


def with_our_layers(encoder, **choices):
    for place, layer in enumerate(encoder.layers):
        encoder.layers[place] = fovea.nn.TransformerEncoderLayer(32, 4, 48, batch_first=True, dropout=0.0, **choices).eval()
        encoder.layers[place].load_state_dict(layer.state_dict())
    return encoder


@pytest.mark.parametrize("swap", [with_our_attention, with_our_layers])
@pytest.mark.parametrize("padded", [False, True])
def test_torchs_shortcut_at_evaluation_does_not_pass_our_attention_by(swap, padded):
    """Without gradients torch.nn's encoder computes a layer from its weights alone, and packs padded sequences."""
    x = torch.randn(3, 6, 32)
    mask = torch.arange(6) >= torch.tensor([[6], [3], [1]]) if padded else None
    seen = slice(None) if mask is None else ~mask
    plain, swapped = encoder_of_torch(), swap(encoder_of_torch())
    chosen = copy.deepcopy(swap(encoder_of_torch(), normaliser=fovea.Sparsemax()))
    with_gradients = [encoder(x, src_key_padding_mask=mask)[seen] for encoder in (plain, swapped, chosen)]
    with torch.no_grad():
        found = [encoder(x, src_key_padding_mask=mask)[seen] for encoder in (plain, swapped, chosen)]
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)
    for a, b in zip(found, with_gradients):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    assert (found[2] - found[1]).abs().max() > 0.01


class Adapted(torch.nn.Module):
    """A linear layer with a product of low rank beside it, as LoRA's."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.down = torch.nn.Linear(layer.in_features, 2, bias=False)
        self.up = torch.nn.Linear(2, layer.out_features, bias=False)

    def forward(self, x):
        return self.layer(x) + self.up(self.down(x))


def test_adapters_within_a_layer_learn_and_are_asked_at_evaluation():
    module, (x,) = made("TransformerEncoderLayer")
    module.requires_grad_(False)
    before = module(x)
    module.self_attn.out_proj, module.linear1, module.linear2 = map(Adapted, (module.self_attn.out_proj, module.linear1, module.linear2))
    out = module.train()(x)
    assert (out - before).abs().max() > 0.01
    out.square().sum().backward()
    learned = {name: p for name, p in module.named_parameters() if p.requires_grad}
    assert len(learned) == 6 and all(p.grad.any() for p in learned.values())
    with torch.no_grad():
        evaluated = module.eval()(x)
    torch.testing.assert_close(evaluated, module(x).detach())
    assert (evaluated - before).abs().max() > 0.01


class Leaves(torch.fx.Tracer):
    def is_leaf_module(self, module, name):
        return type(module).__module__.startswith("fovea.nn") or super().is_leaf_module(module, name)


def test_a_symbolic_trace_takes_our_modules_as_leaves():
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), fovea.nn.TransformerEncoderLayer(32, 4, 48, batch_first=True, dropout=0.0)).eval()
    traced, x = torch.fx.GraphModule(model, Leaves().trace(model)), torch.randn(2, 5, 8)
    assert torch.equal(traced(x), model(x))
    with pytest.raises(TypeError, match="torch.Proxy, expected a torch.Tensor"):
        torch.fx.symbolic_trace(model)
