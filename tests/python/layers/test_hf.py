"""Models of `transformers` with attn_implementation="fovea" give eager's logits and eager's greedy text, and write no mask out."""

import copy
import re

import pytest
import torch

import fovea

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()
fovea.hf.register()

IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SMALL = dict(
    vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
    max_position_embeddings=128, **IDS,
)  # fmt: skip
GPT2 = dict(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=128, **IDS)
DECODERS = {
    "Llama": lambda: transformers.LlamaConfig(**SMALL),
    "Mistral": lambda: transformers.MistralConfig(**SMALL, sliding_window=5),
    "Gemma-2": lambda: transformers.Gemma2Config(**SMALL, sliding_window=5, attn_logit_softcapping=2.0, query_pre_attn_scalar=8),
    "gpt-oss": lambda: transformers.GptOssConfig(**SMALL, sliding_window=5, num_local_experts=2, num_experts_per_tok=1),
    "GPT-2": lambda: transformers.GPT2Config(**GPT2),
    "Llama-4 (chunks)": lambda: transformers.Llama4TextConfig(
        **SMALL, attention_chunk_size=4, num_local_experts=2, intermediate_size_mlp=48, no_rope_layers=[1, 0], attn_temperature_tuning=False
    ),
}


def made(config, kind=transformers.AutoModelForCausalLM, dtype=torch.float32):
    """A model with weights large enough that attention is not even."""
    torch.manual_seed(0)
    model = kind.from_config(config, attn_implementation="eager").to(dtype).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return model


def tokens(*shape):
    return torch.randint(3, 64, shape, generator=torch.Generator().manual_seed(sum(shape)))


def padded(ids, side):
    mask = torch.ones_like(ids)
    for row, count in ((1, 4), (2, 7)):
        if side == "left":
            mask[row, :count] = 0
        elif side == "right":
            mask[row, -count:] = 0
    return mask


def both(model, call):
    """What a call gives with eager attention, and with ours."""
    found = []
    for name in ("eager", "fovea"):
        model.set_attn_implementation(name)
        with torch.no_grad():
            found.append(call(model))
    return found


@pytest.mark.parametrize("side", ["none", "left", "right"])
@pytest.mark.parametrize("name", DECODERS)
def test_logits_and_greedy_text_are_eagers(name, side):
    model, ids = made(DECODERS[name]()), tokens(3, 11)
    mask = padded(ids, side)
    theirs, ours = both(model, lambda m: m(ids, attention_mask=mask).logits)
    seen = mask.bool() if side != "left" else mask.bool() & (mask.cumsum(1) > 0)
    torch.testing.assert_close(ours[seen], theirs[seen], atol=1e-4, rtol=1e-4)
    if side != "right":
        theirs, ours = both(model, lambda m: m.generate(ids, attention_mask=mask, max_new_tokens=12, do_sample=False))
        assert torch.equal(ours, theirs) and ours.shape[1] > 12


