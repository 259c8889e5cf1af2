package train

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"heddle/comm"
	"heddle/compute"
	"heddle/mesh"
	"heddle/parallel"
	"heddle/tensor"
)

// A rank that ends early, fails or panics ends all ranks with its cause, in little more than the deadline of a collective where it says nothing and at once
// where it does; no goroutine stays.
func TestOneRanksEndIsTheEndOfAll(t *testing.T) {
	const deadline = 200 * time.Millisecond
	s, err := parallel.New(parallel.Layout{FSDP: 2, TP: 2}, parallel.Heads{G: 2, R: 2})
	if err != nil {
		t.Fatal(err)
	}
	reduce := func(r *Rank, site string, n int) {
		x := r.Dev.New(tensor.F64, "x", []int{n}, s.Mesh.Uniform(mesh.P))
		r.Dev.Zero(x)
		r.Grp.AllReduce(site, x, s.Mesh.Every(), mesh.I)
	}
	var nothing *Rank
	for name, c := range map[string]struct {
		rank2 func(r *Rank) error
		says  string
		wait  bool // until the deadline
		is    error
	}{
		"returns early": {func(*Rank) error { return nil }, "rank 2 is missing", true, nil},
		"an error":      {func(*Rank) error { return io.ErrShortWrite }, "rank 2: short write", false, io.ErrShortWrite},
		"a panic":       {func(*Rank) error { panic("boom") }, "rank 2: panic: boom", false, nil},
		"nil":           {func(*Rank) error { return fmt.Errorf("%d", nothing.Index) }, "rank 2: panic: runtime error", false, nil},
		"another site":  {func(r *Rank) error { reduce(r, "elsewhere", 6); return nil }, `at "elsewhere"`, false, nil},
		"another size":  {func(r *Rank) error { reduce(r, "here", 7); return nil }, "all-reduce of 7 f64", false, nil},
		"another kind":  {func(r *Rank) error { r.Grp.Barrier("here", s.Mesh.Every()); return nil }, "barrier", false, nil},
		"another group": {func(r *Rank) error { r.Grp.Barrier("here", s.FSDP); return nil }, "is missing", true, nil},
		"a wrong place": {func(r *Rank) error {
			x := r.Dev.New(tensor.F64, "x", []int{6}, s.Mesh.Uniform(mesh.R))
			r.Grp.AllReduce("here", x, s.Mesh.Every(), mesh.I)
			return nil
		}, "want P on axis", false, nil},
		"a wrong shape": {func(r *Rank) error {
			r.Dev.Upload(r.Dev.New(tensor.F64, "x", []int{6}, s.Mesh.Uniform(mesh.R)), make([]float64, 5))
			return nil
		}, "rank 2: ", false, nil},
		"one call short": {func(r *Rank) error { reduce(r, "here", 6); return nil }, "rank 2 is missing", true, nil},
		"one call beyond": {func(r *Rank) error {
			reduce(r, "here", 6)
			reduce(r, "and here", 6)
			reduce(r, "beyond", 6)
			return nil
		}, "is missing", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before, start := runtime.NumGoroutine(), time.Now()
			err := Ranks(s.Mesh, Machine{Type: tensor.F64, Threads: 2, Deadline: deadline}, func(r *Rank) error {
				if r.Index == 2 {
					return c.rank2(r)
				}
				reduce(r, "here", 6)
				reduce(r, "and here", 6)
				return nil
			})
			took := time.Since(start)
			if err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("got %v, want it to say %q", err, c.says)
			}
			if c.wait != (took >= deadline) || took > deadline+2*time.Second {
				t.Errorf("took %v with a deadline of %v, waited for: %v", took, deadline, c.wait)
			}
			for end := time.Now().Add(2 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
				}
			}
		})
	}
}

// The cause is the first: what other ranks say about it afterwards is not.
func TestTheFirstCauseIsTheOneReported(t *testing.T) {
	s, err := parallel.New(parallel.Layout{DP: 4}, parallel.Heads{G: 1, R: 1})
	if err != nil {
		t.Fatal(err)
	}
	err = Ranks(s.Mesh, Machine{Type: tensor.F64, Deadline: time.Minute}, func(r *Rank) (err error) {
		if r.Index == 3 {
			return io.ErrUnexpectedEOF
		}
		defer func() {
			if a, ok := recover().(*comm.Aborted); ok {
				err = fmt.Errorf("second: %w", a)
			}
		}()
		r.Grp.Barrier("for rank 3", s.Mesh.Every())
		return nil
	})
	if !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "second") {
		t.Errorf("got %v", err)
	}
	var f *compute.Fault
	if errors.As(err, &f) {
		t.Errorf("%v is no fault of shapes or places", err)
	}
}
