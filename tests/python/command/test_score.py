"""`fovea score` prints what the sacrebleu package prints, on the outputs of five systems of falling quality."""

import json
import os
import random
import subprocess

import pytest

sacrebleu = pytest.importorskip("sacrebleu")

COMMAND = os.environ.get("FOVEA_COMMAND")
pytestmark = pytest.mark.skipif(not COMMAND, reason="FOVEA_COMMAND: not set; run through ctest")

REFERENCES = [
    "Ein Mann mit einem orangefarbenen Hut, der etwas anstarrt.",
    "Fünf Leute in Winterjacken und mit Helmen stehen im Schnee – Schneemobile im Hintergrund!",
    'Er sagte: "Das kostet 1,234.50 € (oder mehr) & nicht weniger," und ging…',
    "Leute Reparieren das Dach eines Hauses; it's a 3-storey house.",
    "Ein Boston Terrier läuft über saftig-grünes Gras vor einem weißen Zaun.",
    "ΟΔΥΣΣΕΥΣ liest 東京の新聞 am 24. Dezember.",
    "„Wirklich?“, fragte sie – «oui», antwortete er; l'été 2016 s'achève.",
    "a",
    "",
    "Zwei Hunde spielen im Park .  Sie sind   schnell.",
]


def output(system):
    """A system's output: the reference, with more words dropped, doubled, swapped and re-cased the larger `system` is."""
    draw = random.Random(system)
    lines = []
    for line in REFERENCES * 3:
        words = line.split(" ")
        for i in range(len(words)):
            if draw.random() < 0.08 * system:
                words[i] = draw.choice(["", words[i] + " " + words[i], words[i].upper(), "Hund", draw.choice(words)])
        lines.append(" ".join(words))
    return lines


@pytest.fixture(params=range(5))
def files(request, tmp_path):
    hypothesis, references = output(request.param), REFERENCES * 3
    (tmp_path / "hypothesis").write_text("".join(line + "\n" for line in hypothesis))
    (tmp_path / "reference").write_text("".join(line + "\n" for line in references))
    return tmp_path, hypothesis, references


def score(folder, metric, *options):
    command = [COMMAND, "score", metric, "--hypothesis", "hypothesis", "--reference", "reference", *options]
    outcome = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
    return json.loads(outcome.stdout) if "--json" in options else outcome.stdout


def without_version(signature):
    return str(signature).rsplit("|", 1)[0]


@pytest.mark.parametrize(("tokenize", "lowercase"), [("13a", False), ("intl", True)])
def test_bleu_of_five_systems_to_the_last_printed_digit(files, tokenize, lowercase):
    folder, hypothesis, references = files
    metric = sacrebleu.BLEU(tokenize=tokenize, lowercase=lowercase)
    expected = metric.corpus_score(hypothesis, [references])
    text = score(folder, "bleu", "--tokenize", tokenize, *(["--lowercase"] if lowercase else []))
    assert text.startswith("BLEU|" + without_version(metric.get_signature()))
    precisions = "/".join(f"{p:.1f}" for p in expected.precisions)
    assert f" = {expected.score:.2f}  {precisions} (BP = {expected.bp:.3f} ratio = {expected.ratio:.3f}" in text
    assert f"hyp_len = {expected.sys_len} ref_len = {expected.ref_len}" in text


@pytest.mark.parametrize("files", [3], indirect=True)
@pytest.mark.parametrize("smooth", ["floor", "add-k", "none"])
def test_smoothing(files, smooth):
    folder, hypothesis, references = files
    expected = sacrebleu.BLEU(tokenize="none", smooth_method=smooth).corpus_score(hypothesis, [references])
    assert score(folder, "bleu", "--tokenize", "none", "--smooth", smooth, "--json")["score"] == pytest.approx(expected.score, abs=1e-9)


@pytest.mark.parametrize("files", [1, 4], indirect=True)
@pytest.mark.parametrize("word_order", [0, 2])
def test_chrf(files, word_order):
    folder, hypothesis, references = files
    metric = sacrebleu.CHRF(word_order=word_order)
    expected = metric.corpus_score(hypothesis, [references])
    text = score(folder, "chrf", "--word-order", str(word_order))
    assert f" = {expected.score:.2f}" in text
    assert without_version(metric.get_signature()) in text


@pytest.mark.parametrize("files", [2], indirect=True)
def test_the_confidence_interval_is_of_the_same_size(files):
    # Resamples are drawn by another generator: the interval agrees to its own noise.
    folder, hypothesis, references = files
    expected = sacrebleu.BLEU().corpus_score(hypothesis, [references], n_bootstrap=1000)
    ours = score(folder, "bleu", "--bootstrap", "1000", "--json")
    assert ours["mean"] == pytest.approx(expected._mean, abs=max(0.5, 0.15 * expected._ci))
    assert ours["half_width"] == pytest.approx(expected._ci, abs=max(0.3, 0.15 * expected._ci))
