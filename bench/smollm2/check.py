"""SmolLM2-135M through heddle and transformers: the same weights, logits and ids.

    python bench/smollm2/check.py HEDDLE MODEL.gguf TEXT WORK > bench/results/smollm2.json

HEDDLE is the binary, TEXT a file to fine-tune on, WORK an empty folder of a few GB.

 1. heddle export of the GGUF file holds the weights that transformers dequantises, bit for bit.
 2. logits and loss of heddle (float32) beside transformers' (float64 arithmetic), by heddle verify.
 3. 20 steps of heddle train on TEXT, exported as bf16 in several files: transformers opens it, and
    heddle's logits are those of transformers on it.
 4. tokenizer.json: ids of TEXT by transformers' AutoTokenizer and by heddle tokenizer encode.

Needs torch, transformers, gguf.
"""
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys

import torch
import transformers
from safetensors.torch import save_file

PROMPTS = ["The capital of France is", "def fibonacci(n):\n", "Once upon a time there was"]
S = 24


def heddle(*args):
    run = subprocess.run([HEDDLE, "--json", *map(str, args)], capture_output=True, text=True)
    if run.returncode not in (0, 5):
        sys.exit(f"heddle {args}: {run.returncode} {run.stdout} {run.stderr}")
    return json.loads(run.stdout)


def expect(folder, dtype=torch.float64):
    """Writes transformers' logits and loss of the prompts, padded with the first token and masked."""
    tok = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()
    rows = [tok(p + " and so it went on, for as long as anybody could remember it, day after day.")["input_ids"][: S + 1] for p in PROMPTS]
    ids = torch.tensor([r + [r[0]] * (S + 1 - len(r)) for r in rows])
    labels = ids[:, 1:].clone()
    for i, r in enumerate(rows):
        labels[i, len(r) - 1 :] = -100
    ids = ids[:, :-1].contiguous()
    with torch.no_grad():
        logits = model(input_ids=ids, use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=-100, reduction="mean")
    save_file({"input_ids": ids, "labels": labels, "logits": logits.double(), "loss": loss.double().reshape(1)}, f"{folder}/expected.safetensors")
    return model


def same_weights(a, b):
    """Counts the weights that differ; a tied head is the embedding and counts once."""
    a, b = dict(a.named_parameters()), dict(b.named_parameters())
    if a.keys() != b.keys():
        sys.exit(f"parameters differ: {sorted(a.keys() ^ b.keys())}")
    return sum(int((a[k].double() != b[k].double()).sum()) for k in a)


def logits_and_loss(folder):
    worst = heddle("verify", folder, "--schemes", "single", "--dtype", "f32")["folders"][0]["worst"]
    return {k: worst[k] for k in ("logits", "loss")}


def main(gguf, text, work):
    out = {"command": "python bench/smollm2/check.py HEDDLE SmolLM2-135M-Instruct.Q4_1.gguf TEXT WORK", "date": datetime.date.today().isoformat(),
           "machine": f"{platform.machine()}, {os.cpu_count()} cores", "torch": torch.__version__, "transformers": transformers.__version__}
    plain, run, tuned = work / "plain", work / "run", work / "tuned"
    if not plain.exists():
        heddle("export", gguf, plain)
    ours = expect(plain)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    out["weights_that_differ"] = same_weights(ours.float(), theirs)
    del ours, theirs
    out["dequantised"] = logits_and_loss(plain)
    if not run.exists():
        steps = heddle("train", f"init={gguf}", "--data", text, "--out", run, "steps=20", "seq=64", "batch=2", "samples=0", "save_every=0", "trace_steps=0", "eval_bytes=1000")
        out["train"] = {k: steps[k] for k in ("steps", "tokens", "train_loss")}
    if not tuned.exists():
        exported = heddle("export", run, tuned, "--dtype", "bf16", "--shard", "0.1")
        out["export"] = {k: exported[k] for k in ("dtype", "weight_files", "tensors", "parameters", "bytes", "rounding")}
    a = expect(tuned)
    b = transformers.AutoModelForCausalLM.from_pretrained(plain, dtype=torch.float64)
    out["weights_that_training_moved"] = same_weights(a, b)
    del a, b
    out["fine_tuned"] = logits_and_loss(tuned)
    sample = text.read_text()
    theirs = transformers.AutoTokenizer.from_pretrained(tuned)(sample)["input_ids"]
    ours = heddle("tokenizer", "encode", "--tokenizer", tuned / "tokenizer.json", "--file", text)["ids"]
    out["ids"] = {"text_bytes": len(sample.encode()), "ids": len(ours), "equal": ours == theirs}
    limit = 1e-5
    out["limit"] = limit
    out["ok"] = (out["weights_that_differ"] == 0 and out["weights_that_training_moved"] > 0 and out["ids"]["equal"]
                 and all(out[k][c] <= limit for k in ("dequantised", "fine_tuned") for c in ("logits", "loss")))
    print(json.dumps(out, indent=1))
    return 0 if out["ok"] else 5


if __name__ == "__main__":
    HEDDLE, *rest = sys.argv[1:]
    sys.exit(main(*map(pathlib.Path, rest)))
