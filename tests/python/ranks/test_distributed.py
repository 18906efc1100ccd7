"""fovea.distributed: processes over loopback, each compared with the whole call of one process."""

import loopback
import pytest
import torch
import torch.distributed as dist

import fovea
import fovea.distributed as fd

BOUNDS = {"torch.float32": 2e-5, "torch.float64": 1e-12}


@pytest.mark.parametrize("ranks", [2, 3])
def test_every_rank_has_its_part_of_the_whole(ranks):
    for found in loopback.answers("cases.py", ranks):
        assert len(found) == 2 * 7 * 3 * 2 + 2 * 11 * 4 + 2 * 3 + 3
        assert not {case: error for case, error in found.items() if not error <= BOUNDS[case.split(", ")[3]]}


@pytest.fixture
def alone(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_one_rank_is_the_whole(alone):
    rows = torch.randn(1, 2, 16, 8)
    expected = fovea.attend(rows, rows, rows, structure=fovea.Causal())
    for layout in ("contiguous", "zigzag"):
        assert torch.equal(fd.shard(rows, layout=layout), rows)
        assert torch.allclose(fd.attend(rows, rows, rows, structure=fovea.Causal(), layout=layout), expected, atol=1e-6)


@pytest.mark.parametrize("normaliser", [fovea.Softmax(), fovea.Sparsemax(), fovea.TopK(3)])
def test_a_gradient_with_a_graph_is_refused(alone, normaliser):
    # It was given without that of the rows: second derivatives lacked a part.
    rows = torch.randn(1, 2, 16, 8, requires_grad=True)
    loss = fd.attend(rows, rows, rows, normaliser=normaliser).square().sum()
    with pytest.raises(RuntimeError, match="create_graph.*expected first derivatives only"):
        torch.autograd.grad(loss, rows, create_graph=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(normaliser=fovea.Entmax(torch.tensor([1.5]))), "normaliser: entmax, expected an alpha that is a number above 1"),
        (dict(normaliser=fovea.Hard(sample=True)), "normaliser: hard with sample, expected hard without"),
        (dict(normaliser=fovea.Sparsemax(), score=fovea.Cosine()), "score: cosine, expected dot alone with sparsemax"),
        (dict(normaliser=fovea.Sigmoid(), return_lse=True), "return_lse: .*Sigmoid.* has no log-sum-exp"),
        (dict(structure=fovea.Prefix(3)), "structure: prefix, expected dense, causal, window, documents"),
        (dict(structure=fovea.Causal("bottom_right")), "bottom_right"),
        (dict(score=fovea.Dot().bias(torch.zeros(16, 16))), "score: bias, expected alibi or soft_cap"),
        (dict(score=fovea.Location()), "score: location, expected one of dot, bilinear"),
        (dict(layout="spiral"), "layout: 'spiral', expected 'contiguous' or 'zigzag'"),
    ],
)
def test_what_is_refused(alone, options, words):
    rows = torch.randn(1, 2, 16, 8)
    with pytest.raises(ValueError, match=words):
        fd.attend(rows, rows, rows, **options)
    with pytest.raises(ValueError, match="rows and key 8, expected as many"):
        fd.attend(rows, rows[:, :, :8], rows[:, :, :8])
    with pytest.raises(ValueError, match="query: on meta, expected the CPU"):
        fd.attend(*[rows.to("meta")] * 3)
    with pytest.raises(ValueError, match="15 rows, expected a multiple of 2"):
        fd.shard(rows[:, :, 1:], layout="zigzag")
