"""Every score with every normaliser and structure on a CUDA device against the CPU, in float64, forward and backward.

    python3 tests/python/cuda_product.py [part parts] [seconds]

Each combination is a program of its own, so a run takes long; `part` of `parts` are for processes side by side. Prints the combinations that
differ, and a count; exits with 1 where there are some.
"""

import sys
import time
import traceback

import torch
from cases import NORMALISERS, PACKED, SCORES, STRUCTURES
from test_cuda import results


def main():
    part, parts = (int(x) for x in sys.argv[1:3]) if len(sys.argv) > 2 else (0, 1)
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else float("inf")
    everything = [(s, n, t) for s in SCORES for n in NORMALISERS for t in [*STRUCTURES, *PACKED]]
    # In an order that is soon fair to all of each: steps of a number without a common divisor.
    order = [everything[(k * 619) % len(everything)] for k in range(len(everything))]
    end, ran, wrong, refused = time.time() + seconds, 0, 0, 0
    for combination in order[part::parts]:
        if time.time() > end:
            break
        try:
            expected = results("cpu", *combination)
        except (RuntimeError, ValueError):  # has no meaning
            refused += 1
            continue
        ran += 1
        try:
            ours = results("cuda", *combination, strict=combination != ("dot", "softmax", "dense"))
            assert len(ours) == len(expected), (len(ours), len(expected))
            for n, (a, b) in enumerate(zip(ours, expected)):
                torch.testing.assert_close(a, b, atol=1e-9, rtol=1e-8, msg=lambda text: f"result {n}: {text}")
        except Exception as error:  # one report each
            wrong += 1
            print("WRONG", *combination, "|", type(error).__name__, str(error)[:400].replace("\n", " "), flush=True)
            if wrong <= 2 and not isinstance(error, AssertionError):
                traceback.print_exc()
    print(f"part {part}: {ran} combinations, {wrong} wrong, {refused} refused by the CPU too, {len(order[part::parts]) - ran - refused} left", flush=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
