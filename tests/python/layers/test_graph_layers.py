"""`fovea.nn.GATConv` and `GATv2Conv` are torch_geometric's: the same numbers and gradients, and states that move both ways."""

import inspect

import pytest
import torch

import fovea

geometric = pytest.importorskip("torch_geometric.nn")
NAMES = ["GATConv", "GATv2Conv"]


def randn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed + sum(shape))).requires_grad_()


def edges(sources, targets, count, seed=0):
    """Random edges: repeated ones, loops, and nodes without any."""
    generator = torch.Generator().manual_seed(seed)
    return torch.stack([torch.randint(n, (count,), generator=generator) for n in (max(1, sources - 2), max(1, targets - 2))])


def pair(name, *arguments, **options):
    torch.manual_seed(4)
    theirs = getattr(geometric, name)(*arguments, **options).double()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    ours = getattr(fovea.nn, name)(*arguments, **options).double()
    ours.load_state_dict(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def assert_same(name, arguments, options, *call, **keywords):
    ours, theirs = pair(name, *arguments, **options)
    a, b = ours(*call, **keywords), theirs(*call, **keywords)
    torch.testing.assert_close(a, b)
    parameters = [dict(layer.named_parameters()) for layer in (ours, theirs)]
    assert list(parameters[0]) == list(parameters[1])  # an optimiser's state knows them by their place
    inputs = [x for c in call for x in (c if isinstance(c, tuple) else (c,)) if isinstance(x, torch.Tensor) and x.requires_grad]
    leaves = [[*(p[n] for n in sorted(p)), *inputs] for p in parameters]
    for x, y in zip(*(torch.autograd.grad(out.square().sum(), leaf, allow_unused=True) for out, leaf in zip((a, b), leaves))):
        if y is not None:
            torch.testing.assert_close(torch.zeros_like(y) if x is None else x, y)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [
    {}, {"heads": 3}, {"heads": 3, "concat": False}, {"add_self_loops": False, "heads": 2}, {"bias": False, "negative_slope": 0.1},
    {"residual": True, "heads": 2},
])  # fmt: skip
def test_a_graph(name, options):
    assert_same(name, (5, 4), options, randn(9, 5), edges(9, 9, 40))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fill_value", ["mean", "add", "max", "min", "mul", 0.5])
def test_edge_features(name, fill_value):
    options = {"heads": 2, "edge_dim": 3, "fill_value": fill_value}
    assert_same(name, (5, 4), options, randn(9, 5), edges(9, 9, 30), randn(30, 3))
    assert_same(name, (5, 4), {"edge_dim": 1, "add_self_loops": False}, randn(9, 5), edges(9, 9, 30), randn(30))


@pytest.mark.parametrize("name", NAMES)
def test_two_kinds_of_nodes(name):
    assert_same(name, ((5, 3), 4), {"heads": 2, "add_self_loops": False, "residual": True}, (randn(9, 5), randn(6, 3)), edges(9, 6, 30))
    assert_same(name, ((5, 3), 4), {"heads": 2}, (randn(9, 5), randn(6, 3)), edges(9, 6, 30))
    if name == "GATConv":
        assert_same(name, (5, 4), {"add_self_loops": False}, (randn(9, 5), None), edges(9, 6, 30), None, (9, 6))
        assert_same(name, (5, 4), {}, (randn(9, 5), None), edges(9, 6, 30))
    else:
        assert_same(name, (5, 4), {"share_weights": True, "heads": 2}, randn(9, 5), edges(9, 9, 30))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("loops", [True, False])
