"""The same numbers as what people use today, forward and backward; a peer that is not installed is skipped by name."""

import math

import pytest
import torch

import fovea

TOLERANCE = {"atol": 1e-10, "rtol": 1e-9}


def randn(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def operands(heads=3, key_heads=3, queries=11, keys=13, width=8):
    return (
        randn(2, heads, queries, width, seed=1),
        randn(2, key_heads, keys, width, seed=2),
        randn(2, key_heads, keys, 5, seed=3),
    )


def assert_same(ours, theirs, inputs, **tolerance):
    """Outputs and the gradients of a sum of squares."""
    tolerance = tolerance or TOLERANCE
    torch.testing.assert_close(ours, theirs, **tolerance)
    for a, b in zip(*(torch.autograd.grad(x.square().sum(), inputs, retain_graph=True) for x in (ours, theirs))):
        torch.testing.assert_close(a, b, **tolerance)


# ---- libtorch's fused attention ----


@pytest.mark.parametrize(("structure", "options"), [(fovea.Dense(), {}), (fovea.Causal(), {"is_causal": True})])
def test_sdpa(structure, options):
    inputs = operands()
    theirs = torch.nn.functional.scaled_dot_product_attention(*inputs, **options)
    assert_same(fovea.attend(*inputs, structure=structure), theirs, inputs)


def test_sdpa_with_a_mask_a_bias_and_grouped_heads():
    inputs = operands(heads=6, key_heads=2)
    mask = torch.rand(11, 13, generator=torch.Generator().manual_seed(4)) > 0.3
    theirs = torch.nn.functional.scaled_dot_product_attention(*inputs, attn_mask=mask, enable_gqa=True)
    assert_same(fovea.attend(*inputs, structure=fovea.Keep(mask)), theirs, inputs)
    bias = randn(6, 11, 13, seed=5)
    theirs = torch.nn.functional.scaled_dot_product_attention(*inputs, attn_mask=bias.expand(2, -1, -1, -1), enable_gqa=True)
    assert_same(fovea.attend(*inputs, fovea.Dot().bias(bias)), theirs, (*inputs, bias))


def test_sdpa_in_single_precision():
    inputs = [x.detach().float().requires_grad_() for x in operands(queries=200, keys=300, width=64)]
    assert_same(
        fovea.attend(*inputs), torch.nn.functional.scaled_dot_product_attention(*inputs), inputs, atol=2e-6, rtol=2e-5
    )


# ---- FlexAttention ----


def test_flex_attention():
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    inputs = [x.detach() for x in operands(queries=16, keys=16)]  # on the CPU it has no backward
    slopes = torch.tensor([0.5, 0.25, 0.125], dtype=torch.float64)

    def modify(score, batch, head, query, key):
        return 4 * torch.tanh(score / 4) - slopes[head] * (query - key).abs()

    def keep(batch, head, query, key):
        return (query >= key) & (query - key <= 5)

    block_mask = flex.create_block_mask(keep, None, None, 16, 16, device="cpu")
    theirs = flex.flex_attention(*inputs, score_mod=modify, block_mask=block_mask)
    ours = fovea.attend(
        *inputs, fovea.Dot().soft_cap(4.0).alibi(slopes), structure=fovea.Causal() & fovea.Window(5, -1)
    )
    torch.testing.assert_close(ours, theirs, **TOLERANCE)


# ---- entmax ----


@pytest.mark.parametrize(
    ("normaliser", "name", "options"),
    [
        (fovea.Sparsemax(), "sparsemax", {}),
        (fovea.Entmax(1.5), "entmax15", {}),
        (fovea.Entmax(1.3), "entmax_bisect", {"alpha": 1.3, "n_iter": 100}),
        (fovea.Entmax(1.9), "entmax_bisect", {"alpha": 1.9, "n_iter": 100}),
    ],
)
def test_entmax(normaliser, name, options):
    entmax = pytest.importorskip("entmax")
    query, key, value = inputs = operands()
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    theirs = getattr(entmax, name)(scores, dim=-1, **options) @ value
    assert_same(fovea.attend(*inputs, normaliser=normaliser), theirs, inputs)


def test_entmax_with_a_trained_alpha():
    entmax = pytest.importorskip("entmax")
    query, key, value = inputs = operands()
    alpha = torch.tensor([1.2, 1.5, 1.8], dtype=torch.float64, requires_grad=True)
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    theirs = entmax.entmax_bisect(scores, alpha=alpha.view(1, 3, 1, 1).expand(2, 3, 11, 1), n_iter=100) @ value
    assert_same(fovea.attend(*inputs, normaliser=fovea.Entmax(alpha)), theirs, (*inputs, alpha))


# ---- graph attention ----


def graph(nodes=9, edges=30, seed=7):
    """Distinct random edges with self loops, in CSR by target, and as (source, target) pairs."""
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randperm(nodes * nodes, generator=generator)[:edges]
    adjacency = torch.zeros(nodes, nodes, dtype=torch.bool)
    adjacency.view(-1)[pairs] = True
    adjacency.fill_diagonal_(True)
    target, source = adjacency.nonzero(as_tuple=True)
    offsets = torch.nn.functional.pad(adjacency.sum(1).cumsum(0), (1, 0))
    return fovea.Graph(offsets, source), torch.stack([source, target])


def test_gat():
    nn = pytest.importorskip("torch_geometric.nn")
    structure, edges = graph()
    layer = nn.GATConv(6, 4, heads=2, add_self_loops=False, bias=False).double()
    x = randn(9, 6)
    projected = layer.lin(x).view(9, 2, 4)
    target = (projected * layer.att_dst).sum(-1, keepdim=True)
    source = (projected * layer.att_src).sum(-1, keepdim=True)
    ours = fovea.attend(target, source, projected, fovea.RankOne(0.2), structure=structure).flatten(1)
    assert_same(ours, layer(x, edges), (x, *layer.parameters()))


def test_gat_v2():
    nn = pytest.importorskip("torch_geometric.nn")
    structure, edges = graph()
    layer = nn.GATv2Conv(6, 4, heads=2, add_self_loops=False, bias=False).double()
    x = randn(9, 6)
    source, target = layer.lin_l(x).view(9, 2, 4), layer.lin_r(x).view(9, 2, 4)
    score = fovea.Additive(layer.att.squeeze(0), activation="leaky_relu")
    ours = fovea.attend(target, source, source, score, structure=structure).flatten(1)
    assert_same(ours, layer(x, edges), (x, *layer.parameters()))


# ---- onnxruntime ----


def onnx_attention(query, key, value, opset=23, **attributes):
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    node = helper.make_node("Attention", ["Q", "K", "V"], ["Y"], **attributes)
    inputs = [helper.make_tensor_value_info(name, kind, list(x.shape)) for name, x in zip("QKV", (query, key, value))]
    output = helper.make_tensor_value_info("Y", kind, None)
    model = helper.make_model(
        helper.make_graph([node], "attention", inputs, [output]), opset_imports=[helper.make_opsetid("", opset)], ir_version=10
    )
    try:
        session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's own exception types
        pytest.skip(f"onnxruntime {runtime.__version__} has no Attention of opset {opset}: {str(error)[:80]}")
    return torch.from_numpy(session.run(None, {name: x.numpy() for name, x in zip("QKV", (query, key, value))})[0])


@pytest.mark.parametrize(
    ("attributes", "score", "structure"),
    [
        ({}, fovea.Dot(), fovea.Dense()),
        ({"is_causal": 1}, fovea.Dot(), fovea.Causal()),
        ({"scale": 0.3, "softcap": 2.0}, fovea.Dot(0.3).soft_cap(2.0), fovea.Dense()),
    ],
)
def test_onnxruntime(attributes, score, structure):
    inputs = [x.detach().float() for x in operands(heads=4, key_heads=2, queries=13)]
    theirs = onnx_attention(*inputs, **attributes)
    torch.testing.assert_close(fovea.attend(*inputs, score, structure=structure), theirs, atol=2e-6, rtol=2e-5)
