"""A user's own files, of the five kinds, as `fovea list SYSTEM` says they may be: what was read is said in a line, and the page is about them."""

import html
import itertools
import json
import os
import pty
import random
import re
import resource
import subprocess
import tempfile
import unittest
import urllib.request
from pathlib import Path

COMMAND = os.environ["FOVEA_COMMAND"]
TOPICS = {"billing": "invoice charged refund card", "login": "password account locked reset", "shipping": "parcel courier late package"}
# What only generated data has: no page on files speaks of it.
MADE_UP = r"survey|\bnines?\b|handwritten|\bacting\b|\bfilms?\b|motorcycle"


def messages():
    """24 of each class, no text twice."""
    draw = random.Random(3)
    chosen = {topic: draw.sample([f"{' '.join(three)} my {thing}, please" for three in itertools.permutations(words.split(), 3)
                                  for thing in ("order", "shop", "phone")], 24) for topic, words in TOPICS.items()}
    return [(topic, chosen[topic][i]) for i in range(24) for topic in TOPICS]


class OwnData(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="fovea-own-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def command(self, *arguments):
        done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, "OMP_NUM_THREADS": "1"})
        return done

    def trained(self, system, name, *settings):
        """What was said of the file."""
        done = self.command("train", system, "--data", name, "--out", "run", "--overwrite", *[part for one in settings for part in ("--set", one)])
        self.assertEqual(done.returncode, 0, done.stderr)
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("read ")]
        self.assertEqual(len(said), 1, done.stdout + done.stderr)
        return said[0]

    def page(self, name):
        """The words of the page on the run, without scripts and data."""
        done = self.command("explain", "run", "--out", "page.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        text = (self.folder / "page.html").read_text()
        data = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
        shown = html.unescape(re.sub(r"<[^>]*>", " ", re.sub(r"<(script|style)\b.*?</\1>", " ", text, flags=re.DOTALL)))
        self.assertIn(name, re.search("<title>(.*?)</title>", text).group(1))
        self.assertRegex(shown, r"Trained on \d{4}-\d\d-\d\d \d\d:\d\d\.")
        for part in (shown, *data):
            self.assertNotRegex(part, MADE_UP)
        for part in data:  # the idea may say it, the pictures do not
            self.assertNotIn("really great", part)
        return " ".join(shown.split())

    def pictures(self):
        self.assertEqual(self.command("explain", "run", "--out", "pictures.json").returncode, 0)
        return json.loads((self.folder / "pictures.json").read_text())

    def write(self, name, text):
        (self.folder / name).parent.mkdir(exist_ok=True)
        (self.folder / name).write_text(text)

    def test_text_in_every_form(self):
        rows = messages()
        quoted = lambda *cells: ",".join(f'"{cell}"' for cell in cells) + "\n"
        for name, text in {
            "header.csv": "label,text\n" + "".join(quoted(*row) for row in rows),
            "bare.csv": "".join(quoted(*row) for row in rows),
            "id.csv": "id,topic,text\n" + "".join(quoted(i, *row) for i, row in enumerate(rows)),
            "other.csv": "text,id,team\n" + "".join(quoted(text, i, topic) for i, (topic, text) in enumerate(rows)),
            "tabs.tsv": "".join(f"{topic}\t{text}\n" for topic, text in rows),
            "named.tsv": "message\ttopic\n" + "".join(f"{text}\t{topic}\n" for topic, text in rows),
            "lines.jsonl": "".join(json.dumps({"topic": topic, "message": text}) + "\n" for topic, text in rows),
            "plain.jsonl": "".join(json.dumps({"label": topic, "text": text}) + "\n" for topic, text in rows),
        }.items():
            with self.subTest(name):
                self.write(name, text)
                self.assertEqual(self.trained("word-sum", name, "epochs=1"), "read 72 lines, 3 classes: 'billing' 24, 'login' 24, 'shipping' 24")

    def test_blank_lines_are_skipped_and_a_header_that_is_not_known_is_told(self):
        rows = messages()
        text = "".join(f"{topic}\t{text}\r\n" for topic, text in rows)
        said = "3 classes: 'billing' 24, 'login' 24, 'shipping' 24"
        self.write("ends.tsv", "\r\n" + text + "\r\n\r\n")
        self.assertEqual(self.trained("word-sum", "ends.tsv", "epochs=1"), f"read 72 lines, {said}")
        self.write("thema.tsv", "Thema\tNachricht\r\n" + text)
        self.assertEqual(self.trained("word-sum", "thema.tsv", "epochs=1"),
                         f"read 73 lines, 4 classes: 'Thema' 1, {said[11:]}; 'Thema' is on line 1 only: if this line names the columns, call them label and text")

    def test_a_page_on_text(self):
        self.write("tickets.csv", "id,topic,text\n" + "".join(f'{i},{topic},"{text}"\n' for i, (topic, text) in enumerate(messages())))
        for system in ("word-sum", "fixed-attention", "hierarchical"):
            with self.subTest(system):
                self.trained(system, "tickets.csv", "epochs=1")
                shown = self.page("tickets.csv")
                self.assertIn("tickets.csv: 72 lines, 3 classes: 'billing' 24, 'login' 24, 'shipping' 24.", shown)
                self.assertIn("Settings: epochs=1.", shown)
                self.assertRegex(shown, r"right answers [\d.]+ % \(95 % interval [\d.]+ to [\d.]+ %, \d+ items\)")
                self.assertRegex((self.folder / "page.html").read_text(), r"Test item of line \d+")
                # Nothing is to be expected of a user's own data, so nothing speaks of it.
                self.assertIn("Figures reached figure reached here right answers", shown)
                self.assertNotIn("to expect", shown)

    def test_of_several_classes_each_has_its_words_and_special_tokens_are_none(self):
        self.write("tickets.csv", "id,topic,text\n" + "".join(f'{i},{topic},"{text}"\n' for i, (topic, text) in enumerate(messages())))
        self.trained("word-sum", "tickets.csv", "epochs=20")
        axis = next(one for one in self.pictures() if one["title"].startswith("Every word"))
        self.assertEqual(axis["title"], "Every word is one number for each class: wᵀx for billing")
        table = axis["tables"][0]
        self.assertEqual((table["title"], table["columns"]), ("The strongest words of each class", sorted(TOPICS)))
        for place, topic in enumerate(table["columns"]):
            self.assertTrue(set(TOPICS[topic].split()) <= {row[place] for row in table["rows"]}, table)
        two = [row for row in messages() if row[0] != "shipping"]
        self.write("two.csv", "topic,text\n" + "".join(f'{topic},"{text}"\n' for topic, text in two))
        self.trained("word-sum", "two.csv", "epochs=1")
        axis = next(one for one in self.pictures() if one["title"].startswith("Every word"))
        words = {cell for row in axis["tables"][0]["rows"] for cell in row}
        self.assertEqual(words & {"<pad>", "<unk>", "<s>", "</s>"}, set())
        self.assertEqual(axis["plots"][0]["x_label"], "wᵀx: the further to the right, the more it speaks for login")

    def test_the_example_to_type_is_of_the_file(self):
        rows = messages()
        self.write("tickets.csv", "label,text\n" + "".join(f'{topic},"{text}"\n' for topic, text in rows))
        self.trained("word-sum", "tickets.csv", "epochs=1")
        server = subprocess.Popen([COMMAND, "serve", "run", "--port", "0"], cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        address = re.search(r"http://\S+", server.stdout.readline())[0]
        with urllib.request.urlopen(address + "run/") as answer:
            example = html.unescape(re.search(r'data-example="([^"]*)"', answer.read().decode())[1])
        self.assertIn(example.replace(" ,", ","), [text for _, text in rows])

    def test_mistakes_come_first_and_are_called_wrong(self):
        rows = messages()
        rows = [(topic if i % 2 else "login", text) for i, (topic, text) in enumerate(rows)]  # some cannot be right
        self.write("tickets.csv", "label,text\n" + "".join(f'{topic},"{text}"\n' for topic, text in rows))
        self.trained("word-sum", "tickets.csv", "epochs=20", "rate=0.02")
        self.command("explain", "run", "--out", "all.json")
        outcomes = [one["outcome"] for one in json.loads((self.folder / "all.json").read_text()) if one.get("outcome")]
        right = [outcome.startswith("right: ") for outcome in outcomes]
        self.assertIn(False, right)
        self.assertEqual(right, sorted(right))
        self.assertTrue(all("(true: " in outcome for outcome in outcomes if outcome.startswith("wrong: ")))

    def test_a_table(self):
        draw = random.Random(5)
        rows = "".join(f"2026-01-{1 + i % 28:02d},{10 + i % 17},{2 + 0.1 * (i % 7):.1f},{100 + 3 * (i % 17) - 8 * (i % 7) + draw.gauss(0, 3):.2f}\n" for i in range(120))
        self.write("sales.csv", "day,temp,price,sold\n" + rows)
        for system in ("nadaraya-watson", "mixture-of-experts"):
            with self.subTest(system):
                settings = ["epochs=1"] if system == "mixture-of-experts" else []
                self.assertEqual(self.trained(system, "sales.csv", *settings), "read 120 rows: sold from temp, price; column day left out: not a number")
                shown = self.page("sales.csv")
                self.assertIn("sales.csv: 120 rows: sold from temp, price; column day left out: not a number.", shown)

    def test_pairs(self):
        words = {"red": "rouge", "big": "grand", "old": "vieux", "new": "neuf"}
        things = {"cat": "chat", "dog": "chien", "book": "livre", "car": "auto", "tree": "arbre", "bird": "oiseau"}
        self.write("pairs.tsv", "".join(f"the {a} {n}\tle {m} {b}\n" for a, b in words.items() for n, m in things.items()))
        self.assertRegex(self.trained("bahdanau", "pairs.tsv", "epochs=1", "tokens=words"), r"^read \d+ pairs to learn from, \d+ to choose by, \d+ to judge$")
        self.assertIn("pairs.tsv: ", self.page("pairs.tsv"))

    def test_pairs_with_a_mark_of_order_windows_ends_and_blank_lines(self):
        self.write("pairs.tsv", "\ufeff" + "".join(f"one {i}\teins {i}\r\n" + "\r\n" * (i % 50 == 49) for i in range(200)))
        self.assertEqual(self.trained("bahdanau", "pairs.tsv", "epochs=1", "tokens=words"), "read 160 pairs to learn from, 20 to choose by, 20 to judge")

    def test_of_a_few_hundred_pairs_a_tenth_judges(self):
        self.write("pairs.tsv", "".join(f"one {i}\teins {i}\n" for i in range(200)))
        self.assertEqual(self.trained("bahdanau", "pairs.tsv", "epochs=1", "tokens=words"), "read 160 pairs to learn from, 20 to choose by, 20 to judge")

    def test_pieces_are_written_as_words(self):
        self.write("pairs.tsv", "".join(f"the green house {i}\tdas Haus {i}\n" for i in range(60)))
        self.trained("bahdanau", "pairs.tsv", "epochs=1", "tokens=pieces")
        alignment = self.pictures()[0]
        shown = [item["text"] for item in alignment["keys"] + alignment["queries"]]
        self.assertFalse([text for text in shown if "\u2581" in text], shown)
        self.assertIn("the", shown)
        # A number that never comes twice is written in pieces, and a note says how.
        self.assertEqual(any(text.startswith("·") for text in shown), any("A dot stands before" in note for note in alignment.get("notes", [])))
        # A length against which a score could be drawn needs more sentences than these.
        self.assertNotIn("Score against the length of the source", [one["title"] for one in self.pictures()])

    def test_a_graph(self):
        draw = random.Random(7)
        nodes = "id,label,age,visits\n" + "".join(f"p{i},{'north' if i % 2 else 'south'},{20 + i % 2 * 9 + draw.random():.2f},{draw.randrange(9)}\n" for i in range(60))
        self.write("people/nodes.csv", nodes)
        self.write("people/edges.csv", "from,to\n" + "".join(f"p{i},p{(i + 2 * draw.randrange(1, 20)) % 60}\n" for i in range(60) for _ in range(2)))
        self.assertRegex(self.trained("gat", "people", "epochs=3"), r"^read 60 nodes with 2 features, 120 edges, 2 classes; \d+ nodes to learn from$")
        self.assertIn("people: 60 nodes with 2 features", self.page("people"))

    def test_nodes_may_have_names_of_several_words_and_mistakes_come_first(self):
        draw = random.Random(7)
        name = lambda i: f"Jörg Ümit {i}"
        label = lambda i: "north" if i % 2 else "<b>"
        self.write("club/nodes.csv", "id,label,age in years\n" + "".join(f"{name(i)},{label(i)},{20 + i % 2 * 9 + 8 * draw.random():.2f}\n" for i in range(60)))
        self.write("club/edges.csv", "from,to\n" + "".join(f"{name(i)},{name((i + 2 * draw.randrange(1, 20)) % 60)}\n" for i in range(60) for _ in range(2)))
        self.trained("gat", "club", "epochs=3")
        said = subprocess.run([COMMAND, "predict", "run"], input="Jörg Ümit 3\n", capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertEqual(len(said.stdout.splitlines()), 1)
        queries = [query["text"] for query in self.pictures()[0]["queries"]]
        wrong = ["(wrong: predicted " in text for text in queries]
        self.assertEqual(wrong, sorted(wrong, reverse=True), queries)
        self.assertTrue(all("(right, p = " in text for text, mistaken in zip(queries, wrong) if not mistaken), queries)

    def test_bags(self):
        draw = random.Random(9)
        rows = "bag,label,width,height\n"
        for bag in range(40):
            for instance in range(4):
                found = bag % 2 and instance == 0
                rows += f"b{bag},{bag % 2},{draw.gauss(3 if found else 0, 1):.3f},{draw.gauss(0, 1):.3f}\n"
        self.write("parts.csv", rows)
        self.assertEqual(self.trained("mil", "parts.csv", "epochs=2"), "read 40 bags of 160 instances, 2 features; label 1: 20, label 0: 20")
        coloured = "".join(line + (",colour\n" if line.startswith("bag,") else f",{draw.choice(['red', 'green'])}\n") for line in rows.splitlines())
        self.write("coloured.csv", coloured)
        self.assertEqual(self.trained("mil", "coloured.csv", "epochs=2"),
                         "read 40 bags of 160 instances, 2 features; label 1: 20, label 0: 20; column colour left out: not a number")
        asked = self.command("predict", "run", "--input", "coloured.csv")
        self.assertEqual(asked.returncode, 0, asked.stderr)
        self.trained("mil", "parts.csv", "epochs=2")
        self.assertIn("parts.csv: 40 bags of 160 instances, 2 features", self.page("parts.csv"))
        self.assertEqual(self.trained("pooling", "parts.csv", "epochs=2"), "read 40 bags of 160 instances, 2 features; label 1: 20, label 0: 20")
        self.page("parts.csv")
        self.assertRegex((self.folder / "page.html").read_text(), r'"text":"1: (width|height) ', "an item is told by a feature's name")

    def test_what_an_asked_line_names_is_said_with_its_line_and_one_is_one(self):
        self.write("sets.jsonl", '{"tags": ["pier"]}\n')
        done = self.command("train", "deep-sets", "--data", "sets.jsonl", "--set", "task=tags", "--out", "run")
        self.assertIn("sets.jsonl:1: 1 tag, expected at least 2: some are given, others found", done.stderr)
        done = self.command("train", "deep-sets", "--epochs", "1", "--set", "sets=20", "--out", "run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.write("asked", "gone\n")
        done = self.command("explain", "run", "--input", "asked", "--out", "page.html")
        self.assertEqual(done.stderr, "fovea: asked:1: gone: cannot be read: No such file or directory\n")

    def test_two_thousand_lines_are_answered_in_less_than_a_second(self):
        rows = messages()
        self.write("tickets.tsv", "".join(f"{topic}\t{text}\n" for topic, text in rows))
        self.trained("word-sum", "tickets.tsv", "epochs=1")
        self.write("lines.txt", "".join(rows[i % len(rows)][1] + "\n" for i in range(2000)))
        spent = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])  # of the processor: other work does not count
        before = spent()
        answered = self.command("predict", "run", "--input", "lines.txt")
        seconds = spent() - before
        self.assertEqual(len(answered.stdout.splitlines()), 2000)
        self.assertLess(seconds, 1)

    def test_control_characters_of_a_file_do_not_reach_a_terminal(self):
        self.write("odd.txt", "".join(f"words {i} and others\n" for i in range(400)))
        self.trained("next-word", "odd.txt", "epochs=1", "width=8", "hidden=8", "layers=1", "heads=2", "key_heads=1")
        self.write("lines.txt", "words \x1b[31m\x1b]0;title\x07 \x9b1m and °\n")
        arguments = [COMMAND, "predict", self.folder / "run", "--input", self.folder / "lines.txt"]
        piped = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
        self.assertIn(b"\x1b[31m", piped, "a file gets what was asked for")
        ours, terminal = pty.openpty()
        subprocess.run(arguments, stdout=terminal, stderr=subprocess.DEVNULL, check=True)
        os.close(terminal)
        shown = os.read(ours, 65536)
        os.close(ours)
        self.assertEqual(re.findall(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]", shown), [], shown)
        self.assertIn(rb"\x1b[31m", shown)
        self.assertIn("°".encode(), shown)

    def test_what_cannot_be_meant_is_refused(self):
        self.write("each.csv", "topic,text\n" + "".join(f"c{i},hello number {i}\n" for i in range(13)))
        done = self.command("train", "word-sum", "--data", "each.csv", "--out", "refused")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("13 lines and as many classes", done.stderr)
        self.write("three.csv", "first,second,third\nx,hello there,1\n")
        done = self.command("train", "word-sum", "--data", "three.csv", "--out", "refused")
        self.assertIn("three.csv:1: 3 columns, of which none is called label or text: expected label,text, or a first line", done.stderr)


if __name__ == "__main__":
    unittest.main()
