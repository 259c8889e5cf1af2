package cublas

import (
	"fmt"
	"runtime"
	"unsafe"

	"heddle/cuda"
	"heddle/internal/dl"
)

// Problem is C = A·Bᵀ in row-major bf16, or from fp8, with f32 accumulation: A [M, K], or [K, M] where it is transposed, B [N, K], or [K, N], C [M, N].
//
// cuBLAS is column-major: it sees Aᵀ, Bᵀ and Cᵀ, and computes Cᵀ = B·Aᵀ: its first operand is our B, transposed where ours is not, its second our A, transposed where ours is.
type Problem struct {
	M, N, K        int
	A, B, C        cuda.Ptr
	TransA, TransB bool
	Type           Type // of A and B; neither is transposed in fp8
	Fast           bool // fp8: without promotion of partial sums to float32
}

// Type is cudaDataType; zero is bf16.
type Type uint32

const (
	E4M3 Type = 28 // CUDA_R_8F_E4M3
	E5M2 Type = 29 // CUDA_R_8F_E5M2
)

func (t Type) code() uintptr {
	if t == 0 {
		return typeBF16
	}
	return uintptr(t)
}

// operand is one of cuBLAS's: how it is stored in column-major order, and what happens to it.
type operand struct{ op, rows, cols int }

func (p Problem) first() operand {
	if p.TransB {
		return operand{opN, p.N, p.K}
	}
	return operand{opT, p.K, p.N}
}

func (p Problem) second() operand {
	if p.TransA {
		return operand{opT, p.M, p.K}
	}
	return operand{opN, p.K, p.M}
}

const (
	typeBF16     = 14 // CUDA_R_16BF
	typeF32      = 0  // CUDA_R_32F
	computeF32   = 68 // CUBLAS_COMPUTE_32F
	opN, opT     = 0, 1
	defaultAlgo  = ^uintptr(0) // CUBLAS_GEMM_DEFAULT, -1
	algoBytes    = 64
	heuristicLen = 96 // sizeof(cublasLtMatmulHeuristicResult_t)
)

// Gemm is a prepared product.
type Gemm struct {
	Name string
	call *dl.Prepared
	keep []*[2]float32
	algo *[algoBytes]byte
}

// Launch queues the product on the handle's stream.
func (g *Gemm) Launch() error {
	code := g.call.Call()
	runtime.KeepAlive(g)
	return status(g.Name, code)
}

// GemmEx prepares cublasGemmEx with its default heuristic.
func (h *Handle) GemmEx(p Problem) *Gemm {
	alpha, beta := uintptr(unsafe.Pointer(&h.scalars[0])), uintptr(unsafe.Pointer(&h.scalars[1]))
	m, n, k := uintptr(p.M), uintptr(p.N), uintptr(p.K)
	x, y := p.first(), p.second()
	return &Gemm{Name: "cublasGemmEx", keep: []*[2]float32{h.scalars}, call: dl.Prepare(h.lib.gemmEx, h.blas, uintptr(x.op), uintptr(y.op), n, m, k,
		alpha, uintptr(p.B), typeBF16, uintptr(x.rows), uintptr(p.A), typeBF16, uintptr(y.rows), beta, uintptr(p.C), typeBF16, n, computeF32, defaultAlgo)}
}

// Plan is cuBLASLt's view of one shape: descriptors and the algorithms that its heuristic proposes, best first.
type Plan struct {
	h                   *Handle
	desc, a, b, c, pref uintptr
	Algorithms          int
	results             []byte // heuristicLen bytes each, the algorithm first
}

// Plan asks cuBLASLt for up to most algorithms for the shape of p.
func (h *Handle) Plan(p Problem, most int) (*Plan, error) {
	l, t := h.lib, &Plan{h: h, results: make([]byte, most*heuristicLen)}
	if err := check("cublasLtMatmulDescCreate", l.descCreate, uintptr(unsafe.Pointer(&t.desc)), computeF32, typeF32); err != nil {
		return nil, err
	}
	const attributeTransA, attributeTransB, preferWorkspace = 3, 4, 1
	workspace, first, second := uint64(WorkspaceBytes), p.first(), p.second()
	for attribute, op := range map[uintptr]int32{attributeTransA: int32(first.op), attributeTransB: int32(second.op)} {
		if err := check("cublasLtMatmulDescSetAttribute", l.descSet, t.desc, attribute, uintptr(unsafe.Pointer(&op)), 4); err != nil {
			return nil, err
		}
	}
	if p.Fast {
		const attributeFastAccumulation = 25 // CUBLASLT_MATMUL_DESC_FAST_ACCUM
		on := int8(1)
		if err := check("cublasLtMatmulDescSetAttribute", l.descSet, t.desc, attributeFastAccumulation, uintptr(unsafe.Pointer(&on)), 1); err != nil {
			return nil, err
		}
	}
	for _, x := range []struct {
		layout     *uintptr
		kind       uintptr
		rows, cols int // the rows are the leading dimension
	}{{&t.a, p.Type.code(), first.rows, first.cols}, {&t.b, p.Type.code(), second.rows, second.cols}, {&t.c, typeBF16, p.N, p.M}} {
		if err := check("cublasLtMatrixLayoutCreate", l.layoutCreate, uintptr(unsafe.Pointer(x.layout)), x.kind, uintptr(x.rows), uintptr(x.cols), uintptr(x.rows)); err != nil {
			return nil, err
		}
	}
	if err := check("cublasLtMatmulPreferenceCreate", l.prefMake, uintptr(unsafe.Pointer(&t.pref))); err != nil {
		return nil, err
	}
	if err := check("cublasLtMatmulPreferenceSetAttribute", l.prefSet, t.pref, preferWorkspace, uintptr(unsafe.Pointer(&workspace)), 8); err != nil {
		return nil, err
	}
	var found int32
	if err := check("cublasLtMatmulAlgoGetHeuristic", l.heuristic, h.lt, t.desc, t.a, t.b, t.c, t.c, t.pref, uintptr(most), uintptr(unsafe.Pointer(&t.results[0])), uintptr(unsafe.Pointer(&found))); err != nil {
		return nil, err
	}
	t.Algorithms = int(found)
	return t, nil
}

// Gemm prepares cublasLtMatmul with algorithm i on p, which has the plan's shape.
func (t *Plan) Gemm(p Problem, i int) *Gemm {
	h := t.h
	g := &Gemm{Name: fmt.Sprintf("cublasLtMatmul algorithm %d", i), keep: []*[2]float32{h.scalars}, algo: new([algoBytes]byte)}
	copy(g.algo[:], t.results[i*heuristicLen:])
	alpha, beta := uintptr(unsafe.Pointer(&h.scalars[0])), uintptr(unsafe.Pointer(&h.scalars[1]))
	g.call = dl.Prepare(h.lib.matmul, h.lt, t.desc, alpha, uintptr(p.B), t.a, uintptr(p.A), t.b, beta, uintptr(p.C), t.c, uintptr(p.C), t.c,
		uintptr(unsafe.Pointer(g.algo)), uintptr(h.workspace), WorkspaceBytes, h.stream)
	return g
}

// Close gives the descriptors back.
func (t *Plan) Close() error {
	for _, x := range []uintptr{t.a, t.b, t.c} {
		if err := check("cublasLtMatrixLayoutDestroy", t.h.lib.layoutDestroy, x); err != nil {
			return err
		}
	}
	return check("cublasLtMatmulDescDestroy", t.h.lib.descDestroy, t.desc)
}
