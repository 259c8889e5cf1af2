package main

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// openblas is the peer, opened at run time: Debian's libopenblas0-pthread.
type openblas struct {
	sgemm   func(order, transA, transB, m, n, k int32, alpha float32, a *float32, lda int32, b *float32, ldb int32, beta float32, c *float32, ldc int32)
	threads func(n int32)
	config  string
}

// CBLAS's names of the row-major order and the two transposes.
const (
	rowMajor  = 101
	asIs      = 111
	transpose = 112
)

func openOpenBLAS() (*openblas, error) {
	lib, err := purego.Dlopen("libopenblas.so.0", purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("bench: openblas: %w; hint: apt-get install libopenblas0-pthread", err)
	}
	o := &openblas{}
	var config func() string
	for name, f := range map[string]any{"cblas_sgemm": &o.sgemm, "openblas_set_num_threads": &o.threads, "openblas_get_config": &config} {
		sym, err := purego.Dlsym(lib, name)
		if err != nil {
			return nil, fmt.Errorf("bench: openblas: %w", err)
		}
		purego.RegisterFunc(f, sym)
	}
	o.config = config()
	return o, nil
}

func cblas(trans bool) int32 {
	if trans {
		return transpose
	}
	return asIs
}
