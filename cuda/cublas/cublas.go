// Package cublas calls NVIDIA's cuBLAS and cuBLASLt, opened at run time, as the peer that our GEMMs are measured against. heddle itself needs neither.
//
// Find lists where the libraries may lie, Open opens them; Handle.GemmEx prepares the classic call, Handle.Algorithms the best heuristics of cuBLASLt.
package cublas

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"heddle/cuda"
	"heddle/internal/dl"
)

// WorkspaceBytes is what both interfaces are given: cuBLAS's own recommendation for Hopper.
const WorkspaceBytes = 32 << 20

// Library is cuBLAS and cuBLASLt, opened.
type Library struct {
	Path                                                   string
	create, setStream, setWorkspace, gemmEx, getVersion    dl.Func
	ltCreate, descCreate, descSet, layoutCreate, prefMake  dl.Func
	prefSet, heuristic, matmul, layoutDestroy, descDestroy dl.Func
}

// Find lists candidate folders, best first: hint (a folder or a libcublas file), the loader's own search (""), the packages of a Python given by the path of its executable, and usual toolkit folders.
func Find(hint, python string) []string {
	if hint != "" {
		if st, err := os.Stat(hint); err == nil && !st.IsDir() {
			hint = filepath.Dir(hint)
		}
		return []string{hint}
	}
	dirs := []string{""}
	patterns := []string{"/usr/local/cuda/lib64", "/usr/local/cuda*/lib64", "/usr/lib/python3*/site-packages/nvidia/*/lib", "/usr/local/lib/python3*/*-packages/nvidia/*/lib"}
	// An environment's python is often a link to a link to the system's: each step may be the one with packages.
	for hops := 0; python != "" && hops < 8; hops++ {
		patterns = append(patterns, filepath.Join(filepath.Dir(filepath.Dir(python)), "lib/python3*/site-packages/nvidia/*/lib"))
		next, err := os.Readlink(python)
		if err != nil {
			break
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(python), next)
		}
		python = next
	}
	for _, p := range patterns {
		found, _ := filepath.Glob(p) // these patterns are well formed
		dirs = append(dirs, found...)
	}
	return dirs
}

// Open opens the libraries from the first folder that has both. cuBLASLt comes first: cuBLAS links against it by name and finds it already loaded.
func Open(dirs []string) (*Library, error) {
	errs := []error{errors.New("cublas: no cuBLAS found; hint: pass --cublas with the folder of libcublas.so.13 (a Python package nvidia-cublas has it)")}
	for _, dir := range dirs {
		for _, version := range []string{".so.13", ".so.12", ".so"} {
			lt, err := dl.Open(filepath.Join(dir, "libcublasLt"+version))
			if err != nil {
				errs = append(errs, err)
				continue
			}
			path := filepath.Join(dir, "libcublas"+version)
			blas, err := dl.Open(path)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			return (&Library{Path: path}).find(blas, lt)
		}
	}
	return nil, errors.Join(errs...)
}

func (l *Library) find(blas, lt *dl.Library) (*Library, error) {
	for _, s := range []struct {
		from *dl.Library
		name string
		f    *dl.Func
	}{
		{blas, "cublasCreate_v2", &l.create}, {blas, "cublasSetStream_v2", &l.setStream}, {blas, "cublasSetWorkspace_v2", &l.setWorkspace},
		{blas, "cublasGemmEx", &l.gemmEx}, {blas, "cublasGetVersion_v2", &l.getVersion},
		{lt, "cublasLtCreate", &l.ltCreate}, {lt, "cublasLtMatmulDescCreate", &l.descCreate}, {lt, "cublasLtMatmulDescSetAttribute", &l.descSet},
		{lt, "cublasLtMatrixLayoutCreate", &l.layoutCreate}, {lt, "cublasLtMatmulPreferenceCreate", &l.prefMake},
		{lt, "cublasLtMatmulPreferenceSetAttribute", &l.prefSet}, {lt, "cublasLtMatmulAlgoGetHeuristic", &l.heuristic},
		{lt, "cublasLtMatmul", &l.matmul}, {lt, "cublasLtMatrixLayoutDestroy", &l.layoutDestroy}, {lt, "cublasLtMatmulDescDestroy", &l.descDestroy},
	} {
		var err error
		if *s.f, err = s.from.Func(s.name); err != nil {
			return nil, fmt.Errorf("cublas: %w", err)
		}
	}
	return l, nil
}

// check turns a cublasStatus_t into an error.
//
//go:uintptrescapes
func check(name string, f dl.Func, words ...uintptr) error { return status(name, f.Call(words...)) }

func status(name string, code int32) error {
	if code == 0 {
		return nil
	}
	text := map[int32]string{1: "NOT_INITIALIZED", 3: "ALLOC_FAILED", 7: "INVALID_VALUE", 8: "ARCH_MISMATCH", 11: "MAPPING_ERROR", 13: "EXECUTION_FAILED", 14: "INTERNAL_ERROR", 15: "NOT_SUPPORTED"}[code]
	return fmt.Errorf("cublas: %s: CUBLAS_STATUS_%s (%d)", name, text, code)
}

// Handle is a cuBLAS and a cuBLASLt handle on the current device, bound to one stream, with one workspace.
type Handle struct {
	lib       *Library
	blas, lt  uintptr
	stream    uintptr
	workspace cuda.Ptr
	scalars   *[2]float32 // alpha 1, beta 0, read by the host at each call
}

// New makes a handle. The device must be bound; workspace is WorkspaceBytes of its memory.
func (l *Library) New(s *cuda.Stream, workspace cuda.Ptr) (*Handle, error) {
	h := &Handle{lib: l, stream: s.Handle(), workspace: workspace, scalars: &[2]float32{1, 0}}
	if err := check("cublasCreate", l.create, uintptr(unsafe.Pointer(&h.blas))); err != nil {
		return nil, err
	}
	if err := check("cublasSetStream", l.setStream, h.blas, h.stream); err != nil {
		return nil, err
	}
	// Setting a stream resets the workspace, so this comes second.
	if err := check("cublasSetWorkspace", l.setWorkspace, h.blas, uintptr(workspace), WorkspaceBytes); err != nil {
		return nil, err
	}
	return h, check("cublasLtCreate", l.ltCreate, uintptr(unsafe.Pointer(&h.lt)))
}

// Version is the library's version, such as 130101.
func (h *Handle) Version() (int, error) {
	var v int32
	err := check("cublasGetVersion", h.lib.getVersion, h.blas, uintptr(unsafe.Pointer(&v)))
	return int(v), err
}