def test_no_edges_and_isolated_nodes(name, loops):
    assert_same(name, (5, 4), {"add_self_loops": loops}, randn(6, 5), torch.zeros(2, 0, dtype=torch.long))
    assert_same(name, (5, 4), {"add_self_loops": loops}, randn(6, 5), torch.tensor([[0, 0, 5], [5, 5, 5]]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("edge_dim", [None, 3])
def test_the_weights_of_the_edges(name, edge_dim):
    ours, theirs = pair(name, 5, 4, heads=2, edge_dim=edge_dim)
    x, index = randn(9, 5), edges(9, 9, 30)
    features = None if edge_dim is None else randn(30, 3)
    (a, (a_edges, a_weights)), (b, (b_edges, b_weights)) = (f(x, index, features, return_attention_weights=True) for f in (ours, theirs))
    assert torch.equal(a_edges, b_edges)
    torch.testing.assert_close((a, a_weights), (b, b_weights))
    for p, q in zip(*(torch.autograd.grad(w.square().sum(), x) for w in (a_weights, b_weights))):
        torch.testing.assert_close(p, q)


@pytest.mark.parametrize("name", NAMES)
def test_a_graph_made_once_serves_again(name):
    layer = getattr(fovea.nn, name)(5, 4, heads=2, add_self_loops=False).double()
    x, index = randn(9, 5), edges(9, 9, 40)
    graph = fovea.Graph.from_edge_index(index, 9)
    torch.testing.assert_close(layer(x, graph), layer(x, index))
    torch.testing.assert_close(torch.compile(layer, backend="aot_eager")(x, index), layer(x, index))


@pytest.mark.parametrize("name", NAMES)
def test_dropout_drops_in_training_alone(name):
    layer = getattr(fovea.nn, name)(5, 4, dropout=0.6).double()
    x, index = randn(9, 5), edges(9, 9, 40)
    assert not torch.equal(layer(x, index), layer(x, index))
    assert torch.equal(layer.eval()(x, index), layer(x, index))


def test_edges_in_any_order_are_a_graph():
    graph = fovea.Graph.from_edge_index(torch.tensor([[4, 0, 2, 0], [1, 3, 1, 1]]), 5)
    assert graph.row_offsets.tolist() == [0, 0, 3, 3, 4, 4] and graph.columns.tolist() == [4, 2, 0, 0]
    assert fovea.Graph.from_edge_index(torch.zeros(2, 0, dtype=torch.long)).row_offsets.tolist() == [0]
    assert fovea.Graph.from_edge_index(torch.tensor([[0], [3]])).row_offsets.tolist() == [0, 0, 0, 0, 1]
    for wrong, said in ((torch.zeros(3, 2), r"edge_index: a tensor \[3, 2\]"), (torch.tensor([[0], [7]]), "edge_index: a target of 7, expected 0 to 4")):
        with pytest.raises(ValueError, match=said):
            fovea.Graph.from_edge_index(wrong, 5)
    with pytest.raises(ValueError, match="num_nodes: -1, expected at least 0"):
        fovea.Graph.from_edge_index(torch.zeros(2, 0, dtype=torch.long), -1)


def test_wrong_edges_are_named():
    layer, x = fovea.nn.GATv2Conv(5, 4), torch.randn(3, 5)
    for call, said in (
        ((x, torch.zeros(3, 2, dtype=torch.long)), r"edge_index: a tensor \[3, 2\] of int64, expected whole numbers \[2, E\]"),
        ((x, torch.tensor([[0], [9]])), "edge_index: a target of 9, expected 0 to 2"),
        ((x, torch.tensor([[0], [1]]), torch.randn(2, 3)), r"edge_attr: 2 rows, expected 1 \(edges\)"),
        ((x, torch.tensor([[0], [1]]), torch.randn(1, 3)), r"edge_attr: given, expected none"),
    ):
        with pytest.raises(ValueError, match=said):
            layer(*call)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("channels", [-1, (-1, -1)])
def test_channels_of_minus_one_are_those_of_the_first_call(name, channels):
    """As in torch_geometric, whose tutorials of several kinds of nodes write them so."""
    x = randn(6, 5) if channels == -1 else (randn(6, 5), randn(6, 3, seed=1))
    options = {"heads": 2, "residual": True, "add_self_loops": False, "edge_dim": -1}
    ours, theirs = (getattr(place, name)(channels, 4, **options).double() for place in (fovea.nn, geometric))
    call = x, edges(6, 6, 20), randn(20, 3)
    out = ours(*call)
    drawn = ours.get_parameter("lin_l.weight" if name == "GATv2Conv" else "lin.weight" if channels == -1 else "lin_src.weight")
    assert drawn.shape == (8, 5) and 0 < drawn.abs().max() <= (6 / 13) ** 0.5  # Glorot's limit
    theirs(*call)
    theirs.load_state_dict(ours.state_dict())
    torch.testing.assert_close(out, theirs(*call))
    loaded = getattr(fovea.nn, name)(channels, 4, **options).double()
    loaded.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(out, loaded(*call))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("loops", [False, True])
def test_a_sparse_matrix_of_edges_has_targets_as_its_rows(name, loops):
    ours, theirs = pair(name, 5, 4, heads=2, add_self_loops=loops)
    index = torch.tensor([[0, 1, 2, 2, 4], [1, 2, 0, 2, 1]])
    matrix = torch.sparse_coo_tensor(index.flip(0), torch.ones(5), (6, 6)).coalesce()
    x = randn(6, 5)
    for sparse in (matrix, matrix.to_sparse_csr()):
        torch.testing.assert_close(ours(x, sparse), theirs(x, sparse))
    torch.testing.assert_close(ours(x, matrix.to_sparse_csc()), ours(x, index))


@pytest.mark.parametrize("name", NAMES)
def test_the_arguments_are_torch_geometrics(name):
    ours, theirs = (inspect.signature(getattr(place, name)).parameters for place in (fovea.nn, geometric))
    named = [p for p in theirs.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [(p.name, p.default) for p in ours.values()] == [(p.name, p.default) for p in named]


def test_layers_of_two_kinds_of_nodes_serve_in_torch_geometrics_containers():
    kinds = {("user", "buys", "item"): (5, 3), ("item", "bought by", "user"): (3, 5)}
    x = {"user": randn(7, 5), "item": randn(6, 3)}
    index = {kind: edges(len(x[kind[0]]), len(x[kind[2]]), 20, seed) for seed, kind in enumerate(kinds)}
    made = {kind: pair("GATConv", widths, 4, add_self_loops=False) for kind, widths in kinds.items()}
    ours, theirs = (geometric.HeteroConv({kind: layers[place] for kind, layers in made.items()})(x, index) for place in (0, 1))
    torch.testing.assert_close(ours, theirs)
    layers = pair("GATv2Conv", 5, 4)
    ours, theirs = (geometric.Sequential("x, edge_index", [(layer, "x, edge_index -> x"), torch.nn.ELU()]) for layer in layers)
    index = edges(7, 7, 20)
    torch.testing.assert_close(ours(x["user"], index), theirs(x["user"], index))


class OfOneKind(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, edge_index):
        return self.layer(x, edge_index)


def test_to_hetero_keeps_relations_of_layers_that_are_not_its_own_apart():
    """docs/python.md says so: the keys are then relations, where those of torch_geometric's layers are kinds of nodes."""
    relations = [("user", "buys", "item"), ("item", "bought by", "user")]
    x = {"user": randn(7, 5), "item": randn(6, 5)}
    index = {kind: edges(len(x[kind[0]]), len(x[kind[2]]), 20) for kind in relations}
    found = [geometric.to_hetero(OfOneKind(layer), (list(x), relations))(x, index) for layer in pair("GATConv", (5, 5), 4, add_self_loops=False)]
    assert [set(each) for each in found] == [set(relations), set(x)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("edge_dim", [None, 3])
def test_the_weights_of_the_edges_in_half_precision(name, dtype, edge_dim):
    layer, _ = pair(name, 5, 4, heads=2, edge_dim=edge_dim)
    x, index = randn(9, 5), edges(9, 9, 30)
    given = [x, index, None if edge_dim is None else randn(30, 3)]
    expected, (_, weights) = layer(*given, return_attention_weights=True)
    half = [g.to(dtype) if torch.is_tensor(g) and g.is_floating_point() else g for g in given]
    out, (every, found) = layer.to(dtype)(*half, return_attention_weights=True)
    assert out.dtype == found.dtype == dtype
    torch.testing.assert_close((out.double(), found.double()), (expected, weights), atol=0.1, rtol=0.1)
    sums = torch.zeros(9, 2).index_add(0, every[1], found.float())  # as of the scores that the operator has, not of rounded ones
    torch.testing.assert_close(sums, torch.ones(9, 2), atol=16 * torch.finfo(dtype).eps, rtol=0)
    (out.sum() + found.square().sum()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())
