"""what_regions_tell.py FLICKR8K: how much more a choice of regions can tell than their mean, before any decoder is trained.

Prints the receptive field of a region, how much of a region is a linear function of the other regions' mean, and how well a linear
reader (ridge regression, its weight chosen on the validation pictures) finds the words of a picture's captions: mean average precision
over the 1,000 commonest words after the 30 commonest, on the test pictures.
"""

import collections
import gzip
import re
import sys

import numpy as np

SKIPPED, WORDS = 30, 1000


def receptive_field():
    """Of MobileNetV2's last convolution: each layer of 3 x 3 adds two steps of the grid it reads."""
    first_strides = [1, 2, 2, 2, 1, 2, 1]  # of the seven groups of blocks
    blocks = [1, 2, 3, 4, 3, 3, 1]
    strides = [2] + [stride if i == 0 else 1 for stride, count in zip(first_strides, blocks) for i in range(count)]
    field, step = 1, 1
    for stride in strides:
        field, step = field + 2 * step, step * stride
    return field


def read(folder):
    captions = gzip.open(f"{folder}/captions.tsv.gz", "rt").read().splitlines()
    rows = [line.split("\t") for line in captions]
    words = [set(re.findall("[a-z]+", " ".join(row[2:]).lower())) for row in rows]
    regions = np.frombuffer(gzip.open(f"{folder}/regions.i8.gz").read(), np.int8).reshape(len(rows), 49, 64)
    regions = regions * np.loadtxt(f"{folder}/regions.scale.txt", dtype=np.float32)
    parts = {name: np.array([row[1] == name for row in rows]) for name in ("train", "dev", "test")}
    return regions, words, parts


def explained(regions, parts):
    """The share of a region's variance that is a linear function of the mean of the 48 others, each place by itself."""
    left, all_ = 0.0, 0.0
    for place in range(regions.shape[1]):
        others = np.delete(regions, place, 1).mean(1)
        given = np.c_[others, np.ones(len(others))]
        weights = np.linalg.lstsq(given[parts["train"]], regions[parts["train"], place], rcond=None)[0]
        test = regions[parts["test"], place]
        left += ((test - given[parts["test"]] @ weights) ** 2).sum()
        all_ += ((test - regions[parts["train"], place].mean(0)) ** 2).sum()
    return 1 - left / all_


def precision(scores, truth):
    out = []
    for word in np.flatnonzero(truth.any(0)):
        hits = truth[np.argsort(-scores[:, word], kind="stable"), word]
        out.append((np.cumsum(hits) / np.arange(1, len(hits) + 1) * hits).sum() / hits.sum())
    return float(np.mean(out))


def told(seen, truth, parts):
    train = parts["train"]
    seen = (seen - seen[train].mean(0)) / (seen[train].std(0) + 1e-6)
    seen = np.c_[seen, np.ones(len(seen))].astype(np.float32)
    square, product = seen[train].T @ seen[train], seen[train].T @ truth[train]
    best = (0.0, 0.0)
    for penalty in (1e1, 1e2, 1e3, 1e4, 1e5):
        scores = seen @ np.linalg.solve(square + penalty * np.eye(len(square), dtype=np.float32), product)
        best = max(best, tuple(precision(scores[parts[name]], truth[parts[name]]) for name in ("dev", "test")))
    return best[1]


def main(folder):
    regions, words, parts = read(folder)
    counts = collections.Counter(word for of, train in zip(words, parts["train"]) if train for word in of)
    chosen = [word for word, _ in counts.most_common(SKIPPED + WORDS)][SKIPPED:]
    truth = np.array([[word in of for word in chosen] for of in words], np.float32)
    grid, mean = regions.reshape(-1, 7, 7, 64), regions.mean(1)
    quarters = [grid[:, rows, columns].mean((1, 2)) for rows in (slice(4), slice(3, 7)) for columns in (slice(4), slice(3, 7))]
    print(f"receptive field: {receptive_field()} pixels")
    print(f"of a region, linear in the mean of the others: {explained(regions, parts):.3f}")
    for name, seen in {
        "a corner's region": regions[:, 0],
        "the middle region": regions[:, 24],
        "the mean of all": mean,
        "the mean, and of each number the largest": np.c_[mean, regions.max(1)],
        "the mean, and those of the quarters": np.concatenate([mean, *quarters], 1),
    }.items():
        print(f"words from {name}: {told(seen, truth, parts):.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
