"""The difference of two RUNs of as many seeds, pair by pair, with its 95 % interval: the figure in docs/systems/squeeze-excitation.md.

    fovea evaluate out/gates --json > gates.json
    fovea evaluate out/plain --json > plain.json
    python docs/measure/paired.py gates.json plain.json [METRIC]
"""

import json
import math
import sys
from pathlib import Path

# Student's t, two-sided 95 %, by degrees of freedom; beyond the last the normal distribution's.
T = dict(zip(range(1, 31), (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
                            2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)))  # fmt: skip


def by_seed(path, metric):
    return {run["seed"]: run["metrics"][metric] for run in json.loads(Path(path).read_text())["runs"]}


def main():
    metric = sys.argv[3] if len(sys.argv) > 3 else "accuracy"
    first, second = by_seed(sys.argv[1], metric), by_seed(sys.argv[2], metric)
    seeds = sorted(first.keys() & second.keys())
    if len(seeds) < 2:
        sys.exit(f"{len(seeds)} seeds in both, expected at least two")
    differences = [first[seed] - second[seed] for seed in seeds]
    mean = sum(differences) / len(seeds)
    deviation = math.sqrt(sum((one - mean) ** 2 for one in differences) / (len(seeds) - 1))
    half = T.get(len(seeds) - 1, 1.960) * deviation / math.sqrt(len(seeds))
    for seed, one in zip(seeds, differences):
        print(f"seed {seed}: {first[seed]:.4f} {second[seed]:.4f} {one:+.4f}")
    print(f"{metric}: mean difference {mean:+.4f}, 95 % interval {mean - half:+.4f} to {mean + half:+.4f}, {len(seeds)} pairs")


main()
