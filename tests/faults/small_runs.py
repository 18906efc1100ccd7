"""The smallest training of every system that still learns: seconds at most, on data that is written here.

Kills, faults and growth all train these. `ITEMS` scales the data; the same number gives the same files.
"""

import json
import random
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

ITEMS = 60
WORDS = [f"w{i}" for i in range(40)]


@dataclass
class Small:
    system: str
    data: str = ""  # which writer below; none: the system's generator
    settings: dict = field(default_factory=dict)  # beside `epochs`
    size: str = ""  # the setting that scales generated data

    def train(self, folder, epochs=2, items=ITEMS):
        """The arguments of `fovea train`, with its data written into `folder`."""
        settings = dict(self.settings)
        if self.size:
            settings[self.size] = items
        if epochs is not None and self.system not in WITHOUT_EPOCHS:
            settings["epochs"] = epochs
        arguments = ["train", self.system, "--threads", "1"]
        if self.data:
            arguments += ["--data", str(write(self.data, Path(folder), items))]
        for name, value in settings.items():
            arguments += ["--set", f"{name}={value}"]
        return arguments


WITHOUT_EPOCHS = {"cost", "sparse-normalisers"}


def sentence(draw, low=3, high=9):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(low, high)))


def labelled(folder, items, draw):
    lines = [f"{i % 2}\t{sentence(draw)} {'good' if i % 2 else 'bad'} {sentence(draw)} .\n" for i in range(items)]
    return {"reviews.tsv": "".join(lines)}


def aspects(folder, items, draw):
    lines = [f"{'pos' if i % 2 else 'neg'}\t{draw.choice(['food', 'service'])}\t{sentence(draw)}\n" for i in range(items)]
    return {"aspects.tsv": "".join(lines)}


