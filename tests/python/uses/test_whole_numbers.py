"""Whole numbers of every type that numpy and data sets have, in every argument that takes them."""

import pytest
import torch

import fovea

TYPES = [getattr(torch, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]
QUERY, KEY, VALUE = torch.randn(3, 1, 2, 5, 8).unbind()
PACKED, POOL = torch.randn(5, 2, 8), torch.randn(4, 2, 2, 8)
GAT, MIL = fovea.nn.GATConv(8, 2), fovea.nn.MultipleInstance(8, 2)

# Each takes a function that makes an array of the type.
CALLS = {
    "key_lengths": lambda n: fovea.attend(QUERY, KEY, VALUE, key_lengths=n([3])),
    "query_offset": lambda n: fovea.attend(QUERY, KEY, VALUE, structure=fovea.Causal(), query_offset=n([3])),
    "Documents": lambda n: fovea.attend(QUERY, KEY, VALUE, structure=fovea.Documents(n([0, 0, 1, 1, 2]), n([0, 1, 1, 2, 2]))),
    "Prefix": lambda n: fovea.attend(QUERY, KEY, VALUE, structure=fovea.Prefix(n([3]))),
    "Ragged": lambda n: fovea.attend(PACKED, PACKED, PACKED, structure=fovea.Ragged(n([0, 3, 5]), n([0, 2, 5]))),
    "Graph": lambda n: fovea.attend(PACKED, PACKED, PACKED, structure=fovea.Graph(n([0, 1, 2, 3, 4, 5]), n([0, 1, 2, 3, 3]))),
    "edges": lambda n: fovea.attend(PACKED, PACKED, PACKED, structure=fovea.Graph.from_edge_index(n([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]]))),
    "Paged": lambda n: fovea.attend(QUERY, POOL, POOL, structure=fovea.Paged(n([[0, 1, 2]]), n([5]))),
    "rows": lambda n: fovea.weights(QUERY, KEY, rows=n([3]), heads=n([1])),
    "chains": lambda n: fovea.chain_marginals(torch.ones(2, 6, 2), torch.eye(2), lengths=n([3, 4])).states,
    "trees": lambda n: fovea.tree_marginals(torch.ones(2, 6, 6), lengths=n([3, 4])).arcs,
    "GATConv": lambda n: GAT(PACKED[:, 0], n([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]])),
    "MultipleInstance": lambda n: MIL(PACKED[:, 0], n([0, 2, 5])),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_any_type_of_whole_numbers_is_taken(name, dtype):
    with torch.no_grad():
        got, expected = (CALLS[name](lambda numbers, type_=type_: torch.tensor(numbers, dtype=type_)) for type_ in (dtype, torch.int64))
    assert torch.equal(got, expected)


@pytest.mark.parametrize("number", [2**63 + 3, 2**64 - 1])
def test_a_number_beyond_int64_does_not_wrap(number):
    with pytest.raises(ValueError, match="key_lengths: a number beyond 32 bits"):
        fovea.attend(QUERY, KEY, VALUE, key_lengths=torch.tensor([number], dtype=torch.uint64))


def test_positions_from_the_end_do_not_wrap_in_eight_bits():
    query = torch.randn(1, 1, 300, 4)
    assert torch.equal(fovea.weights(query, query, rows=torch.tensor([-1], dtype=torch.int8)), fovea.weights(query, query, rows=-1))


def test_more_nodes_and_bags_than_eight_bits_count():
    few = torch.tensor([[0, 1, 2], [1, 2, 0]])
    assert fovea.Graph.from_edge_index(few.to(torch.int8), num_nodes=300) == fovea.Graph.from_edge_index(few, num_nodes=300)
    x = torch.randn(300, 8)
    assert torch.equal(GAT(x, few.to(torch.int8)), GAT(x, few))
    offsets = torch.zeros(300, dtype=torch.int64)
    offsets[1:] = 5
    assert torch.equal(MIL(x[:5], offsets.to(torch.int8)), MIL(x[:5], offsets))
    assert torch.equal(MIL.weights(x[:5], offsets.to(torch.uint8)), MIL.weights(x[:5], offsets))
