"""Models of `transformers` that do more with masks and weights than its interface says: they are eager's too, or refused by name."""

import sys
from types import ModuleType

import pytest
import torch

import fovea

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()
fovea.hf.register()

SMALL = dict(
    vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
    max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
INDEXED = dict(
    q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=4, qk_nope_head_dim=8, v_head_dim=8, n_routed_experts=2, num_experts_per_tok=1,
    n_group=1, topk_group=1, n_shared_experts=1, moe_intermediate_size=16, index_topk=4, index_head_dim=8, index_n_heads=2,
)  # fmt: skip
MODELS = {
    "DeepseekV32Config": INDEXED,  # an indexer reads the mask, and chooses four keys for each query
    "DogeConfig": {},  # adds the mask to one of its own
    "Inkling2TextConfig": {"head_dim": 8, "num_experts": 2, "num_experts_per_tok": 1},  # a sink of each query
}


def made(name, **settings):
    kind = getattr(transformers, name, None)
    if kind is None:
        pytest.skip(f"transformers {transformers.__version__} has no {name}")
    config = kind(**{name: value for name, value in {**SMALL, **settings}.items() if name in SMALL or hasattr(kind(), name)})
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    return model


def padded(rows):
    ids = torch.randint(3, 64, (3, rows), generator=torch.Generator().manual_seed(rows))
    return ids, (torch.arange(rows) >= torch.tensor([[0], [4], [7]])).long()


@pytest.mark.parametrize("name", MODELS)
def test_logits_greedy_text_and_attentions_are_eagers(name):
    model, (ids, mask) = made(name, **MODELS[name]), padded(13)
    found = []
    for implementation in ("eager", "fovea"):
        model.set_attn_implementation(implementation)
        with torch.no_grad():
            out = model(ids, attention_mask=mask, output_attentions=True)
            found.append((out.logits[mask.bool()], out.attentions, model.generate(ids, attention_mask=mask, max_new_tokens=5, do_sample=False)))
    (theirs, their_weights, their_text), (ours, our_weights, our_text) = found
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
    assert torch.equal(our_text, their_text)
    for a, b in zip(our_weights, their_weights):
        torch.testing.assert_close(a[0], b[0], atol=1e-4, rtol=1e-4)  # the item without padding


def test_keys_that_a_model_adds_after_its_mask_are_refused():
    model, (ids, mask) = made("DeepseekV4Config", layer_types=["compressed_sparse_attention"] * 2, index_topk=4), padded(20)
    model.set_attn_implementation("fovea")
    with pytest.raises(NotImplementedError, match="DeepseekV4Attention: 25 keys beside a mask of 20, expected as many"):
        model(ids, attention_mask=mask, use_cache=False)


class Twisted(torch.nn.Module):
    """Of a model whose own formula takes an argument that nobody knows."""


def test_an_argument_that_changes_a_models_weights_is_not_passed_over(monkeypatch):
    theirs = ModuleType("modeling_twisted")
    theirs.eager_attention_forward = lambda module, query, key, value, attention_mask, scaling, dropout=0.0, twist=None, **more: None
    monkeypatch.setitem(sys.modules, "modeling_twisted", theirs)
    monkeypatch.setattr(Twisted, "__module__", "modeling_twisted")
    attention, x = transformers.AttentionInterface()["fovea"], torch.randn(1, 2, 5, 8)
    for harmless in ({}, {"twist": None}, {"position_ids": torch.arange(5)}, {"somebodys": torch.ones(1)}):
        attention(Twisted(), x, x, x, None, scaling=1.0, **harmless)
    for name in ("twist", "block_indices"):
        with pytest.raises(NotImplementedError, match=f"Twisted: gives {name}, which fovea.hf does not know; use attn_implementation='eager'"):
            attention(Twisted(), x, x, x, None, scaling=1.0, **{name: torch.ones(1)})


MASKS = {
    "causal": lambda m: m.causal_mask_function,
    "all": lambda m: m.bidirectional_mask_function,
    "window": lambda m: m.sliding_window_causal_mask_function(3),
    "window of both sides": lambda m: m.sliding_window_bidirectional_mask_function(3),
    "chunks": lambda m: m.chunked_causal_mask_function(4, torch.tensor([0, 2])),
    "packed": lambda m: m.and_masks(m.causal_mask_function, m.packed_sequence_mask_function(torch.tensor([[0, 0, 1, 1, 1, 2, 2], [0] * 7]))),
    "one of its own": lambda m: m.and_masks(m.causal_mask_function, lambda batch, head, i, j: (i + j) % 3 != 1),
}


@pytest.mark.parametrize("offset", [0, 4, torch.tensor(4)], ids=["first", "later", "counted"])
@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("name", MASKS)
def test_a_mask_that_a_model_changes_is_the_tensor_that_transformers_writes(name, padding, offset):
    masking = transformers.masking_utils
    if name == "packed" and not (isinstance(offset, int) and offset == 0):
        pytest.skip("packed sequences have no cache")
    keys = 7 + int(offset)
    given = torch.arange(keys) >= torch.tensor([[0], [2]]) if padding else None
    arguments = dict(batch_size=2, q_length=7, kv_length=keys, q_offset=offset, mask_function=MASKS[name](masking), attention_mask=given)
    ours = masking.AttentionMaskInterface()["fovea"](**arguments)
    theirs = masking.sdpa_mask(**arguments, allow_is_causal_skip=False)
    assert type(ours) is fovea.hf.Mask and ours.dtype == theirs.dtype and ours.shape == (*theirs.shape[:1], 1, *theirs.shape[2:])
    assert torch.equal(ours[:, :, 1:], theirs[:, :, 1:]) and torch.equal(ours & theirs, theirs) and torch.equal(~ours, ~theirs)
    assert torch.equal(torch.where(ours, 1.0, 0.0), theirs.float()) and torch.equal(torch.cat([ours, theirs], -1)[..., :keys], theirs)
    assert torch.equal(ours.masked_fill(theirs, False), torch.zeros_like(theirs)) and torch.equal(ours.to("cpu")[:], theirs)
    with pytest.raises(AttributeError, match="Mask: no attribute widht"):
        ours.widht


WAYS = {
    "another model's drafts": lambda draft: dict(assistant_model=draft),
    "drafts of the prompt": lambda draft: dict(prompt_lookup_num_tokens=3),
    "a prompt in pieces": lambda draft: dict(prefill_chunk_size=4),
    "sampled beams": lambda draft: dict(do_sample=True, num_beams=2, num_return_sequences=2),
    "beams in a static cache": lambda draft: dict(num_beams=3, cache_implementation="static", disable_compile=True),
    "no cache": lambda draft: dict(use_cache=False),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["Gemma2Config", "MistralConfig"])
def test_text_is_eagers_in_whatever_way_it_is_generated(name, way):
    settings = {"sliding_window": 5, "head_dim": 8}
    model, draft = made(name, **settings), made(name, **{**settings, "num_hidden_layers": 1})
    ids, mask = padded(13)
    if "drafts" in way:  # which are of one text
        ids, mask = torch.cat([ids[:1], ids[:1]], 1), torch.ones(1, 26, dtype=torch.long)
    found = []
    for implementation in ("eager", "fovea"):
        for each in (model, draft):
            each.set_attn_implementation(implementation)
        torch.manual_seed(0)
        options = {"do_sample": False, "max_new_tokens": 8, **WAYS[way](draft)}
        out = model.generate(ids, attention_mask=mask, output_attentions=True, output_logits=True, return_dict_in_generate=True, **options)
        found.append(out)
    assert torch.equal(found[0].sequences, found[1].sequences) and found[0].sequences.shape[1] > ids.shape[1]
    for a, b in zip(found[0].logits, found[1].logits):
        torch.testing.assert_close(b, a, atol=1e-3, rtol=1e-3)
