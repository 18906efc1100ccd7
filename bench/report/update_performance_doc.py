"""Puts a run of `fovea bench` (and of python_peers.py) into docs/performance.md, between its markers.

    fovea bench --json bench.json && python bench/peers/python_peers.py --json python.json
    python bench/report/update_performance_doc.py bench.json [python.json] [--doc docs/performance.md]
"""

from __future__ import annotations

import argparse
import json
import pathlib

UNITS = {"fma": "GFLOP/s", "bf16": "GFLOP/s", "triad": "GB/s", "triad_streamed": "GB/s", "exp": "G/s", "tanh": "G/s",
         "gather": "GB/s"}


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def size(count: float) -> str:
    return f"{count / 2**20:.0f} MB" if count >= 2**20 else f"{count / 2**10:.0f} KB"


def machine(run: dict) -> str:
    m = run["machine"]
    caches = ", ".join(f"{level.upper()} {size(m[level + '_bytes'])}" for level in ("l1", "l2", "l3") if m[level + "_bytes"] > 0)
    units = "two 512-bit multiply-add units a core" if run["two_wide_units"] else "one 512-bit multiply-add unit a core, or none"
    bf16 = f", {m['bf16']}" if m["bf16"] else ""
    return (f"{m['processor']}, {m['cores']} cores ({units}), {m['memory_gb']:.0f} GB, {caches}; {m['system']}; "
            f"{m['simd_target']}{bf16}; libtorch {m['libtorch']}; {m['compiler']}; {run['threads']} threads on both sides, "
            f"{run['cache']} caches, load {m['load']:.2f} when it began.")


def roofs(run: dict) -> str:
    return table(["roof", "measured"], [[name, f"{run['roofs'][name]:.1f} {unit}"] for name, unit in UNITS.items()
                                        if run["roofs"].get(name, 0) > 0])


def mark(met: bool | None) -> str:
    return "?" if met is None else "✓" if met else "✗"


def megabytes(count: float | None) -> str:
    return "" if count is None else f"{count / 1e6:.1f}"


def results(run: dict) -> str:
    rows = []
    for row in run["rows"]:
        if row["name"].startswith(("case/", "series/")):
            continue  # without figures; the JSON and the page have them
        timed = row["rounds"] > 0
        figures = "<br>".join(
            f"{mark(f['met'])} {f['figure']}" + ("" if f["value"] is None else f": {f['value']:.3g}") for f in row["figures"])
        rows.append([
            f"`{row['name']}`", f"{row['ms']:.3f}" if timed else "", f"{100 * row['spread']:.0f}" if timed else "",
            f"{row['gflops']:.1f}" if row["gflops"] else "", f"{row['gbps']:.1f}" if row["gbps"] else "",
            f"{row['x_peer']:.2f} ({row['best_peer']})" if row["best_peer"] else "",
            f"{row['pct_roof']:.0f} ({row['roof']})" if row["pct_roof"] else "",
            megabytes(row["memory_bytes"]), megabytes(row["peer_memory_bytes"]), figures])
    summary = f"{run['met']} of {run['met'] + run['missed']} figures reached.\n\n"
    return summary + table(["row", "ms", "± %", "gflops", "gbps", "x_peer", "pct_roof", "MB", "peer's MB", "figures"], rows)


def python_results(run: dict) -> str:
    rows = [[f"`{row['name']}`", row["peer"], f"{row['ms']:.3f}", f"{row['peer_ms']:.3f}", f"{row['x_peer']:.2f}",
             "" if row["met"] is None else f"{mark(row['met'])} >= {row['at_least']:g}"] for row in run["rows"]]
    return (f"torch {run['torch']}, {run['threads']} threads on both sides.\n\n"
            + table(["row", "peer", "ms", "peer's ms", "x_peer", "figure"], rows))


def replace(text: str, name: str, content: str) -> str:
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"the document needs one '{begin}' and one '{end}'")
    head, rest = text.split(begin)
    return head + begin + "\n" + content + "\n" + end + rest.split(end)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bench", help="written by fovea bench --json")
    parser.add_argument("python", nargs="?", help="written by python_peers.py --json")
    parser.add_argument("--doc", default=str(pathlib.Path(__file__).parents[2] / "docs" / "performance.md"))
    options = parser.parse_args()
    doc = pathlib.Path(options.doc)
    run = json.loads(pathlib.Path(options.bench).read_text(encoding="utf-8"))
    text = doc.read_text(encoding="utf-8")
    for name, content in (("machine", machine(run)), ("roofs", roofs(run)), ("results", results(run))):
        text = replace(text, name, content)
    if options.python:
        text = replace(text, "python", python_results(json.loads(pathlib.Path(options.python).read_text(encoding="utf-8"))))
    doc.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
