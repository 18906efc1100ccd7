"""Options that the lectures ask for change what they name. FOVEA_COMMAND is the command.

Each trains for one epoch on a few lines, then its weights or its page are read.
"""

import json
import os
import struct
import subprocess
import tempfile
import unittest

FOVEA = os.environ["FOVEA_COMMAND"]
NAMES = [("dog", "chien"), ("cat", "chat"), ("book", "livre"), ("table", "tableau")]
VERBS = [("sees", "voit"), ("likes", "aime"), ("finds", "trouve")]
PAIRS = "".join(f"the {a[0]} {v[0]} the {b[0]} .\tle {a[1]} {v[1]} le {b[1]} .\n" for a in NAMES for v in VERBS for b in NAMES)
TEXTS = "".join(f"{label}\tthe {word} was {said} today\n" for label, said in (("good", "fine"), ("bad", "slow")) for word in ("bread", "soup", "room", "train", "coffee")) * 2


class LectureOptions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        for name, text in (("pairs.tsv", PAIRS), ("texts.tsv", TEXTS)):
            with open(os.path.join(cls.folder, name), "w", encoding="utf-8") as file:
                file.write(text)

    def command(self, *arguments):
        ran = subprocess.run([FOVEA, *arguments], capture_output=True, text=True, check=False, cwd=self.folder, env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def trained(self, system, *settings, data=""):
        """The folder of a run."""
        run = os.path.join(self.folder, "-".join([system, *settings]).replace("=", "-"))
        sets = [part for setting in settings for part in ("--set", setting)]
        self.command("train", system, "--epochs", "1", "--quiet", "--out", run, *sets, *(["--data", data] if data else []))
        return run

    def shapes(self, run):
        with open(os.path.join(run, "model.safetensors"), "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        return {name: tensor["shape"] for name, tensor in header.items() if name != "__metadata__"}

    def pictures(self, run):
        self.command("explain", run, "--out", run + ".json")
        with open(run + ".json", encoding="utf-8") as file:
            read = json.load(file)
        return read if isinstance(read, list) else [read]

    def test_luong_without_w_c_and_with_a_rectangular_w(self):
        usual = self.shapes(self.trained("luong", "width=16", "score=general", data="pairs.tsv"))
        joined = self.shapes(self.trained("luong", "width=16", "score=general", "join=concatenation", "source_width=24", data="pairs.tsv"))
        self.assertEqual((usual["general"], usual["combine.weight"]), ([16, 16], [16, 32]))
        self.assertEqual((joined["general"], joined.get("combine.weight")), ([16, 24], None))
        self.assertEqual(joined["output.weight"][1], 16 + 24, "[a; s] goes to the words as it is")

    def test_the_width_of_the_additive_score_is_free(self):
        shapes = self.shapes(self.trained("luong", "width=16", "score=concat", "attention=7", data="pairs.tsv"))
        self.assertEqual((shapes["concat"], shapes["concat_key.weight"]), ([7], [7, 16]))

    def test_a_decoding_step_in_tables(self):
        step = self.pictures(self.trained("bahdanau", "width=16", data="pairs.tsv"))[1]
        self.assertEqual(step["title"], "One decoding step, number by number")
        look, word = step["tables"][:2]
        self.assertEqual(look["columns"][1:4], ["1 score e", "2 weight a", "3 a × h (first of its numbers)"])
        self.assertAlmostEqual(sum(float(row[2]) for row in look["rows"]), 1, delta=0.01)
        self.assertEqual(word["title"], "Then: sum and state side by side, and a word")

    def test_one_average_and_a_convolution_beside_several_heads(self):
        for mix in ("average", "convolution"):
            first = self.pictures(self.trained("multi-head", f"mix={mix}"))[0]
            words = len(first["keys"])
            for weight in first["maps"][0]["dense"]:
                self.assertAlmostEqual(weight, 1 / words, places=5)

    def test_a_graph_with_even_weights(self):
        links = self.pictures(self.trained("gat", "normaliser=uniform"))[0]["maps"][0]["links"]
        of_node = [link[2] for link in links if link[0] == links[0][0]]
        for weight in of_node:
            self.assertAlmostEqual(weight, 1 / len(of_node), places=5)

    def test_the_structure_of_the_general_form(self):
        picture = self.pictures(self.trained("general", "structure=causal"))[0]
        keys, dense = len(picture["keys"]), picture["maps"][0]["dense"]
        for query in range(len(picture["queries"])):
            self.assertEqual([w for w in dense[query * keys + query + 1:(query + 1) * keys] if w], [])

    def test_phi_may_be_a_gru(self):
        self.assertIn("gru.rnn.weight_hh_l0", self.shapes(self.trained("word2vec", "model=gru", data="texts.tsv")))

    def test_fixed_attention_by_sigmoid_or_tanh(self):
        said = [self.pictures(self.trained("fixed-attention", "score=mlp", f"activation={g}", data="texts.tsv"))[0]["maps"] for g in ("tanh", "sigmoid")]
        self.assertNotEqual(*said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