@pytest.mark.parametrize("name", ["Llama", "Mistral", "Gemma-2", "gpt-oss"])
def test_a_static_cache_and_tokens_in_several_pieces(name):
    model, ids = made(DECODERS[name]()), tokens(3, 11)
    mask = padded(ids, "left")
    options = dict(attention_mask=mask, max_new_tokens=6, do_sample=False, disable_compile=True)
    theirs, ours = both(model, lambda m: m.generate(ids, cache_implementation="static", **options))
    assert torch.equal(ours, theirs)

    def pieces(m):
        cache, found = transformers.DynamicCache(config=m.config), []
        for start, end in ((0, 6), (6, 10), (10, 11)):
            found.append(m(ids[:, start:end], attention_mask=mask[:, :end], past_key_values=cache).logits)
        return torch.cat(found, 1)[mask.bool()]

    theirs, ours = both(model, pieces)
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_beams_and_sampling_are_eagers():
    model, ids = made(DECODERS["Llama"]()), tokens(3, 11)
    mask = padded(ids, "left")
    theirs, ours = both(model, lambda m: m.generate(ids, attention_mask=mask, max_new_tokens=6, num_beams=3, do_sample=False))
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("side", ["none", "left", "right"])
def test_bert(side):
    config = transformers.BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, pad_token_id=0
    )
    model, ids = made(config, transformers.AutoModel), tokens(3, 11)
    mask = padded(ids, side)
    theirs, ours = both(model, lambda m: m(ids, attention_mask=mask).last_hidden_state)
    torch.testing.assert_close(ours[mask.bool()], theirs[mask.bool()], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("side", ["none", "left", "right"])
def test_t5(side):
    config = transformers.T5Config(
        vocab_size=64, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, pad_token_id=0, eos_token_id=2, decoder_start_token_id=0
    )
    model, ids, answer = made(config, transformers.AutoModelForSeq2SeqLM), tokens(3, 11), tokens(3, 7)
    mask = padded(ids, side)
    theirs, ours = both(model, lambda m: m(input_ids=ids, attention_mask=mask, decoder_input_ids=answer).logits)
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
    theirs, ours = both(model, lambda m: m.generate(ids, attention_mask=mask, max_new_tokens=10, do_sample=False))
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("name", ["Llama", "Gemma-2", "gpt-oss", "GPT-2"])
def test_gradients_of_training_are_eagers(name):
    model, ids = made(DECODERS[name]()), tokens(3, 11)
    mask = padded(ids, "right")
    gradients = []
    for implementation in ("eager", "fovea"):
        model.set_attn_implementation(implementation)
        model.zero_grad()
        logits = model(ids, attention_mask=mask).logits
        logits[mask.bool()].square().sum().backward()
        gradients.append([None if p.grad is None else p.grad.clone() for p in model.parameters()])
    for a, b in zip(*gradients):
        torch.testing.assert_close(a, b, atol=1e-3, rtol=1e-3)


def test_gradient_checkpointing():
    model, ids = made(DECODERS["Llama"]()).train(), tokens(3, 11)
    model.set_attn_implementation("fovea")
    gradients = []
    for checkpointed in (False, True):
        model.gradient_checkpointing_enable() if checkpointed else model.gradient_checkpointing_disable()
        model.zero_grad()
        model(ids).logits.square().sum().backward()
        gradients.append(model.model.embed_tokens.weight.grad.clone())
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("name", ["Llama", "Mistral", "Llama-4 (chunks)"])
def test_packed_sequences_stay_apart_and_no_mask_is_written(name, monkeypatch):
    model, ids = made(DECODERS[name]()), tokens(1, 11)
    positions = torch.cat([torch.arange(5), torch.arange(6)])[None]  # the second does not begin with a chunk of the whole
    theirs, ours = both(model, lambda m: m(ids, position_ids=positions, use_cache=False).logits)
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
    # Before 5.23, eager's chunks are those of the whole row; ours are the same.
    if "Llama-4" not in name or hasattr(transformers.masking_utils, "remap_positions_for_packed_sequence"):
        alone, _ = both(model, lambda m: m(ids[:, 5:], use_cache=False).logits)
        torch.testing.assert_close(ours[:, 5:], alone, atol=1e-4, rtol=1e-4)
    monkeypatch.setattr(transformers.masking_utils, "sdpa_mask", lambda *a, **k: pytest.fail("a mask was written"))
    with torch.no_grad():
        torch.testing.assert_close(model(ids, position_ids=positions, use_cache=False).logits, ours)


@pytest.mark.parametrize("name", ["Llama", "GPT-2", "gpt-oss"])
def test_attentions_are_eagers(name):
    model, ids = made(DECODERS[name]()), tokens(2, 9)
    theirs, ours = both(model, lambda m: m(ids, output_attentions=True).attentions)
    assert len(ours) == len(theirs) == 2
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)
    model.set_attn_implementation("fovea")
    assert not model(ids).attentions


