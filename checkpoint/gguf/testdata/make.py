# Makes blocks.gguf and blocks.safetensors: random blocks of every type, and what the gguf package (0.17 or later) dequantises them to.
# pip install gguf safetensors; python make.py [SmolLM2.gguf: prints the hash of its dequantised tensors that the test expects]
import hashlib
import sys

import numpy as np
from gguf import GGMLQuantizationType as T, GGUFReader, GGUFWriter
from gguf.quants import dequantize
from safetensors.numpy import save_file

rng = np.random.default_rng(1)
halves = {T.Q4_0: [0], T.Q4_1: [0, 2], T.Q8_0: [0], T.Q4_K: [0, 2], T.Q6_K: [208]}  # where a block keeps its float16 numbers
sizes = {T.F32: (1, 4), T.F16: (1, 2), T.BF16: (1, 2), T.Q4_0: (32, 18), T.Q4_1: (32, 20), T.Q8_0: (32, 34), T.Q4_K: (256, 144), T.Q6_K: (256, 210)}

w = GGUFWriter("blocks.gguf", "test")
w.add_uint8("a.u8", 200)
w.add_int8("a.i8", -100)
w.add_uint16("a.u16", 60000)
w.add_int16("a.i16", -30000)
w.add_uint32("a.u32", 4000000000)
w.add_int32("a.i32", -2000000000)
w.add_uint64("a.u64", 1 << 62)
w.add_int64("a.i64", -(1 << 62))
w.add_float32("a.f32", 0.5)
w.add_float64("a.f64", 0.1)
w.add_bool("a.bool", True)
w.add_string("a.text", "naïve ☃")
w.add_array("a.texts", ["", "x", "ÿ"])
w.add_array("a.ints", [1, -2, 3])
w.add_array("a.floats", [0.5, -1.5])
want = {}
for t, (elements, size) in sizes.items():
    rows, per_row = 3, 512 // elements
    raw = rng.integers(0, 256, (rows, per_row, size), dtype=np.uint8)
    for at in halves.get(t, []):
        raw[:, :, at : at + 2] = rng.normal(size=(rows, per_row)).astype(np.float16).view(np.uint8).reshape(rows, per_row, 2)
    if elements == 1:
        v = rng.normal(size=(rows, per_row)).astype(np.float32)
        raw = {T.F32: v, T.F16: v.astype(np.float16), T.BF16: (v.view(np.uint32) >> 16).astype(np.uint16)}[t]
    raw = np.ascontiguousarray(raw).view(np.uint8).reshape(rows, per_row * size)
    w.add_tensor(t.name, raw, raw_dtype=t)
    want[t.name] = dequantize(raw, t).astype(np.float32).reshape(rows, 512)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
save_file(want, "blocks.safetensors")

if len(sys.argv) > 1:
    h = hashlib.sha256()
    for t in sorted(GGUFReader(sys.argv[1]).tensors, key=lambda t: t.name):
        h.update(np.ascontiguousarray(dequantize(t.data, t.tensor_type).astype("<f4")).tobytes())
    print(h.hexdigest())
