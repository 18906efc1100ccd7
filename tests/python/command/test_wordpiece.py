"""WordPiece gives the numbers that the `tokenizers` package gives: on every line of IMDB, and on texts nobody would write."""

import gzip
import json
import os
import pathlib
import random
import subprocess

import pytest

tokenizers = pytest.importorskip("tokenizers")
from tokenizers.implementations import BertWordPieceTokenizer  # noqa: E402

PROGRAM = os.environ.get("FOVEA_WORDPIECE")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="FOVEA_WORDPIECE: not set; run through ctest")

ROOT = pathlib.Path(__file__).resolve().parents[3]
DATA = pathlib.Path(os.environ.get("FOVEA_DATA", ROOT.parent / "shared/data"))
REAL = DATA / "pretrained/vocab/bert_uncased_en_vocab.txt"
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# First and last code points of scripts, signs, marks and characters that have no sign at all.
BLOCKS = [(0x20, 0x7E), (0x20, 0x7E), (0, 0x1F), (0x7F, 0x17F), (0x180, 0x2AF), (0x300, 0x36F), (0x370, 0x52F), (0x531, 0x5F4),
          (0x600, 0x77F), (0x7C0, 0x8FF), (0x900, 0xDFF), (0xE00, 0xFFF), (0x1000, 0x13FF), (0x1680, 0x18AF), (0x1AB0, 0x1CFF),
          (0x1DC0, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x2BFF), (0x2C00, 0x2E7F), (0x3000, 0x33FF), (0x4E00, 0x4EFF),
          (0xA640, 0xABFF), (0xAC00, 0xAD00), (0xD750, 0xD7FF), (0xE000, 0xE010), (0xF900, 0xFFFF), (0x10000, 0x11FFF),
          (0x16E00, 0x16FFF), (0x1D100, 0x1D1FF), (0x1E000, 0x1EFFF), (0x1F000, 0x1FAFF), (0x20000, 0x20010),
          (0x2F800, 0x2FA1F), (0xE0000, 0xE01FF), (0x10FFF0, 0x10FFFF)]


def hostile(count):
    draw = random.Random(20)

    def character():
        return chr(draw.randint(*draw.choice(BLOCKS)))

    def stretch():
        kind = draw.randrange(8)
        if kind == 0:  # a word with marks on its letters
            return "".join(draw.choice("aeiouAEIOUñÅß") + chr(draw.randint(0x300, 0x36F)) * draw.randrange(3) for _ in range(5))
        if kind == 1:
            return draw.choice(SPECIALS + ["[mask]", "[MASK", "##", "##ing", "[[CLS]]"])
        if kind == 2:  # a family, joined without a sign
            return "\u200d".join(chr(draw.randint(0x1F466, 0x1F469)) for _ in range(3)) + "\ufe0f"
        if kind == 3:
            return draw.choice(["unaffable", "Don't", "re-read", "3,141.59", "naïve", "ΣΊΣΥΦΟΣ", "İstanbul", "ﬁn", "ǅ", "Ω", "각"])
        return "".join(character() for _ in range(draw.randrange(9)))

    texts = ["", " ", "\0", "a" * 10_000, "é" * 10_000, "a" * 100, "a" * 101, "字" * 300, "\u0301" * 500, "[MASK]" * 40]
    while len(texts) < count:
        texts.append(draw.choice(["", " "]).join(stretch() for _ in range(draw.randrange(12))))
    return texts


def vocabulary_of(texts):
    """Pieces that occur: characters alone and inside a word, as they are and normalised, and runs of a few of them."""
    draw = random.Random(3)
    normalise = tokenizers.normalizers.BertNormalizer().normalize_str
    pieces = {}
    for text in texts:
        for form in (text, normalise(text)):
            for word in form.split():
                for _ in range(2):
                    start = draw.randrange(len(word))
                    piece = word[start : start + draw.choice([1, 1, 1, 2, 3, 6])]
                    pieces[piece] = pieces["##" + piece] = None
    return SPECIALS + [piece for piece in pieces if piece == piece.strip() and piece.isprintable() and piece not in SPECIALS]


def ours(file, texts):
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    outcome = subprocess.run([PROGRAM, str(file)], input=lines, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
    return [[int(number) for number in line.split()] for line in outcome.stdout.splitlines()]


def theirs(tokenizer, texts):
    ids = []
    for start in range(0, len(texts), 1000):  # an encoding takes much more memory than its numbers
        ids += [encoding.ids for encoding in tokenizer.encode_batch(texts[start : start + 1000], add_special_tokens=False)]
    return ids


def check_equal(file, tokenizer, texts):
    expected = theirs(tokenizer, texts)
    got = ours(file, texts)
    assert len(got) == len(texts)
    wrong = [i for i in range(len(texts)) if got[i] != expected[i]]
    assert not wrong, (len(wrong), texts[wrong[0]], got[wrong[0]], expected[wrong[0]])
    return expected


@pytest.mark.parametrize("lowercase", [True, False])
def test_equal_on_hostile_texts(tmp_path, lowercase):
    texts = hostile(10_000)
    pieces = vocabulary_of(texts)
    tokenizer = BertWordPieceTokenizer({piece: i for i, piece in enumerate(pieces)}, lowercase=lowercase)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    known = check_equal(tmp_path / "tokenizer.json", tokenizer, texts)
    unknown = sum(ids.count(1) for ids in known) / sum(map(len, known))
    assert unknown < 0.5, "most words must have pieces, or nothing is compared"


@pytest.mark.skipif(not REAL.exists(), reason=f"{REAL}: not there")
def test_equal_on_hostile_texts_with_the_vocabulary_of_bert():
    check_equal(REAL, BertWordPieceTokenizer(str(REAL), lowercase=True), hostile(10_000))


@pytest.mark.skipif(not REAL.exists(), reason=f"{REAL}: not there")
@pytest.mark.parametrize("part", ["train", "test"])
def test_equal_on_every_line_of_imdb(part):
    with gzip.open(DATA / f"imdb/{part}.tsv.gz", "rt", encoding="utf-8", newline="\n") as file:
        lines = file.read().split("\n")[:-1]
    assert len(lines) == 25_000
    check_equal(REAL, BertWordPieceTokenizer(str(REAL), lowercase=True), lines)