def parallel(folder, items, draw):
    files = {}
    for part, count in (("train", items), ("val", max(4, items // 8)), ("test", max(4, items // 8))):
        sources = [sentence(draw, 3, 6) for _ in range(count)]
        files[f"{part}.en"] = "".join(source + "\n" for source in sources)
        files[f"{part}.de"] = "".join(" ".join(reversed(source.split())) + "\n" for source in sources)
    return files


def bags(folder, items, draw):
    lines = ["bag,label,f0,f1,f2\n"]
    for bag in range(items):
        for _ in range(draw.randint(2, 5)):
            lines.append(f"b{bag},{bag % 2},{draw.gauss(bag % 2, 1):.4f},{draw.gauss(0, 1):.4f},{draw.gauss(0, 1):.4f}\n")
    return {"bags.csv": "".join(lines)}


def table(folder, items, draw):
    return {"table.csv": "x,y\n" + "".join(f"{draw.uniform(0, 10):.5f},{draw.gauss(0, 1):.5f}\n" for _ in range(items))}


def free_order(folder, items, draw):
    nouns, verbs, others = ["dog", "cat", "fox", "hen"], ["sees", "hears", "finds"], ["today", "often", "here"]
    files = {}
    for part, count in (("train", items), ("val", max(4, items // 8)), ("test", max(4, items // 8))):
        lines = []
        for _ in range(count):
            words = [draw.choice(nouns) + "-a", draw.choice(verbs), draw.choice(nouns) + "-o", draw.choice(others)]
            draw.shuffle(words)
            lines.append(" ".join(words) + "\n")
        files[f"{part}.txt"] = "".join(lines)
    return files


WRITERS = {"labelled": labelled, "aspects": aspects, "parallel": parallel, "bags": bags, "table": table, "free_order": free_order}


WRITING = threading.Lock()


def write(kind, folder, items):
    """The file or the folder that --data takes, written once."""
    place = folder / f"{kind}-{items}"
    with WRITING:
        if not place.exists():
            files = WRITERS[kind](folder, items, random.Random(f"{kind} {items}"))
            unfinished = folder / f"{kind}-{items}.part"
            unfinished.mkdir(parents=True)
            for name, text in files.items():
                (unfinished / name).write_text(text)
            unfinished.rename(place)
    names = sorted(path.name for path in place.iterdir())
    return place / names[0] if len(names) == 1 else place


TRANSLATION = {"embedding": 8, "width": 16, "batch": 16, "vocabulary": 60, "beam": 2}

SMALL = [
    Small("nadaraya-watson", "table", {"learn": "w", "batch": 16}),
    Small("pooling", "", {"width": 4, "batch": 16}, "bags"),
    Small("deep-sets", "", {"width": 4, "filters": 2, "largest": 3}, "sets"),
    Small("set-outlier", "", {"width": 4, "filters": 2, "members": 4}, "sets"),
    Small("mil", "bags", {"attention": 4, "hidden": 8}),
    Small("word2vec", "labelled", {"width": 8, "min_count": 1, "negatives": 2}),
    Small("word-sum", "labelled", {"width": 8}),
    Small("fixed-attention", "labelled", {"width": 8, "hidden": 8}),
    Small("general", "", {"batch": 16}, "memories"),
    Small("gradient-masking"),
    Small("document-attention", "aspects", {"width": 8, "hidden": 8, "aspect_width": 8, "batch": 16}),
    Small("hierarchical", "labelled", {"width": 8, "hidden": 8, "context": 8, "min_count": 1, "batch": 16}),
    Small("squeeze-excitation", "", {"channels": 4, "layers": 2, "inputs": 2, "batch": 16}, "pictures"),
    Small("gat", "", {"heads": 2, "width": 4, "words": 20, "classes": 3}, "nodes"),
    Small("memory-network", "", {"width": 8, "batch": 16}, "stories"),
    Small("show-attend-tell", "", {"width": 12, "attention": 8, "embedding": 8, "channels": 4, "batch": 16}, "pictures"),
    Small("image-to-set", "", {"width": 8, "heads": 2, "layers": 1, "filters": 2, "batch": 16}, "pictures"),
    Small("inverse-cooking", "", {"width": 8, "heads": 2, "layers": 1, "ingredient_layers": 1, "filters": 2, "batch": 16}, "plates"),
    Small("stacked-attention", "", {"width": 12, "attention": 8, "batch": 16}, "pictures"),
    Small("dnc", "", {"hidden": 8, "rows": 4, "width": 4, "batch": 16}, "sequences"),
    Small("ntm", "", {"hidden": 8, "rows": 4, "width": 4, "batch": 16}, "sequences"),
    Small("mixture-of-experts", "table", {"experts": 3, "k": 2, "hidden": 4, "batch": 16}),
    Small("seq2seq", "parallel", TRANSLATION),
    Small("bahdanau", "parallel", TRANSLATION),
    Small("luong", "parallel", TRANSLATION),
    Small("gnmt", "parallel", TRANSLATION | {"layers": 3}),
    Small("alignment", "parallel", {"width": 16, "batch": 16}),
    Small("convs2s", "parallel", {"width": 16, "layers": 1, "batch": 16, "vocabulary": 60, "beam": 2}),
    Small("beam-search", "parallel", TRANSLATION),
    Small("structured-attention", "parallel", {"width": 8, "state": 16, "batch": 16, "vocabulary": 60, "beam": 2}),
    Small("scaled-dot-product", "", {"width": 8, "key_width": 8, "batch": 16}, "sentences"),
    Small("multi-head", "free_order", {"width": 12, "batch": 16}),
    Small("transformer", "parallel", {"width": 16, "heads": 2, "hidden": 16, "layers": 1, "batch": 16, "vocabulary": 60, "beam": 2}),
    Small("dynamic-convolution", "parallel", {"width": 16, "heads": 2, "hidden": 16, "layers": 1, "batch": 16, "vocabulary": 60, "beam": 2}),
    Small("bert", "", {"width": 8, "hidden": 8, "layers": 1, "heads": 2, "batch": 16, "judged": 50}, "documents"),
    Small("next-word", "", {"width": 8, "hidden": 8, "layers": 1, "heads": 2, "key_heads": 1, "batch": 16}, "sentences"),
    Small("relative-positions", "", {"width": 8, "hidden": 8, "layers": 1, "heads": 2, "batch": 16, "length": 8, "test_length": 10}, "rows"),
    Small("sparse-patterns", "", {"side": 7, "width": 8, "hidden": 8, "layers": 1, "heads": 2, "batch": 16, "test_pictures": 5}, "pictures"),
    Small("sparse-normalisers", "", {"systems": "general"}),
    Small("cost", "", {"largest": 64, "seconds": 0.001}),
]


def named(names):
    known = {small.system: small for small in SMALL}
    return [known[name] for name in names]


def every(command):
    """One of every system the command has; exits where one is missing here."""
    listed = json.loads(subprocess.run([command, "list", "--json"], capture_output=True, check=True).stdout)["systems"]
    if missing := {system["name"] for system in listed} - {small.system for small in SMALL}:
        sys.exit(f"{__file__}: no small training of {', '.join(sorted(missing))}")
    return SMALL
