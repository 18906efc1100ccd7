"""Programs taken out of Python: torch.export, and AOTInductor, which runs the operators from C++."""

import pytest
import torch

import fovea


class Model(torch.nn.Module):
    """One call of each kind: choices without a number or tensor, with numbers, with tensors, with none but a length of the input."""

    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(8, 8)
        self.slopes = torch.nn.Parameter(torch.tensor([0.5, 0.25]))

    def forward(self, query, key, value, lengths):
        query = self.project(query)
        rows = query.shape[2]
        return (
            fovea.attend(query, key, value),
            fovea.attend(query, key, value, fovea.Dot(0.5).soft_cap(3.0), fovea.Entmax(1.5), fovea.Causal()),
            fovea.attend(query, key, value, structure=fovea.Window(2, 0), scale=0.25),
            fovea.attend(query, key, value, structure=fovea.Causal() & fovea.Window(rows // 2, -1)),
            fovea.attend(query, key, value, fovea.Dot().alibi(self.slopes), fovea.TopK(3), key_lengths=lengths),
            fovea.attend(query, key, value, structure=fovea.Causal(), query_offset=2),
            *fovea.attend(query, key, value, fovea.Dot().alibi(self.slopes), return_lse=True, return_empty_rows=True),
            fovea.weights(query, key, normaliser=fovea.Sparsemax()),
            *fovea.weights(query, key, structure=fovea.Window(1, 1), top_k=2),
        )


def inputs(rows):
    generator = torch.Generator().manual_seed(rows)
    return (*(torch.randn(2, 2, rows, 8, generator=generator) for _ in range(3)), torch.tensor([rows - 2, rows]))


@pytest.fixture(scope="module")
def exported():
    model = Model().eval()
    rows = torch.export.Dim("rows", min=4, max=64)
    shapes = {"query": {2: rows}, "key": {2: rows}, "value": {2: rows}, "lengths": None}
    return model, torch.export.export(model, inputs(6), dynamic_shapes=shapes)


def assert_same(got, expected):
    assert len(got) == len(expected)
    for a, b in zip(got, expected):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


def test_an_exported_program_is_the_model(exported):
    model, program = exported
    for rows in (6, 11):
        assert_same(program.module()(*inputs(rows)), model(*inputs(rows)))


def test_an_exported_program_is_saved_and_read_back(exported, tmp_path):
    model, program = exported
    torch.export.save(program, tmp_path / "model.pt2")
    assert_same(torch.export.load(tmp_path / "model.pt2").module()(*inputs(9)), model(*inputs(9)))


def test_compiled_ahead_of_time_it_is_the_model(exported, tmp_path):
    model, program = exported
    with torch.no_grad():
        path = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "model.pt2"))
        compiled = torch._inductor.aoti_load_package(path)
        for rows in (6, 11):
            assert_same(compiled(*inputs(rows)), model(*inputs(rows)))
