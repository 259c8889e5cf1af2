package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"heddle/cuda"
)

// TilePTX is a persistent GEMM kernel as PTX text, C = A·Bᵀ in row-major bf16, whose parameters are three tensor maps (A, B, C) and M, N, K as 32-bit integers. Each block of a cluster along M
// loads TileM rows of A and its share of the TileN rows of B, 128-byte swizzled, and stores C in boxes of 64×64.
type TilePTX struct {
	Text    string
	Entry   string
	Threads int
	Cluster int
	TileM   int
	TileN   int
	TileK   int
	Stages  int
	Shared  int // dynamic shared memory

	function *cuda.Function // once loaded
}

// ReadTilePTX reads a kernel. Tile and stages are taken from tile ("128x256x64_s4"), or where it is empty from the file's name; threads, cluster and parameters from the text.
func ReadTilePTX(path, tile string) (*TilePTX, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	if tile == "" {
		tile = filepath.Base(path)
	}
	return parseTilePTX(string(b), tile)
}

func parseTilePTX(text, tile string) (*TilePTX, error) {
	entryPattern := regexp.MustCompile(`\.visible\s+\.entry\s+(\w+)\s*\(([^)]*)\)`)
	threadPattern := regexp.MustCompile(`\.(?:maxntid|reqntid)\s+(\d+)`)
	clusterPattern := regexp.MustCompile(`\.reqnctapercluster\s+(\d+)`)
	tilePattern := regexp.MustCompile(`(\d+)x(\d+)x(\d+)(?:_c(\d+))?_s(\d+)`)
	k := &TilePTX{Text: text, Cluster: 1}
	entry := entryPattern.FindStringSubmatch(text)
	if entry == nil {
		return nil, fmt.Errorf("bench: no .visible .entry in the PTX")
	}
	k.Entry = entry[1]
	var shape []string
	for p := range strings.SplitSeq(entry[2], ",") {
		switch {
		case strings.Contains(p, "[128]"):
			shape = append(shape, "map")
		case strings.Contains(p, ".u32"):
			shape = append(shape, "u32")
		default:
			shape = append(shape, strings.TrimSpace(p))
		}
	}
	if got, want := strings.Join(shape, " "), "map map map u32 u32 u32"; got != want {
		return nil, fmt.Errorf("bench: kernel %s has parameters %q, want %q (maps of A, B, C; M, N, K)", k.Entry, got, want)
	}
	t := tilePattern.FindStringSubmatch(tile)
	if t == nil {
		return nil, fmt.Errorf("bench: %q names no tile; hint: --tile 128x256x64_s4", tile)
	}
	for i, v := range []*int{&k.TileM, &k.TileN, &k.TileK, nil, &k.Stages} {
		if v != nil {
			*v, _ = strconv.Atoi(t[i+1]) // digits by the pattern
		}
	}
	if m := threadPattern.FindStringSubmatch(text); m != nil {
		k.Threads, _ = strconv.Atoi(m[1])
	}
	if m := clusterPattern.FindStringSubmatch(text); m != nil {
		k.Cluster, _ = strconv.Atoi(m[1])
	}
	return k, k.complete()
}

// complete checks the numbers and works out shared memory: the ring, two 64×64 store buffers for each consumer warpgroup of 64 rows, and a full and an empty barrier a stage.
func (k *TilePTX) complete() error {
	if k.Threads < 128 || k.Threads > 1024 || k.Cluster < 1 || k.Cluster > 16 || k.TileM < 64 || k.TileM > 256 || k.TileM%64 != 0 || k.TileN < 64 || k.TileN > 256 || k.TileN%k.Cluster != 0 || k.TileK != 64 ||
		k.Stages < 1 || k.Stages > 16 {
		return fmt.Errorf("bench: kernel %s: tile %dx%dx%d, %d stages, cluster %d, %d threads; want M and N of 64..256, K 64, and a thread count in the PTX", k.Entry, k.TileM, k.TileN, k.TileK, k.Stages, k.Cluster, k.Threads)
	}
	ring := k.Stages * (k.TileM + k.TileN) * k.TileK * 2
	k.Shared = ring + k.TileM/64*2*64*64*2 + k.Stages*2*8
	return nil
}

// Legal tells whether the kernel, which has no tails, can do M×N×K.
func (k *TilePTX) Legal(m, n, kk int) error {
	if rows := k.TileM * k.Cluster; m%rows != 0 || n%k.TileN != 0 || kk%k.TileK != 0 || m <= 0 || n <= 0 || kk <= 0 {
		return fmt.Errorf("bench: kernel %s cannot do %dx%dx%d; hint: M a multiple of %d, N of %d, K of %d", k.Entry, m, n, kk, rows, k.TileN, k.TileK)
	}
	return nil
}

func (k *TilePTX) name() string { return "ptx " + k.Entry }

func (k *TilePTX) load(dev *cuda.Device, cache *cuda.Cache) (Kernel, error) {
	m, err := dev.Compile(k.Text, cache)
	if err != nil {
		return Kernel{}, err
	}
	if k.function, err = m.Function(k.Entry); err != nil {
		return Kernel{}, err
	}
	return Kernel{FunctionFacts: k.function.FunctionFacts}, k.function.AllowShared(k.Shared)
}

// prepare lays out C = A·Bᵀ: one cluster for each that the device holds, or for each tile where there are fewer.
func (k *TilePTX) prepare(dev *cuda.Device, p Product) (*cuda.Prepared, error) {
	if err := k.Legal(p.M, p.N, p.K); err != nil {
		return nil, err
	}
	args := new(cuda.Args)
	for _, t := range []struct {
		at         cuda.Ptr
		rows, cols int
		box        int
	}{{p.A, p.M, p.K, k.TileM}, {p.B, p.N, p.K, k.TileN / k.Cluster}, {p.C, p.M, p.N, 64}} {
		m, err := dev.EncodeTiled(cuda.Tiled{Element: cuda.BF16, Addr: t.at, Dims: []uint64{uint64(t.cols), uint64(t.rows)}, Strides: []uint64{uint64(t.cols) * 2},
			Box: []uint32{64, uint32(t.box)}, Swizzle: 128, Promotion: 128})
		if err != nil {
			return nil, err
		}
		args.Map(m)
	}
	args.U32(uint32(p.M))
	args.U32(uint32(p.N))
	args.U32(uint32(p.K))
	clusters := min(dev.SMs/k.Cluster, p.M/(k.TileM*k.Cluster)*(p.N/k.TileN))
	return k.function.Prepare(cuda.Launch{Grid: [3]uint32{uint32(clusters * k.Cluster), 1, 1}, Block: [3]uint32{uint32(k.Threads), 1, 1}, Shared: k.Shared}, args)
}
