# The chain zero, zero, gemm, gemm in PyTorch: eager, and as one CUDA graph of many chains. One JSON object a line.
# Arguments: rounds, chains, sizes...
import json, sys, time
import torch

def spread(x):
    x = sorted(x)
    at = lambda q: x[int(q * (len(x) - 1))]
    return {"median": at(0.5), "p10": at(0.1), "p90": at(0.9), "count": len(x)}

rounds, most, sizes = int(sys.argv[1]), int(sys.argv[2]), [int(n) for n in sys.argv[3:]]
spin = 2_000_000_000  # cycles a second, about
stream = torch.cuda.Stream()
torch.cuda.set_stream(stream)
for n in sizes:
    chains = max(4, min(most, int(25e3 / (8 + 4 * n**3 / 600e6))))
    sets = max(2, min(16, chains, (4 << 30) // (10 * n * n)))
    m = [[torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(5)] for _ in range(sets)]

    def chain(i):
        a, b, c, d, e = m[i % sets]
        c.zero_()
        e.zero_()
        torch.mm(a, b.t(), out=c)
        torch.mm(c, d.t(), out=e)

    def eager():
        for i in range(chains):
            chain(i)

    for _ in range(3):
        eager()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        eager()
    graph.replay()
    torch.cuda.synchronize()

    def timed(run, hold):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        if hold:
            torch.cuda._sleep(int(spin * (chains * 60e-6 + 1e-3)))
        begin.record()
        t = time.perf_counter()
        run()
        host = (time.perf_counter() - t) * 1e6
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3 / chains, host

    for name, run, calls in (("torch eager", eager, 4 * chains), ("torch graph", graph.replay, 1)):
        live, queued, host = [], [], []
        for r in range(rounds + 1):
            x, _ = timed(run, False)
            y, h = timed(run, True)
            if r:
                live.append(x), queued.append(y), host.append(h / calls)
        print(json.dumps({"n": n, "version": torch.__version__, "name": name, "live_us": spread(live), "queued_us": spread(queued), "host_us": spread(host)}), flush=True)
    del graph, m
