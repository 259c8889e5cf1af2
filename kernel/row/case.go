package row

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand"

	"heddle/kernel"
	"heddle/ptx"
)

// Case is a matrix of random small integers, so that every sum is exact; y is NaN before, and what lies between rows and behind y is NaN.
func (s *Sum) Case(rows, cols int, seed int64, sms int) (kernel.Case, error) {
	r := rand.New(rand.NewSource(seed))
	pitch := (cols + 7) / 4 * 4
	x, y := nans("x", rows*pitch), nans("y", rows+16)
	want := make([]float32, rows)
	for i := range rows {
		for j := range cols {
			v := float32(r.Intn(2001) - 1000)
			want[i] += v
			binary.LittleEndian.PutUint32(x.Data[4*(i*pitch+j):], math.Float32bits(v))
		}
	}
	l, args, err := s.Launch(x, y, rows, cols, pitch, sms)
	return kernel.Case{Name: fmt.Sprintf("%dx%d", rows, cols), Launch: l, Args: args, Check: func() error { return check(y, want) }}, err
}

func nans(name string, n int) *ptx.Buffer {
	b := &ptx.Buffer{Name: name, Data: make([]byte, 4*n)}
	for i := range n {
		binary.LittleEndian.PutUint32(b.Data[4*i:], 0x7fffffff)
	}
	return b
}

func check(y *ptx.Buffer, want []float32) error {
	for i := range len(y.Data) / 4 {
		got := math.Float32frombits(binary.LittleEndian.Uint32(y.Data[4*i:]))
		if i >= len(want) {
			if got == got {
				return fmt.Errorf("row: sum: %v written %d elements behind y", got, i-len(want))
			}
			continue
		}
		if got != want[i] {
			return fmt.Errorf("row: sum: y[%d] = %v, want %v", i, got, want[i])
		}
	}
	return nil
}

// Cases are rows of whole and ragged lengths, fewer and more than the CTAs that run at once.
func (s *Sum) Cases(sms int) ([]kernel.Case, error) {
	var all []kernel.Case
	for i, size := range [][2]int{{1, 1}, {3, 4}, {5, 1023}, {37, 1024}, {9, 1031}, {2, 4096}, {4, 0}, {1, 7919}} {
		c, err := s.Case(size[0], size[1], int64(i), sms)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// FaultCase gives each of four CTAs three rows.
func (s *Sum) FaultCase() (kernel.Case, int, error) {
	c, err := s.Case(12, 1100, 1, 1)
	return c, 4, err
}

// Equivalent knows no mutant that is no fault.
func (s *Sum) Equivalent(ptx.Mutant) string { return "" }