def test_masks_given_with_four_dimensions():
    model, ids = made(DECODERS["Llama"]()), tokens(2, 9)
    allowed = torch.ones(9, 9).tril().bool() & (torch.rand(9, 9, generator=torch.Generator().manual_seed(1)) > 0.2)
    allowed.fill_diagonal_(True)
    added = torch.where(allowed, 0.0, torch.finfo(torch.float32).min)[None, None].expand(2, 1, 9, 9)
    theirs, ours = both(model, lambda m: m(ids, attention_mask=added).logits)
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(model(ids, attention_mask=allowed.expand(2, 1, 9, 9)).logits, theirs, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", DECODERS)
def test_no_mask_of_queries_by_keys_is_written(name, monkeypatch):
    model, ids = made(DECODERS[name]()), tokens(3, 40)
    model.set_attn_implementation("fovea")
    seen = []
    real = fovea.hf.Mask.structure

    def spied(mask):
        structure = real(mask)
        seen.extend(x for part in structure._parts() for x in vars(part).values() if isinstance(x, torch.Tensor))
        return structure

    monkeypatch.setattr(fovea.hf.Mask, "structure", spied)
    monkeypatch.setattr(transformers.masking_utils, "sdpa_mask", lambda *a, **k: pytest.fail("a mask was written"))
    with torch.no_grad():
        model(ids, attention_mask=padded(ids, "left"))
    assert seen and max(x.numel() for x in seen) <= 3 * 40


@pytest.mark.parametrize(("name", "given"), [("Llama", "position_ids"), ("Gemma-2", "attention_mask"), ("Llama-4 (chunks)", "position_ids")])
def test_a_compiled_model_is_the_model_and_writes_no_mask(name, given, monkeypatch):
    monkeypatch.setattr(transformers.masking_utils, "sdpa_mask", lambda *a, **k: pytest.fail("a mask was written"))
    config = DECODERS[name]()
    config.num_hidden_layers = 2 if name == "Gemma-2" else 1  # of both kinds
    model, ids = made(config), tokens(3, 11)
    model.set_attn_implementation("fovea")
    mask = padded(ids, "left")
    call = {given: mask if given == "attention_mask" else torch.cat([torch.arange(4), torch.arange(7)]).expand(3, -1)}
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        expected, found = (f(ids, use_cache=False, **call).logits for f in (model, compiled))
    torch.testing.assert_close(found[mask.bool()], expected[mask.bool()], atol=1e-4, rtol=1e-4)


BERT = dict(vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=48, pad_token_id=0)
T5 = dict(vocab_size=64, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_heads=4, pad_token_id=0, eos_token_id=2, decoder_start_token_id=0)


@pytest.mark.parametrize("name", ["Mistral", "gpt-oss", "GPT-2", "BERT", "T5"])
def test_a_compiled_model_is_eagers(name):
    kinds = {"BERT": (transformers.AutoModel, transformers.BertConfig(**BERT)), "T5": (transformers.AutoModelForSeq2SeqLM, transformers.T5Config(**T5))}
    kind, config = kinds[name] if name in kinds else (transformers.AutoModelForCausalLM, DECODERS[name]())
    if name not in kinds:
        config.num_hidden_layers = 2 if name == "gpt-oss" else 1  # of both kinds
    model, ids = made(config, kind), tokens(3, 11)
    call = {"T5": {"decoder_input_ids": tokens(3, 7)}, "BERT": {}}.get(name, {"use_cache": False})
    masks = [padded(ids, side) for side in ("right", "left")]
    torch._dynamo.reset()
    with torch.no_grad():
        expected = [model(ids, attention_mask=mask, **call)[0] for mask in masks]
        model.set_attn_implementation("fovea")
        compiled = torch.compile(model, backend="aot_eager")
        found = [compiled(ids, attention_mask=mask, **call)[0] for mask in masks]
    for mask, ours, theirs in zip(masks, found, expected):
        seen = slice(None) if name == "T5" else mask.bool()
        torch.testing.assert_close(ours[seen], theirs[seen], atol=1e-4, rtol=1e-4)


def test_generating_with_a_compiled_step_and_a_static_cache():
    model, ids = made(DECODERS["Gemma-2"](), dtype=torch.float32), tokens(3, 11)
    model.set_attn_implementation("fovea")
    options = dict(attention_mask=padded(ids, "left"), max_new_tokens=8, do_sample=False)
    expected = model.generate(ids, **options)
    compiling = transformers.CompileConfig(backend="aot_eager", fullgraph=True, mode=None)
    compiling._compile_all_devices = True  # or a CPU is left out
    found = model.generate(ids, cache_implementation="static", compile_config=compiling, **options)
    assert torch.equal(found, expected)


def test_half_precision_inference_mode_and_copies(tmp_path):
    model, ids = made(DECODERS["Gemma-2"](), dtype=torch.float32), tokens(3, 11)
    theirs, _ = both(model, lambda m: m(ids).logits)
    model.save_pretrained(tmp_path)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="fovea", dtype=torch.float32)
    assert loaded.config._attn_implementation == "fovea"
    with torch.inference_mode():
        for copied in (loaded, copy.deepcopy(model)):
            torch.testing.assert_close(copied(ids).logits, theirs, atol=1e-4, rtol=1e-4)
        half = copy.deepcopy(model).bfloat16()
        reference = copy.deepcopy(half)
        reference.set_attn_implementation("eager")
        away = (reference(ids).logits.float() - theirs).abs().max()
        assert (half(ids).logits.float() - theirs).abs().max() < 2 * away + 0.05
        assert half(ids, output_attentions=True).attentions[0].dtype == reference(ids, output_attentions=True).attentions[0].dtype == torch.bfloat16


