"""A `transformers` that asks for masks in another way is refused by its version, when it is registered."""

import sys
from types import ModuleType

import pytest

import fovea


def by_cache_position(batch_size, cache_position, kv_length):
    """What a mask was made from before 5.4."""


@pytest.mark.parametrize("masks", [None, {}, {"sdpa_mask": by_cache_position}], ids=["4.52", "4.53", "5.3"])
def test_an_older_one_is_refused(masks, monkeypatch):
    package = ModuleType("transformers")
    package.__version__ = "4.57.6"
    masking = None
    if masks is not None:
        masking = ModuleType("transformers.masking_utils")
        vars(masking).update(masks)
    monkeypatch.setitem(sys.modules, "transformers", package)
    monkeypatch.setitem(sys.modules, "transformers.masking_utils", masking)
    with pytest.raises(ImportError) as error:
        fovea.hf.register()
    assert str(error.value) == "fovea.hf.register: transformers 4.57.6 is installed, expected 5.4 or newer"


def test_where_there_is_none_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match="fovea.hf.register: needs transformers, version 5.4 or newer"):
        fovea.hf.register()
