"""Measures exported grouped products beside torch's grouped_mm: one process, one stream, the same tensors, in turn.

    python3 bench/grouped.py DIR OUT.json [ROUNDS]

DIR is what heddle gemm grouped wrote. Group sizes vary by 30 % around the mean, in multiples of 8, which torch wants. Every result is compared with torch's.
"""
import ctypes, glob, json, os, statistics, sys, time
import torch

cuda = ctypes.CDLL("libcuda.so.1")


def ok(code, what):
    if code:
        raise RuntimeError(f"{what}: CUDA error {code}")


class Launch:
    """An exported launch, its buffers bound to tensors."""

    def __init__(self, path, tensors):
        x = json.load(open(path))
        self.name, self.about = x["name"], x["about"]
        text = open(os.path.join(os.path.dirname(path), x["ptx"]), "rb").read() + b"\0"
        module, self.f = ctypes.c_void_p(), ctypes.c_void_p()
        ok(cuda.cuModuleLoadData(ctypes.byref(module), text), "cuModuleLoadData")
        ok(cuda.cuModuleGetFunction(ctypes.byref(self.f), module, x["entry"].encode()), "cuModuleGetFunction")
        ok(cuda.cuFuncSetAttribute(self.f, 8, x["shared"]), "cuFuncSetAttribute")
        self.values = [self.value(a, tensors) for a in x["args"]]
        self.params = (ctypes.c_void_p * len(self.values))(*[ctypes.addressof(v) for v in self.values])
        self.shape = (x["grid"], x["threads"], x["shared"])

    def value(self, a, tensors):
        at = tensors[a["buffer"]].data_ptr() + a.get("offset", 0) if a.get("buffer") else 0
        if a["kind"] == "u32":
            return ctypes.c_uint32(a.get("value", 0))
        if a["kind"] == "f32":
            return ctypes.c_float(a.get("float", 0))
        if a["kind"] in ("u64", "ptr"):
            return ctypes.c_uint64(at or a.get("value", 0))
        n = len(a["dims"])
        raw = ctypes.create_string_buffer(256)
        begin = -ctypes.addressof(raw) % 64
        m = (ctypes.c_char * 128).from_buffer(raw, begin)
        ok(cuda.cuTensorMapEncodeTiled(ctypes.byref(m), a.get("type", 0), n, ctypes.c_void_p(at), (ctypes.c_uint64 * n)(*a["dims"]),
           (ctypes.c_uint64 * (n - 1))(*a["strides"]), (ctypes.c_uint32 * n)(*a["box"]), (ctypes.c_uint32 * n)(*[1] * n), 0, a.get("swizzle", 0), a.get("l2", 0), 0), "cuTensorMapEncodeTiled")
        return m

    def __call__(self):
        grid, threads, shared = self.shape
        ok(cuda.cuLaunchKernel(self.f, grid, 1, 1, threads, 1, 1, shared, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), self.params, None), "cuLaunchKernel")


def sizes(rows, groups):
    """Random sizes of so many groups, multiples of 8 that sum to rows."""
    g = torch.Generator().manual_seed(1)
    w = 0.7 + 0.6 * torch.rand(groups, generator=g)
    ends = (w.cumsum(0) / w.sum() * rows / 8).round().int() * 8
    ends[-1] = rows
    return ends


def tensors(about):
    rows, g, n, k = about["rows"], about["groups"], about["n"], about["k"]
    torch.manual_seed(0)
    x, w, y = (torch.randn(s, device="cuda", dtype=torch.bfloat16) for s in ((rows, k), (g, n, k), (rows, n)))
    ends = sizes(rows, g).cuda()
    offsets = torch.cat([torch.zeros(1, dtype=torch.int32, device="cuda"), ends])
    mode = about["mode"]
    if mode == "forward":
        a, b, peer = x, w, lambda: torch._grouped_mm(x, w.transpose(1, 2), offs=ends)
    elif mode == "dgrad":
        a, b, peer = y, w, lambda: torch._grouped_mm(y, w, offs=ends)
    else:
        a, b, peer = y, x, lambda: torch._grouped_mm(y.t(), x, offs=ends)
    want = peer()
    return {"A": a, "B": b, "D": torch.full_like(want, float("nan")), "offsets": offsets}, want, peer


def timed(f):
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(2000000)  # a millisecond: the launch is queued before it runs, however slow the host is after its rest
    a.record()
    f()
    b.record()
    b.synchronize()
    return a.elapsed_time(b) * 1e3


def main(folder, out, rounds):
    todo = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        about = json.load(open(path))["about"]
        todo.setdefault((about["shape"], about["mode"]), []).append(path)
    rows = []
    for (shape, mode), paths in todo.items():
        about = json.load(open(paths[0]))["about"]
        t, want, peer = tensors(about)
        flop = 2 * about["rows"] * about["n"] * about["k"]
        sides = [("torch._grouped_mm", peer)]
        for path in paths:
            launch = Launch(path, t)
            t["D"].fill_(float("nan"))
            launch()
            torch.cuda.synchronize()
            error = ((t["D"].float() - want.float()).norm() / want.float().norm()).item()
            if not error < 3e-3:
                print(f"{shape} {mode} {launch.about['config']}: relative norm {error}", flush=True)
                rows.append({"shape": shape, "mode": mode, "side": launch.about["config"], "failure": f"relative norm {error}"})
                continue
            sides.append((launch.about["config"], launch))
        samples = {name: [] for name, _ in sides}
        for r in range(rounds):
            for i in range(len(sides)):
                name, f = sides[(i + r) % len(sides)]
                time.sleep(0.01)
                samples[name].append(timed(f))
        base = statistics.median(samples["torch._grouped_mm"])
        for name, us in sorted(samples.items(), key=lambda s: statistics.median(s[1])):
            m = statistics.median(us)
            rows.append({"shape": shape, "mode": mode, "rows": about["rows"], "groups": about["groups"], "n": about["n"], "k": about["k"], "side": name, "us": us})
            print(f"{shape:24s} {mode:8s} {flop / m / 1e6:7.1f} TFLOP/s  {base / m:.3f} of torch  {name}", flush=True)
    json.dump({"command": "bench/grouped.py", "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, open(out, "w"), indent=1)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 15)
