"""Rows of decoding: a step under a cache with a window, keys in pages, and models of transformers."""

from __future__ import annotations

import copy

import torch
from row import Row, have, normal

import fovea


def window_rows() -> list[Row]:
    """A step that sees the last 256 of 4,096 keys, beside SDPA with a mask, and with the keys cut out by hand."""
    items, heads, groups, keys, width, window = 4, 8, 2, 4096, 64, 256
    q = normal(items, heads, 1, width, seed=1).detach()
    k, v = (normal(items, groups, keys, width, seed=s).detach() for s in (2, 3))
    mask = torch.arange(keys) > keys - 1 - window
    sdpa = torch.nn.functional.scaled_dot_product_attention
    structure = fovea.Window(window - 1, 0)
    ours = lambda: (fovea.attend(q, k, v, structure=structure, query_offset=keys - 1),)
    cut = lambda x: x[:, :, keys - window :]
    return [
        Row("decode, window 256/4x8x1x4096", "SDPA with a mask", ours, lambda: (sdpa(q, k, v, mask.view(1, 1, 1, keys), enable_gqa=True),)),
        Row("decode, window 256/4x8x1x4096", "SDPA, keys cut", ours, lambda: (sdpa(q, cut(k), cut(v), enable_gqa=True),)),
    ]


def paged_rows() -> list[Row]:
    """A step over keys in pages, beside the same step over the same keys in rows: [B, H, S, E], and [B, S, H, E], which pages have too."""
    items, heads, groups, keys, width = 4, 8, 2, 4096, 64
    q = normal(items, heads, 1, width, seed=1).detach()
    k, v = (normal(items, groups, keys, width, seed=s).detach() for s in (2, 3))
    beside = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (k, v)]
    rows = []
    for size in (16, 64, 256):
        pages = items * keys // size
        table = torch.randperm(pages, generator=torch.Generator().manual_seed(4)).view(items, -1)
        pools = []
        for x in (k, v):
            pool = torch.empty(pages, size, groups, width)
            pool[table.flatten()] = x.transpose(1, 2).reshape(pages, size, groups, width)
            pools.append(pool)
        structure = fovea.Paged(table, torch.full((items,), keys))
        ours = lambda p=pools, s=structure: (fovea.attend(q, *p, structure=s),)
        rows.append(Row(f"decode, pages of {size}/4x8x1x4096", "Fovea [B, H, S, E]", ours, lambda: (fovea.attend(q, k, v),)))
        rows.append(Row(f"decode, pages of {size}/4x8x1x4096", "Fovea [B, S, H, E]", ours, lambda: (fovea.attend(q, *beside),)))
    return rows


def transformers_rows() -> list[Row]:
    """Models of transformers with attn_implementation="fovea", beside "sdpa" and "eager": the logits of a prompt, and a step after it.

    The same weights on every side, drawn at random; two layers of width 256.
    """
    transformers = have("transformers")
    if transformers is None:
        return []
    transformers.logging.set_verbosity_error()
    fovea.hf.register()
    sizes = dict(vocab_size=256, hidden_size=256, intermediate_size=256, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=2,
                 head_dim=64, max_position_embeddings=4096)
    models = {
        "llama": (transformers.LlamaConfig(**sizes), 1024, ("sdpa", "eager")),
        "mistral-window-256": (transformers.MistralConfig(**sizes, sliding_window=256), 1024, ("sdpa", "eager")),
        "gemma2-window-256": (transformers.Gemma2Config(**sizes, sliding_window=256, attn_logit_softcapping=50.0), 1024, ("eager",)),
    }
    rows = []
    for name, (config, length, peers) in models.items():
        torch.manual_seed(3)
        made = {}
        for implementation in ("fovea", *peers):
            model = transformers.AutoModelForCausalLM.from_config(copy.deepcopy(config), attn_implementation=implementation).eval()
            if made:
                model.load_state_dict(made["fovea"].state_dict())
            made[implementation] = model
        for implementation, model in made.items():  # a config that two of them share would make them one
            assert model.config._attn_implementation == implementation
        ids = torch.randint(256, (2, length), generator=torch.Generator().manual_seed(5))
        padded = torch.ones_like(ids)
        padded[1, : length // 4] = 0  # on the left, as a batch for generation is

        def prompt(model, mask=None, ids=ids):
            with torch.no_grad():
                logits = model(ids, attention_mask=mask, use_cache=False, logits_to_keep=1).logits
            return (logits,)

        def step(model, ids=ids):
            cache = transformers.DynamicCache(config=model.config)
            with torch.no_grad():
                model(ids, past_key_values=cache, logits_to_keep=1)

            def run():
                with torch.no_grad():
                    logits = model(ids[:, :1], past_key_values=cache).logits
                cache.crop(-1)
                return (logits,)

            return run

        for peer in peers:
            ours, theirs = made["fovea"], made[peer]
            rows.append(Row(f"{name}/2x{length}/prompt", f"transformers {peer}", lambda m=ours, f=prompt: f(m), lambda m=theirs, f=prompt: f(m), 1e-3))
            rows.append(Row(f"{name}/2x{length}/prompt, padded left", f"transformers {peer}",
                            lambda m=ours, f=prompt, p=padded: f(m, p), lambda m=theirs, f=prompt, p=padded: f(m, p), 1e-3))
            if name == "llama":
                rows.append(Row(f"{name}/2x{length}/a step under a cache", f"transformers {peer}", step(ours), step(theirs), 1e-3))
    return rows