@pytest.mark.parametrize("place", ["auto", "cpu", "disk"])
def test_a_device_map_places_a_model(place, tmp_path):
    pytest.importorskip("accelerate")
    made(DECODERS["Llama"]()).save_pretrained(tmp_path / "model")
    ids = tokens(2, 9)
    wanted = place
    if place == "disk":  # weights that are read for each call
        wanted = dict.fromkeys(["model.embed_tokens", "model.layers.0", "model.norm", "model.rotary_emb", "lm_head"], "cpu") | {"model.layers.1": "disk"}
    load = transformers.AutoModelForCausalLM.from_pretrained
    eager = load(tmp_path / "model", attn_implementation="eager").eval()
    ours = load(tmp_path / "model", attn_implementation="fovea", device_map=wanted, offload_folder=str(tmp_path / "offloaded")).eval()
    assert ours.config._attn_implementation == "fovea"
    with torch.no_grad():
        torch.testing.assert_close(ours(ids).logits, eager(ids).logits, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(ours.generate(ids, max_new_tokens=3, do_sample=False), eager.generate(ids, max_new_tokens=3, do_sample=False))


def test_another_normaliser():
    fovea.hf.register("fovea-entmax", normaliser=fovea.Entmax(1.5))
    model, ids = made(DECODERS["Llama"]()), tokens(2, 9)
    model.set_attn_implementation("fovea-entmax")
    with torch.no_grad():
        weights = model(ids, output_attentions=True).attentions[0]
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 9))
    assert (weights == 0).float().mean() > 0.5  # some of them within the triangle
    sinks = made(DECODERS["gpt-oss"]())
    sinks.set_attn_implementation("fovea-entmax")
    with pytest.raises(ValueError, match="expected none for a model with attention sinks"):
        sinks(ids)
    with pytest.raises(TypeError, match="normaliser: .*expected a Normaliser"):
        fovea.hf.register(normaliser="entmax")


def test_the_example_in_the_help_runs():
    lines = re.findall(r"^ *(?:>>>|\.\.\.) ?(.*)$", fovea.hf.register.__doc__, re.M)
    exec("\n".join(lines), {"torch": torch, "fovea": fovea, "transformers": transformers})
