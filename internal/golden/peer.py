"""Makes golden folders with transformers: a small random model's answers in float64.

    python peer.py OUT

The folders are qwen2 and llama-scaled (biases everywhere, Llama 3.1's frequencies).
Needs torch and transformers 5; about.json records their versions.
"""
import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

B, T, STEPS = 2, 12, 3
COMMON = dict(num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-6,
              bos_token_id=None, eos_token_id=None, pad_token_id=None)
MODELS = {
    "qwen2": (Qwen2ForCausalLM, Qwen2Config(
        hidden_size=32, intermediate_size=48, vocab_size=83, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0}, **COMMON), 5),
    "llama-scaled": (LlamaForCausalLM, LlamaConfig(
        hidden_size=32, intermediate_size=48, vocab_size=79, head_dim=16, tie_word_embeddings=False, attention_bias=True, mlp_bias=True,
        rope_parameters={"rope_type": "llama3", "rope_theta": 100.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 32}, **COMMON), 6),
}


def batch(vocab, seed):
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, vocab, (B, T + 1), generator=g)
    labels = ids[:, 1:].clone()
    labels[torch.rand(labels.shape, generator=g) < 0.2] = -100
    labels[1, : T // 2] = -100  # unevenly
    return ids[:, :-1].contiguous(), labels


def loss_of(model, ids, labels):
    logits = model(input_ids=ids, use_cache=False).logits
    total = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=-100, reduction="sum")
    return logits, total / (labels != -100).sum()


def main(out):
    for name, (kind, config, seed) in MODELS.items():
        torch.manual_seed(seed)
        config._attn_implementation = "eager"
        model = kind(config).float()
        with torch.no_grad():
            for p in model.parameters():  # off their defaults, so that a skipped one shows
                p.add_(torch.randn_like(p) * (0.2 if p.dim() == 1 else 0.1))
        folder = out / name
        model.save_pretrained(folder)
        model = model.double().eval()
        ids, labels = batch(config.vocab_size, seed)
        answers = {"input_ids": ids, "labels": labels}
        logits, loss = loss_of(model, ids, labels)
        loss.backward()
        answers["logits"], answers["loss"] = logits.detach(), loss.detach().reshape(1)
        grads = {n: p.grad.clone() for n, p in model.named_parameters()}
        answers |= {f"grad.{n}": g for n, g in grads.items()}
        answers["grad_norm"] = torch.sqrt(sum((g**2).sum() for g in grads.values())).reshape(1)
        opt = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
        losses = []
        for _ in range(STEPS):
            opt.zero_grad()
            _, loss = loss_of(model, ids, labels)
            loss.backward()
            losses.append(loss.item())
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        answers["adamw_losses"] = torch.tensor(losses, dtype=torch.float64)
        answers |= {f"after3.{n}": p.detach().clone() for n, p in model.named_parameters()}
        save_file({k: v.contiguous() for k, v in answers.items()}, folder / "expected.safetensors")
        (folder / "generation_config.json").unlink(missing_ok=True)
        about = {"transformers": transformers.__version__, "torch": torch.__version__, "kind": name, "seed": seed, "B": B, "T": T, "made by": "internal/golden/peer.py"}
        (folder / "about.json").write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
