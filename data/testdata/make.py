# Writes the Parquet files and the rendered chats of this folder with the peers that users have: pyarrow and jinja2, the latter set up as transformers does.
import json
import pyarrow as pa, pyarrow.parquet as pq
from jinja2.sandbox import ImmutableSandboxedEnvironment

rows = [f"row {i}: " + "text " * (i % 7) + "世界" for i in range(100)] 
pq.write_table(pa.table({"id": list(range(100)), "text": rows}), "text.parquet", compression="zstd", row_group_size=30)
pairs = pa.table({"prompt": [f"{i} + {i} =" for i in range(20)], "completion": [f" {2*i}" if i != 3 else None for i in range(20)]})
pq.write_table(pairs, "pairs.parquet", compression="snappy", use_dictionary=False, data_page_version="2.0")
chats = [[{"role": "user", "content": f"say {i}"}, {"role": "assistant", "content": str(i)}] * (i % 3) for i in range(10)]
pq.write_table(pa.table({"messages": chats}), "chat.parquet", compression="gzip")

env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
env.filters["tojson"] = lambda x, **k: json.dumps(x, ensure_ascii=False)
def refuse(message): raise ValueError(message)
env.globals["raise_exception"] = refuse
out = []
for case in json.load(open("chats.json")):
    t = env.from_string(open(case["template"]).read())
    out.append(t.render(messages=case["messages"], tools=case.get("tools"), bos_token="<s>", eos_token="</s>", add_generation_prompt=case["answer"]))
json.dump(out, open("rendered.json", "w"), ensure_ascii=False, indent=1)
