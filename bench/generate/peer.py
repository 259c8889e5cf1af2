# PyTorch's side of bench/generate: SmolLM2-135M dequantised to float32, greedy, by transformers' generate and by a minimal
# loop of our own making. It answers one JSON line for each line read:
#
#	pip install torch transformers accelerate gguf; python bench/generate/peer.py THREADS FILE.gguf
#	{"how": "generate" | "loop" | "compiled", "batch": 1, "prompt": [ids], "tokens": 64}
#
# with the seconds that tokens after the first took, and the ids of the first sequence.
import sys, os, time, json
import torch, torch.nn.functional as F
from transformers import AutoModelForCausalLM

threads, path = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(threads)
torch.set_grad_enabled(False)
model = AutoModelForCausalLM.from_pretrained(os.path.dirname(path) or ".", gguf_file=os.path.basename(path), dtype=torch.float32).eval()
cfg = model.config
L, H, A, G, D = cfg.num_hidden_layers, cfg.hidden_size, cfg.num_attention_heads, cfg.num_key_value_heads, cfg.hidden_size // cfg.num_attention_heads
theta = getattr(cfg, "rope_theta", None) or cfg.rope_parameters["rope_theta"]
w = dict(model.named_parameters())
get = lambda name: w[name].detach().contiguous()
embed, final = get("model.embed_tokens.weight"), get("model.norm.weight")
layers = []
for l in range(L):
    p = f"model.layers.{l}."
    layers.append((get(p + "input_layernorm.weight"),
                   torch.cat([get(p + f"self_attn.{x}_proj.weight") for x in "qkv"]), get(p + "self_attn.o_proj.weight"),
                   get(p + "post_attention_layernorm.weight"),
                   torch.cat([get(p + f"mlp.{x}_proj.weight") for x in ("gate", "up")]), get(p + "mlp.down_proj.weight")))
freq = theta ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)


def step(ids, at, keys, values, cos, sin, causal):  # ids [B, S] at positions at, at+1, …; keys, values [L][B, G, room, D]
    b, s = ids.shape
    x = F.embedding(ids, embed)
    c, sn = cos[at:at + s], sin[at:at + s]
    for (n1, qkv, o, n2, gu, down), k, v in zip(layers, keys, values):
        y = F.linear(F.rms_norm(x, (H,), n1, cfg.rms_norm_eps), qkv).view(b, s, A + 2 * G, D).transpose(1, 2)
        t, val = y[:, :A + G], y[:, A + G:]
        p, q = t[..., :D // 2], t[..., D // 2:]
        t = torch.cat((p * c - q * sn, q * c + p * sn), -1)
        k[:, :, at:at + s] = t[:, A:]
        v[:, :, at:at + s] = val
        a = F.scaled_dot_product_attention(t[:, :A], k[:, :, :at + s], v[:, :, :at + s], is_causal=causal, enable_gqa=True)
        x = x + F.linear(a.transpose(1, 2).reshape(b, s, A * D), o)
        g, u = F.linear(F.rms_norm(x, (H,), n2, cfg.rms_norm_eps), gu).chunk(2, -1)
        x = x + F.linear(F.silu(g) * u, down)
    return F.linear(F.rms_norm(x[:, -1], (H,), final, cfg.rms_norm_eps), embed).argmax(-1, keepdim=True)


compiled = None


def loop(q, run):
    b, n, tokens = q["batch"], len(q["prompt"]), q["tokens"]
    room = n + tokens
    keys = [torch.zeros(b, G, room, D) for _ in range(L)]
    values = [torch.zeros(b, G, room, D) for _ in range(L)]
    angle = torch.arange(room, dtype=torch.float64)[:, None] * freq
    cos, sin = angle.cos().float(), angle.sin().float()
    last = step(torch.tensor([q["prompt"]] * b), 0, keys, values, cos, sin, True)
    out = [last]
    start = time.perf_counter()
    for i in range(tokens - 1):
        last = run(last, n + i, keys, values, cos, sin, False)
        out.append(last)
    seconds = time.perf_counter() - start
    return seconds, torch.cat(out, 1)[0].tolist()


class FirstToken:
    def __init__(self): self.at = None
    def __call__(self, ids, scores, **_):
        if self.at is None:
            self.at = time.perf_counter()
        return torch.zeros(ids.shape[0], dtype=torch.bool)


def generate(q):
    from transformers import StoppingCriteriaList
    first = FirstToken()
    out = model.generate(torch.tensor([q["prompt"]] * q["batch"]), max_new_tokens=q["tokens"], min_new_tokens=q["tokens"], do_sample=False,
                         pad_token_id=0, attention_mask=torch.ones(q["batch"], len(q["prompt"]), dtype=torch.long), stopping_criteria=StoppingCriteriaList([first]))
    return time.perf_counter() - first.at, out[0, len(q["prompt"]):].tolist()


print(json.dumps({"torch": torch.__version__, "transformers": __import__("transformers").__version__, "threads": torch.get_num_threads(),
                  "parallel": torch.__config__.parallel_info().splitlines()[0:1], "layers": L, "context": cfg.max_position_embeddings}), flush=True)
for line in sys.stdin:
    q = json.loads(line)
    if q["how"] == "generate":
        seconds, ids = generate(q)
    else:
        run = step
        if q["how"] == "compiled":
            if compiled is None:
                compiled = torch.compile(step, dynamic=True)
            run = compiled
        seconds, ids = loop(q, run)
    print(json.dumps({"seconds": seconds, "ids": ids}), flush=True)
