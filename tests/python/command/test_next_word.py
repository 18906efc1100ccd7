"""What `fovea export` writes of a run of next-word is a Llama of `transformers`, which looks where ours looks and expects the same words."""

import json
import os
import subprocess

import pytest

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

COMMAND = os.environ.get("FOVEA_COMMAND")
pytestmark = pytest.mark.skipif(not COMMAND, reason="FOVEA_COMMAND: not set; run through ctest")


def fovea(*arguments, text=None):
    outcome = subprocess.run([COMMAND, *map(str, arguments)], input=text, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


@pytest.mark.parametrize("settings", [["tie=true"], ["tie=false", "key_heads=4"], ["heads=2", "key_heads=1"]])
def test_our_weights_load_in_transformers(tmp_path, settings):
    run, folder, page = tmp_path / "run", tmp_path / "folder", tmp_path / "page.json"
    chosen = [part for setting in settings for part in ("--set", setting)]
    fovea("train", "next-word", "--set", "sentences=400", *chosen, "--epochs", 2, "--threads", 1, "--out", run)
    fovea("export", run, "--out", folder)
    model, report = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, attn_implementation="eager")
    assert isinstance(model, transformers.LlamaForCausalLM)
    assert not report["missing_keys"] and not report["unexpected_keys"] and not report["mismatched_keys"]
    pieces = json.loads((folder / "tokens.json").read_text())
    assert len(pieces) == model.config.vocab_size
    text = "she waited quietly for the"
    fovea("explain", run, "--input", "-", "--out", page, text=text + "\n")
    blank, whole = json.loads(page.read_text())
    with torch.no_grad():
        theirs = model.eval()(torch.tensor([[model.config.bos_token_id] + [pieces.index(word) for word in text.split()]]), output_attentions=True)
    assert len(whole["maps"]) == sum(layer.size(1) for layer in theirs.attentions)
    for one in whole["maps"]:
        ours = torch.tensor(one["dense"]).view(len(whole["queries"]), -1)
        # A wrong order of the numbers that are turned would change these by more than 0.1.
        assert (ours - theirs.attentions[one.get("layer", 0)][0, one.get("head", 0)]).abs().max() < 1e-5
    expected = theirs.logits[0, -1].softmax(0)
    bars = blank["plots"][0]["curves"][0]
    for name, probability in zip(bars["names"], bars["y"], strict=True):
        assert abs(expected[pieces.index(name)].item() - probability) < 1e-5
