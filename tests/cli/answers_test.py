"""What every system answers and draws: `predict --json` is one object on each line with an answer, `explain --out x.svg` one whole picture."""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(os.environ["FOVEA_SOURCE_DIR"]) / "tests/faults"))
from small_runs import every  # noqa: E402

COMMAND = Path(os.environ["FOVEA_COMMAND"])
PART = os.environ.get("FOVEA_PART", "0/1")  # of the systems, to share them among tests

SENTENCES = "w1 w2 good w3 .\nw4 bad w5 .\n"
STORY = "1 Mary went to the kitchen.\n2 Where is Mary?\t\n3 John went to the garden.\n4 Where is John?\t\n"
QUESTIONS = "".join(json.dumps({"picture": "picture.png", "question": question}) + "\n" for question in ("what colour is it", "is it red"))
# Two items that each system takes.
INPUTS = {
    "nadaraya-watson": "x\n1\n2\n",
    "pooling": "bag,f0,f1\na,0.1,0.2\na,1,1\nb,0,0\n",
    "deep-sets": "set\nset\n",
    "set-outlier": "set\nset\n",
    "mil": "bag,f0,f1,f2\na,0.1,0.2,0.3\na,1,1,1\nb,0,0,0\n",
    "word2vec": "w1\nw1 w2 w3\n",
    "word-sum": SENTENCES,
    "fixed-attention": SENTENCES,
    "general": None,
    "gradient-masking": "0\n1\n",
    "document-attention": "food\tw1 w2\nservice\tw3\n",
    "hierarchical": SENTENCES,
    "squeeze-excitation": None,
    "gat": "0\n1\n",
    "memory-network": STORY,
    "show-attend-tell": "picture.png\nset/one.png\n",
    "stacked-attention": QUESTIONS,
    "dnc": "101110 010111 x2\n010000 x1\n",
    "ntm": "101110 010111\n010000\n",
    "mixture-of-experts": "x\n1\n2\n",
    "alignment": "w1 w2 ||| w2 w1\nw3 ||| w3\n",
    "scaled-dot-product": "because it was too hungry the child did not like the square\nthe dog slept because it was tired\n",
    "multi-head": "dog-a sees cat-o\nhen-o fox-a hears\n",
    "cost": "1000 1000\n512 64 3\n",
}
for translation in ("seq2seq", "bahdanau", "luong", "gnmt", "convs2s", "beam-search", "transformer", "dynamic-convolution", "next-word"):
    INPUTS[translation] = SENTENCES


def picture(path):
    """A grey picture of 28 x 28."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes((7 * i * j) % 256 for j in range(28)) for i in range(28))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def fovea(*arguments, **more):
    return subprocess.run([COMMAND, *map(str, arguments)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, cwd=Answers.folder, **more)


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="fovea-answers-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        which, parts = map(int, PART.split("/"))
        cls.systems = every(COMMAND)[which::parts]
        (cls.folder / "set").mkdir()
        for name in ("set/one.png", "set/two.png", "picture.png"):
            picture(cls.folder / name)
        for small in cls.systems:
            done = fovea(*small.train(cls.folder / "data", epochs=1), "--quiet", "--out", small.system)
            assert done.returncode == 0, f"{small.system}: {done.stderr}"

    def test_every_system_answers_in_json(self):
        for small in self.systems:
            text = INPUTS.get(small.system)
            if text is None:
                continue  # what it takes follows from its training: its own tests ask it
            with self.subTest(system=small.system):
                plain = fovea("predict", small.system, input=text)
                done = fovea("predict", small.system, "--json", input=text)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(plain.returncode, 0, plain.stderr)
                answers = [json.loads(line) for line in done.stdout.splitlines()]
                self.assertEqual(len(answers), 2, done.stdout)
                for one in answers:
                    self.assertIsInstance(one["line"], int)
                    self.assertIn("answer", one)
                    if isinstance(one.get("probabilities"), dict):
                        self.assertAlmostEqual(sum(one["probabilities"].values()), 1, places=4)
                        self.assertEqual(one["probability"], max(one["probabilities"].values()))
                        self.assertEqual(one["probability"], one["probabilities"][one["answer"]])
                        self.assertIn(one["answer"], plain.stdout)

    def test_a_line_without_an_answer_says_why_in_its_place(self):
        done = fovea("predict", self.systems[0].system, "--json", input="\xff\n")
        for one in map(json.loads, done.stdout.splitlines()):
            self.assertTrue("answer" in one or "error" in one, one)

    def test_the_name_of_a_folder_is_no_text(self):
        empty = self.folder / "empty"
        empty.mkdir()
        for small in self.systems:
            with self.subTest(system=small.system):
                done = fovea("predict", small.system, "--input", empty)
                self.assertNotEqual(done.returncode, 0, done.stdout)
                self.assertIn("empty", done.stderr)

    def test_every_system_draws_one_picture_as_svg(self):
        for small in self.systems:
            with self.subTest(system=small.system):
                out = self.folder / f"{small.system}.svg"
                done = fovea("explain", small.system, "--out", out)
                self.assertEqual(done.returncode, 0, done.stderr)
                root = ElementTree.parse(out).getroot()
                self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
                shapes = [node for node in root.iter() if node.tag.split("}")[1] in ("rect", "path", "circle", "image", "text")]
                self.assertGreater(len(shapes), 5, "an empty picture")
                width, height = float(root.get("width")), float(root.get("height"))
                self.assertTrue(100 < width <= 2400 and 60 < height <= 6000, (width, height))
                self.assertNotIn("nan", out.read_text())


if __name__ == "__main__":
    unittest.main()
