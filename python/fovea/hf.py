"""Fovea inside Hugging Face's ``transformers``.

One line, and every model that goes through ``transformers``' attention interface can ask for it::

    fovea.hf.register()
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="fovea")

What a model masks stays a structure: causality, sliding windows, chunks, packed sequences and padding are never written out as a queries x
keys mask. Soft caps, attention sinks, T5's bias, grouped heads, dynamic and static caches are taken as they come.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any, Callable, Dict, FrozenSet, Optional, Tuple

import torch
from torch import Tensor

from . import _check
from ._attend import attend
from ._hf_masks import Mask, Offset, masks
from ._normalisers import Normaliser, Softmax
from ._scores import Dot, Score
from ._structures import Causal, Dense, Keep, Structure
from .nn._chosen import weights_with_gradient

__all__ = ["register"]

_OLDEST = "5.4"  # of transformers
_SINKS = "normaliser: {!r}, expected none for a model with attention sinks, which are softmax's"
#: What models hand on that changes no weight: what the mask holds already, and what is for kernels of other implementations.
_HARMLESS = frozenset(
    "sliding_window position_ids output_attentions output_hidden_states use_cache cache_position position_embeddings deterministic "
    "cu_seq_lens_q cu_seq_lens_k max_length_q max_length_k num_items_in_batch output_router_logits seq_idx".split()
)


def register(name: str = "fovea", *, normaliser: Optional[Normaliser] = None) -> None:
    """Makes ``attn_implementation=name`` known to ``transformers``.

    Args:
        name: what a model asks for.
        normaliser: in the place of softmax, for example ``fovea.Entmax(1.5)``; a model with attention sinks then refuses.

    ``model(..., output_attentions=True)`` works, and costs the weights that it returns.

    Example::

        >>> fovea.hf.register()
        >>> config = transformers.LlamaConfig(
        ...     vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, attn_implementation="fovea"
        ... )
        >>> model = transformers.AutoModelForCausalLM.from_config(config)
        >>> tokens = model.generate(torch.tensor([[1, 2, 3]]), max_new_tokens=4, do_sample=False, pad_token_id=0)
    """
    if normaliser is not None:
        _check.instance("normaliser", normaliser, Normaliser, "Entmax()")
    transformers, masking = _modules()
    transformers.AttentionInterface.register(name, _attention(normaliser))
    masking.AttentionMaskInterface.register(name, masks(masking))


def _modules() -> Tuple[Any, Any]:
    """``transformers`` and its masks; those before 5.4 asked for masks by the positions of a cache, which nothing here reads."""
    try:
        transformers = importlib.import_module("transformers")
    except ImportError as error:
        raise ImportError(f"fovea.hf.register: needs transformers, version {_OLDEST} or newer ({error})") from error
    try:
        masking = importlib.import_module("transformers.masking_utils")
        if "q_length" in inspect.signature(masking.sdpa_mask).parameters:
            return transformers, masking
    except (ImportError, AttributeError):
        pass
    raise ImportError(f"fovea.hf.register: transformers {transformers.__version__} is installed, expected {_OLDEST} or newer")


def _attention(normaliser: Optional[Normaliser]) -> Callable[..., Tuple[Tensor, Optional[Tensor]]]:
    """The function that a model of ``transformers`` calls with its heads."""
    given = normaliser

    def attention(
        module: torch.nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Any,
        dropout: float = 0.0,
        scaling: Optional[float] = None,
        is_causal: Optional[bool] = None,
        position_bias: Optional[Tensor] = None,
        softcap: Optional[float] = None,
        s_aux: Optional[Tensor] = None,
        sinks: Optional[Tensor] = None,
        indices: Optional[Tensor] = None,
        **keywords: Any,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        if not _HARMLESS.issuperset(keywords):
            _refuse_unknown(type(module), keywords)
        score: Score = Dot(scaling)
        if softcap is not None:
            score = score.soft_cap(softcap)
        if position_bias is not None:
            score = score.bias(position_bias[..., : key.shape[2]].to(query.dtype))
        normaliser = _with_sinks(given, s_aux, query)
        if sinks is not None and not isinstance(normaliser, Softmax):
            raise ValueError(_SINKS.format(normaliser))
        structure: Structure = Dense()
        offset: Offset = 0
        if isinstance(attention_mask, Mask):
            if attention_mask.shape[-1] != key.shape[2]:
                name, sizes = type(module).__name__, (key.shape[2], attention_mask.shape[-1])
                raise NotImplementedError(f"{name}: {sizes[0]} keys beside a mask of {sizes[1]}, expected as many; use attn_implementation='eager'")
            structure, offset = attention_mask.structure(), attention_mask.query_offset()
        elif attention_mask is None:
            causal = bool(getattr(module, "is_causal", True)) if is_causal is None else is_causal
            structure = Causal() if causal and query.shape[2] > 1 else structure
        elif attention_mask.dtype == torch.bool:
            structure = Keep(attention_mask)
        else:
            score = score.bias(attention_mask.to(query.dtype))
        if indices is not None:  # [B, L, k], the keys that an indexer has chosen for each query
            chosen = torch.zeros(*indices.shape[:2], key.shape[2], dtype=torch.bool, device=query.device).scatter(-1, indices.long(), True)
            structure = structure & Keep(chosen.unsqueeze(1))
        out = attend(query, key, value, score, normaliser, structure, dropout_p=dropout, query_offset=offset, return_lse=sinks is not None)
        weights = weights_with_gradient(query, key, score, normaliser, structure, offset) if _wants_weights(keywords) else None
        if sinks is not None:  # [B, H, L, 1], one for each query: the share of weight that it leaves
            assert isinstance(out, tuple)
            out, left = out[0], torch.sigmoid(out[1].unsqueeze(-1) - sinks).to(query.dtype)
            out, weights = out * left, None if weights is None else weights * left
        assert isinstance(out, Tensor)
        return out.transpose(1, 2).contiguous(), weights

    return attention


def _with_sinks(normaliser: Optional[Normaliser], sinks: Optional[Tensor], query: Tensor) -> Normaliser:
    if sinks is None:
        return Softmax() if normaliser is None else normaliser
    if normaliser is not None:
        raise ValueError(_SINKS.format(normaliser))
    return Softmax(sinks.to(torch.float64 if query.dtype == torch.float64 else torch.float32))


def _own_formula(module: str) -> FrozenSet[str]:
    """The arguments of a model's own ``"eager"`` attention."""
    known = sys.modules.get(module)
    eager = getattr(known, "eager_attention_forward", None)
    return frozenset(() if eager is None else inspect.signature(eager).parameters)


setattr(_own_formula, "_dynamo_marked_constant", True)  # as torch.compiler.assume_constant_result does, which would take seconds to import

def _refuse_unknown(kind: type, keywords: Dict[str, Any]) -> None:
    """Raises where a model hands on what its own attention, or that of ``"sdpa"``, computes with, and this one does not know."""
    own = _own_formula(kind.__module__)
    for name in keywords.keys() - _HARMLESS:
        if keywords[name] is not None and (name in own or name == "block_indices"):  # of MiniMax-M3: for "eager" they are in the mask
            raise NotImplementedError(f"{kind.__name__}: gives {name}, which fovea.hf does not know; use attn_implementation='eager'")


def _wants_weights(keywords: Dict[str, Any]) -> bool:
    """Whether the model's caller asked for weights: by an argument that came through, or of ``transformers``' collector."""
    if keywords.get("output_attentions"):
        return True
    if torch.compiler.is_compiling():
        return False
    try:
        collector = importlib.import_module("transformers.utils.output_capturing")._active_collector.get()
    except (ImportError, AttributeError, LookupError):
        return False
    return any(name.endswith("attentions") for name in collector or ())
