// Package arch is the table of rooms: what each package is for and what it may import. A test holds the code to it and
// generates the table in ARCHITECTURE.md from it (go test ./internal/arch -update).
package arch

import (
	"fmt"
	"strings"
)

// Room is one package, or one with all below it where Path ends in /.
type Room struct {
	Path    string
	For     string
	Imports string // rooms it may import directly, separated by spaces; what those import is allowed too
	Modules string // modules from outside that it may import directly
}

// Rooms lists every package of the module, those that others build on first.
func Rooms() []Room {
	return []Room{
		{"num", "number formats and their rounding, Philox, ulps", "", ""},
		{"trace", "events of a timeline, recorder, file format", "", "google.golang.org/protobuf"},
		{"trace/", "readers of foreign timelines, bubbles and their causes", "trace trace/sqlite", "modernc.org/sqlite github.com/klauspost/compress google.golang.org/protobuf"},
		{"tile", "layout algebra, swizzles, banks, tile orders, depth", "", ""},
		{"tile/", "pictures and test vectors of tile", "tile tile/draw tile/vector", ""},
		{"mesh", "axes, ranks, places and the rule that joins them", "", ""},
		{"ptx", "Hopper PTX as typed Go: builder, verifier, printer, Runner", "num tile ptx/internal/isa", ""},
		{"ptx/internal/", "the instruction table, and what generates code from it and for the emulator", "ptx/internal/isa", ""},
		{"ptx/conform", "random programs for card and emulator", "ptx ptx/emulate tile num", ""},
		{"ptx/emulate", "runs such programs on the CPU and finds their faults", "ptx tile num", ""},
		{"ptx/conform", "small programs that pin instructions down, for any Runner", "ptx num", ""},
		{"kernel", "what a kernel is, and parts that kernels share", "tile ptx num", ""},
		{"kernel/signature", "what a kernel accepts; handles that check and pack a launch", "num ptx", ""},
		{"kernel/all", "the explicit list of kernels", "kernel kernel/gemm kernel/row num", ""},
		{"kernel/", "kernels, by the shape of their loops", "kernel kernel/signature ptx num tile", ""},
		{"kernel/all", "the explicit list of kernels", "kernel kernel/gemm kernel/row kernel/elem kernel/attention num", ""},
		{"kernel/ladder", "from the naive product to package gemm, a rung at a time", "kernel kernel/gemm ptx num", ""},
		{"kernel/", "kernels, by the shape of their loops", "kernel ptx num tile", ""},
		{"internal/dl", "opens shared libraries and calls into them without cgo", "", "github.com/ebitengine/purego"},
		{"cuda", "NVIDIA's driver from Go; runs ptx programs", "ptx internal/dl", ""},
		{"cuda/cupti", "records kernels and driver calls as events of a timeline", "trace internal/dl", ""},
		{"cuda/timeline", "records a rank's use of its device, by CUPTI or by events", "cuda cuda/cupti trace internal/dl", ""},
		{"cuda/", "NVML, cuBLAS, NCCL through dlopen", "cuda internal/dl", ""},
		{"tensor", "a tensor's handle: shape, type, places, memory", "mesh", ""},
		{"compute", "Device: checks, arena and call log over a leaf", "tensor", ""},
		{"compute/cpu", "the CPU leaf", "compute compute/cpu/blas compute/cpu/vec compute/cpu/attention", ""},
		{"sample/text", "text in, text out: opens runs, folders and GGUF files for generation", "sample sample/cpu checkpoint checkpoint/pretrained token data model/hf compute/cpu/blas", ""},
		{"compute/cpu/", "its inner loops: matrix products, rows, attention", "compute/cpu/blas compute/cpu/vec num", "golang.org/x/sys"},
		{"compute/dry", "the leaf that only counts", "compute", ""},
		{"compute/gpu", "the GPU leaf: kernels over one arena, ranks that share a card", "compute num ptx cuda cuda/timeline kernel kernel/attention kernel/elem kernel/gemm kernel/row", ""},
		{"comm", "Group: checks, packs, meters and logs collectives over a leaf", "compute", ""},
		{"comm/", "leaves: goroutine ranks (also under a seeded scheduler), dry", "comm", ""},
		{"param", "the parameter table", "tensor num", ""},
		{"parallel", "seams (tp, megatron, ulysses) and shards (fsdp), settle", "compute comm param", ""},
		{"model/hf", "Hugging Face's config.json and names", "internal/strictjson", ""},
		{"model", "blocks, stack, families", "compute parallel model/hf", ""},
		{"optim", "AdamW on shards, clipping, schedule", "param compute comm parallel", ""},
		{"token", "tokenizers", "internal/atomicfile internal/strictjson", "golang.org/x/text"},
		{"data", "corpora, records, chats, packing, held-out text", "token internal/atomicfile internal/strictjson", "github.com/parquet-go/parquet-go github.com/klauspost/compress github.com/nikolalohinski/gonja"},
		{"checkpoint", "training checkpoints, parameters from files", "param checkpoint/safetensors internal/atomicfile internal/strictjson", ""},
		{"checkpoint/safetensors", "safetensors files, single and sharded", "num internal/atomicfile internal/strictjson", ""},
		{"checkpoint/gguf", "GGUF files, dequantised", "num model/hf", ""},
		{"checkpoint/pretrained", "other people's models, folder or file, as one thing", "param model/hf checkpoint/safetensors checkpoint/gguf internal/atomicfile", ""},
		{"sample", "continues text: batches, hooks, what every token was worth", "model num compute/cpu/vec", ""},
		{"sample/cpu", "generation's forward pass on the CPU: packed weights, cached keys and values", "sample model model/hf compute compute/cpu/blas compute/cpu/vec compute/cpu/attention", ""},
		{"report", "plots and pages from numbers", "trace trace/analyze", "gonum.org/v1/plot"},
		{"train", "ranks, steps, the loop, the run folder", "model optim data checkpoint checkpoint/pretrained sample report comm/local comm/dry compute/cpu compute/dry trace internal/atomicfile", ""},
		{"rl/tasks", "problems that a program can check, their verifiers", "", "golang.org/x/sys"},
		{"rl/grpo", "the policy gradient's loss, a function of log-probabilities", "", ""},
		{"rl", "rollouts, reinforcement, synchronous and not", "train sample sample/cpu sample/text rl/tasks rl/grpo checkpoint checkpoint/pretrained", ""},
		{"rl/study", "does entropy betray a rollout's fate early enough to act", "rl rl/tasks report", ""},
		{"parity/formula", "closed forms of bytes and memory", "", ""},
		{"parity", "compares schemes with the truth and with peers", "train parity/formula num model/hf checkpoint/safetensors checkpoint/pretrained compute/dry comm/dry", ""},
		{"bench", "measuring protocol on a GPU, beside cuBLAS", "cuda cuda/cublas cuda/nvml kernel kernel/gemm kernel/all ptx tile", ""},
		{"bench/launch", "the launch lab: one chain under every way of launching it", "bench cuda cuda/timeline kernel/gemm kernel/signature ptx num trace internal/atomicfile", ""},
		{"bench/", "benchmarks beside peers, and their results", "parity sample sample/cpu sample/text compute/cpu/blas compute/cpu/vec compute/cpu/attention trace trace/analyze trace/sqlite token ptx ptx/emulate kernel/all kernel/gemm", "github.com/ebitengine/purego modernc.org/sqlite"},
		{"parity", "compares schemes with the truth and with peers", "train parity/formula num model/hf checkpoint/safetensors compute/dry comm/dry", ""},
		{"bench", "measuring protocol on a GPU, beside cuBLAS", "cuda cuda/cublas cuda/nvml kernel kernel/gemm kernel/ladder kernel/all ptx tile num", ""},
		{"bench/", "benchmarks beside peers, and their results", "compute/cpu/blas compute/cpu/vec compute/cpu/attention trace trace/analyze trace/sqlite token ptx ptx/emulate kernel/all kernel/gemm", "github.com/ebitengine/purego modernc.org/sqlite"},
		{"internal/cli", "printing, flags and configuration shared by the verbs", "", "go.yaml.in/yaml/v3"},
		{"internal/atomicfile", "files that appear whole or not at all", "", ""},
		{"internal/atomicfile/", "its faults, for tests", "internal/atomicfile", ""},
		{"internal/strictjson", "JSON read without leniency", "", ""},
		{"internal/mangle", "broken inputs for tests of parsers", "", ""},
		{"internal/golden", "peers' answers for tests", "checkpoint/safetensors", ""},
		{"internal/arch", "this table", "", ""},
		{"cmd/heddle", "flags, one call, print", "*", "github.com/alecthomas/kong golang.org/x/sys"},
	}
}

// Find is the room of a package: its own row, else the row of the longest folder above it.
func Find(rooms []Room, pkg string) (Room, bool) {
	var best Room
	for _, r := range rooms {
		if r.Path == pkg {
			return r, true
		}
		if strings.HasSuffix(r.Path, "/") && strings.HasPrefix(pkg, r.Path) && len(r.Path) > len(best.Path) {
			best = r
		}
	}
	return best, best.Path != ""
}

// Table is the rooms as a Markdown table.
func Table(rooms []Room) string {
	var b strings.Builder
	b.WriteString("| room | what for | may import | modules |\n|---|---|---|---|\n")
	for _, r := range rooms {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Path, r.For, r.Imports, r.Modules)
	}
	return b.String()
}
