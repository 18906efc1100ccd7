"""What a reader of a figure must know is said beside it: test items that are training items too, classes that are not even,
and what of a user's own files was left out or repeated."""

import json
import os
import random
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

COMMAND = os.environ["FOVEA_COMMAND"]
WORDS = {"spring": "bud seed rain nest lamb", "autumn": "leaf mist corn fire wine"}


def lines(count):
    draw = random.Random(5)
    return [(season, " ".join(draw.sample(words.split(), 4)) + f" {i}") for i in range(count) for season, words in WORDS.items()]


class OwnFigures(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="fovea-figures-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def command(self, *arguments, **others):
        done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, "OMP_NUM_THREADS": "1"}, **others)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def write(self, name, text):
        (self.folder / name).parent.mkdir(exist_ok=True)
        (self.folder / name).write_text(text)

    def tsv(self, name, rows):
        self.write(name, "".join(f"{label}\t{text}\n" for label, text in rows))

    def trained(self, system, *arguments, epochs=1):
        """The report, and what was said of the file."""
        done = self.command("train", system, "--out", "run", "--overwrite", "--epochs", epochs, "--json", *arguments)
        return json.loads(done.stdout), re.findall("^read (.*)$", done.stderr, re.MULTILINE)

    def test_test_items_that_are_training_items_too_are_counted(self):
        rows = lines(30)
        for part, some in {"train": rows[:50], "test": rows[40:60], "dev": rows[:4]}.items():
            self.tsv(f"parts/{part}.tsv", some)
        note = "10 of these 20 items are in the training split too"
        self.assertIn(note, self.trained("word-sum", "--data", "parts")[0]["notes"])
        self.assertIn(note, json.loads(self.command("evaluate", "run", "--json").stdout)["notes"])
        self.assertNotIn("in the training split", self.command("evaluate", "run", "--split", "train").stdout)
        self.command("explain", "run", "--out", "page.html")
        self.assertIn(f"Note: {note}.", (self.folder / "page.html").read_text())
        self.assertIn(note, self.trained("word-sum", "--data", "parts", "--seeds", 2)[0]["notes"], "also beside a mean")

    def test_generated_items_too(self):
        report, _ = self.trained("word-sum")
        self.command("generate", "word-sum", "--out", "made")
        train, test = ([json.loads(line)["text"] for line in (self.folder / f"made/{part}.jsonl").read_text().splitlines()] for part in ("train", "test"))
        again = sum(text in set(train) for text in test)
        self.assertGreater(again, 0)
        self.assertEqual(report["notes"], [f"{again} of these {len(test)} items are in the training split too"])

    def test_an_accuracy_stands_beside_that_of_the_most_frequent_class(self):
        rows = lines(100)
        self.tsv("even.tsv", rows)
        self.assertNotIn("notes", self.trained("word-sum", "--data", "even.tsv", epochs=8)[0])
        self.tsv("uneven.tsv", [row for i, row in enumerate(rows) if row[0] == "spring" or i % 20 == 1] + [("winter", "ice")])
        report, said = self.trained("word-sum", "--data", "uneven.tsv")
        self.assertEqual(report["items"], 11)
        self.assertIn(f"accuracy of always answering the most frequent class: {10 / 11:.6g}", report["notes"])
        self.assertIn("f1: the mean over 2 of 3 classes; the others have no item and no answer", report["notes"])
        self.assertEqual(said, ["111 lines, 3 classes: 'autumn' 10, 'spring' 100, 'winter' 1; on one line only: 'winter'"])

    def test_a_spreadsheet(self):
        rows = "".join(f'{season};"{text},\r\n ""so"" it is";;\r\n' for season, text in lines(20))
        (self.folder / "excel.csv").write_bytes(("\ufeffKlasse;Text;;\r\n" + rows + ";;;\r\n").encode())
        self.assertEqual(self.trained("word-sum", "--data", "excel.csv")[1], ["40 lines, 2 classes: 'autumn' 20, 'spring' 20"])
        numbers = "".join(f"{i},5;{2 * i},25;;\r\n" for i in range(20))
        (self.folder / "numbers.csv").write_bytes(("\ufeffGröße;Gewicht;;\r\n" + numbers + ";;;\r\n").encode())
        self.assertEqual(self.trained("mixture-of-experts", "--data", "numbers.csv")[1],
                         ["20 rows: Gewicht from Größe; columns separated by semicolons, decimal commas"])

    def test_pairs_with_an_empty_side(self):
        self.write("pairs.tsv", "".join(f"{'' if i == 3 else f'word {i}'}\t{'' if i == 5 else f'Wort {i}'}\n" for i in range(22)))
        self.assertEqual(self.trained("seq2seq", "--data", "pairs.tsv")[1],
                         ["16 pairs to learn from, 2 to choose by, 2 to judge; 2 with an empty side left out"])

    def test_the_probability_of_a_bag_is_that_of_its_answer(self):
        draw = random.Random(2)
        rows = "label,bag,size\n" + "".join(f"{bag % 2},b{bag},{draw.gauss(3 * (bag % 2), 1):.2f}\n" for bag in range(40))
        self.write("bags.csv", rows)
        for system in ("mil", "pooling"):
            self.trained(system, "--data", "bags.csv", epochs=8)
            shown = [line.split("\t") for line in self.command("predict", "run", "--input", "bags.csv").stdout.splitlines()]
            told = [json.loads(line) for line in self.command("predict", "run", "--input", "bags.csv", "--json").stdout.splitlines()]
            self.assertEqual({line[1] for line in shown}, {"0", "1"})
            for line, fields in zip(shown, told, strict=True):
                self.assertEqual((line[0], line[1]), (fields["bag"], fields["answer"]))
                self.assertAlmostEqual(float(line[2]), fields["probability"], delta=6e-5, msg=f"{system}: {line}")

    def test_a_run_whose_data_are_gone_says_what_to_do(self):
        self.tsv("even.tsv", lines(30))
        self.trained("word-sum", "--data", "even.tsv")
        (self.folder / "even.tsv").unlink()
        for verb in (["evaluate", "run"], ["explain", "run", "--out", "page.html"]):
            done = subprocess.run([COMMAND, *verb], capture_output=True, text=True, cwd=self.folder)
            self.assertEqual(done.returncode, 1)
            self.assertIn("even.tsv: no such file; the RUN was trained on it, evaluate --data and explain --input take other items", done.stderr)
        self.command("predict", "run", input="bud rain\n")

    def test_labels_among_the_words_to_predict(self):
        self.tsv("even.tsv", lines(30))
        self.trained("word-sum", "--data", "even.tsv")
        said = self.command("predict", "run", input="spring\tbud rain\nautumn\tleaf\n").stderr
        self.assertEqual(said.count("begins with the class 'spring' and a tab"), 1, said)
        self.assertIn(":1: 'text' names a column", self.command("predict", "run", input="text\nbud rain\n").stderr)
        self.assertEqual(self.command("predict", "run", input="bud rain\nspring\n").stderr, "")


if __name__ == "__main__":
    unittest.main()
