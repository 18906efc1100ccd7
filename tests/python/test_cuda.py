"""CUDA tensors: libtorch's fused attention where it serves, the composed formula elsewhere; both agree with the CPU."""

import pytest
import torch
from cases import NORMALISERS, PACKED, SCORES, STRUCTURES, operands, parameters

import fovea

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def moved(choice, device):
    """The same choice with its tensors on a device."""
    for part in (*getattr(choice, "parts", (choice,)), *getattr(choice, "_modifiers", ())):
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor):
                object.__setattr__(part, name, value.detach().to(device).requires_grad_(value.requires_grad))
    return choice


def results(device, score, normaliser, structure, **options):
    packed = structure in PACKED
    choices = SCORES[score][2](), NORMALISERS[normaliser](), (PACKED if packed else STRUCTURES)[structure]()
    inputs = [x.detach().to(device).requires_grad_() for x in operands(score, packed)]
    choices = [moved(choice, device) for choice in choices]
    out = fovea.attend(*inputs, *choices, **options)
    outs = out if isinstance(out, tuple) else (out,)
    arrays = [array for _, _, array in parameters(*choices[:2])]
    loss = sum((x * torch.arange(x.numel(), device=device).reshape(x.shape).cos()).sum() for x in outs if x.requires_grad)
    gradients = torch.autograd.grad(loss, [*inputs, *arrays], allow_unused=True) if loss.requires_grad else []
    return [x.cpu() for x in (*outs, *(g for g in gradients if g is not None))]


def check(score="dot", normaliser="softmax", structure="dense", **options):
    ours = results("cuda", score, normaliser, structure, **options)
    expected = results("cpu", score, normaliser, structure, **options)
    assert len(ours) == len(expected)
    for a, b in zip(ours, expected):
        torch.testing.assert_close(a, b, atol=1e-9, rtol=1e-8)


@pytest.mark.parametrize("score", SCORES)
def test_each_score(score):
    check(score=score)


@pytest.mark.parametrize("normaliser", NORMALISERS)
def test_each_normaliser(normaliser):
    check(score="gaussian", normaliser=normaliser)


@pytest.mark.parametrize("structure", [*STRUCTURES, *PACKED])
def test_each_structure(structure):
    check(score="additive", structure=structure)


def test_log_sum_exp_dropout_and_sampling():
    check(return_lse=True, dropout_p=0.3, seed=4)
    check(normaliser="hard", return_lse=True)
    check(score="bias", normaliser="top_k", return_lse=True)


def test_key_lengths_on_either_device_hide_whatever_padding_holds():
    torch.manual_seed(0)
    for score, structure in ((fovea.Dot(), fovea.Dense()), (fovea.Dot(), fovea.Causal()), (fovea.Cosine(1.0), fovea.Dense())):
        query, key, value = torch.randn(3, 3, 2, 7, 8).unbind(0)
        lengths = torch.tensor([5, 0, 7], dtype=torch.int32)
        key[0, :, 5:], value[0, :, 5:] = float("nan"), float("inf")
        expected, *expected_gradients = gradients_of(query, key, value, score, structure, lengths)
        for given in (lengths, lengths.cuda()):
            got, *gradients = gradients_of(query.cuda(), key.cuda(), value.cuda(), score, structure, given)
            for a, b in zip((got, *gradients), (expected, *expected_gradients)):
                torch.testing.assert_close(a.cpu(), b, atol=2e-5, rtol=1e-4)


def gradients_of(query, key, value, score, structure, lengths):
    inputs = [x.detach().clone().requires_grad_() for x in (query, key, value)]
    out = fovea.attend(*inputs, score, structure=structure, key_lengths=lengths)
    return out.detach(), *torch.autograd.grad(out.square().sum(), inputs)


def test_second_derivatives():
    query, key, value = (x.detach().cuda().requires_grad_() for x in operands("dot"))
    attend = lambda q, k, v: fovea.attend(q, k, v, fovea.Dot().soft_cap(2.0), fovea.Entmax())
    assert torch.autograd.gradgradcheck(attend, (query, key, value), fast_mode=True)


def test_selected_weights():
    query, key, _ = (x.detach() for x in operands("dot"))
    for options in ({}, {"rows": [3, 1]}, {"heads": [1]}, {"top_k": 2}, {"column_sums": True}):
        ours = fovea.weights(query.cuda(), key.cuda(), structure=fovea.Causal(), **options)
        expected = fovea.weights(query, key, structure=fovea.Causal(), **options)
        for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (ours, expected))):
            torch.testing.assert_close(a.cpu(), b)


@pytest.mark.parametrize("structure", [fovea.Dense(), fovea.Causal()])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_dot_product_softmax_is_libtorchs_fused_attention(structure, dtype):
    inputs = [torch.randn(2, 4, 128, 64, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3)]
    assert "sdpa: taken" in fovea.explain_dispatch(*inputs, structure=structure)
    ours = fovea.attend(*inputs, structure=structure, strict=True)
    theirs = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=isinstance(structure, fovea.Causal))
    assert torch.equal(ours, theirs)
    for a, b in zip(*(torch.autograd.grad(x.float().sum(), inputs, retain_graph=True) for x in (ours, theirs))):
        torch.testing.assert_close(a, b)


def test_strict_refuses_to_fall_back_with_every_reason():
    query, key, value = (x.detach().cuda() for x in operands("dot"))
    said = fovea.explain_dispatch(query, key, value, normaliser=fovea.Sparsemax(), structure=fovea.Window(1, 1))
    assert "composed: taken" in said
    with pytest.raises(RuntimeError, match="normaliser sparsemax; structure window"):
        fovea.attend(query, key, value, normaliser=fovea.Sparsemax(), structure=fovea.Window(1, 1), strict=True)


def test_bad_input_is_named_as_on_the_cpu():
    query, key, value = (x.detach().cuda() for x in operands("dot"))
    with pytest.raises(ValueError, match="key: width 3, expected 4"):
        fovea.attend(query, key[..., :3], value, normaliser=fovea.Sparsemax())
    with pytest.raises(ValueError, match=r"key_lengths\[1\]: 9, expected between 0 and 7"):
        fovea.attend(query, key, value, key_lengths=torch.tensor([1, 9], device="cuda"))
    with pytest.raises(ValueError, match="key_lengths: on cpu, expected cuda:0"):
        fovea.attend(query, key, value, key_lengths=torch.tensor([1, 2]))


def test_memory_is_bounded_in_a_long_sequence():
    shape = (1, 8, 8192, 64)
    inputs = [torch.randn(shape, device="cuda", requires_grad=True) for _ in range(3)]
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    fovea.attend(*inputs, normaliser=fovea.Sparsemax(), structure=fovea.Causal()).sum().backward()
    # One 8 x 8192 x 8192 float32 matrix alone would take 2.1 GB.
    assert torch.cuda.max_memory_allocated() - before < 1.5e9


def test_compiles_without_a_graph_break():
    query, key, value = (x.detach().float().cuda() for x in operands("dot"))
    model = lambda q, k, v: fovea.attend(q.sin(), k, v, fovea.Dot().soft_cap(3.0), fovea.Softmax(), fovea.Causal())
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(query, key, value), model(query, key, value))
