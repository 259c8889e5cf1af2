// Package conform holds small programs that pin down what instructions do: products of tiles through every descriptor form, TMA copies under every swizzle and
// over every edge, and random structured programs of arithmetic. Some know their answer from the definition; all can be run by two Runners and compared.
//
// It is how the emulator is held to the card, and the card to the manual. Start with Program.
package conform

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"heddle/num"
	"heddle/ptx"
)

// Program is one kernel with its inputs.
type Program struct {
	Name   string
	Entry  *ptx.Entry
	Launch ptx.Launch
	Args   func() (*ptx.Args, *ptx.Buffer)      // fresh arguments, and the buffer that holds the result
	Want   func() []byte                        // the result by definition; nil where only two Runners can be compared
	Floats bool                                 // the result is float32 words, in which every NaN is one
	ULPs   uint32                               // … that may differ by so many units in the last place
	Within func(word int, want float32) float64 // … or, where not nil, by so much
}

// Run gives the program's result.
func (p Program) Run(r ptx.Runner) ([]byte, error) {
	return p.RunIn(&ptx.Module{Entries: []*ptx.Entry{p.Entry}}, r)
}

// RunIn runs the program as part of a module with others, so that a device compiles them together.
func (p Program) RunIn(m *ptx.Module, r ptx.Runner) ([]byte, error) {
	args, out := p.Args()
	if err := r.Run(m, p.Launch, args); err != nil {
		return nil, fmt.Errorf("conform: %s: %w", p.Name, err)
	}
	return out.Data, nil
}

// Check compares a result with the definition's.
func (p Program) Check(r ptx.Runner) error {
	got, err := p.Run(r)
	if err != nil {
		return err
	}
	return p.Same(got, p.Want())
}

// Differ compares the results of two Runners.
func (p Program) Differ(a, b ptx.Runner) error {
	x, err := p.Run(a)
	if err != nil {
		return err
	}
	y, err := p.Run(b)
	if err != nil {
		return err
	}
	return p.Same(x, y)
}

// Record is what a device answered to a random program of an exact family.
type Record struct {
	Family string `json:"family"`
	Seed   int64  `json:"seed"`
	Sum    string `json:"sum"` // of the result, as Sum gives it
}

// Sum is a digest of a result in which every NaN is the same; a program whose floats may differ by ulps has none.
func (p Program) Sum(out []byte) string {
	if p.ULPs > 0 || p.Within != nil {
		return ""
	}
	x := append([]byte{}, out...)
	for i := 0; p.Floats && i+4 <= len(x); i += 4 {
		if f := math.Float32frombits(binary.LittleEndian.Uint32(x[i:])); f != f {
			binary.LittleEndian.PutUint32(x[i:], 0x7fffffff)
		}
	}
	h := sha256.Sum256(x)
	return hex.EncodeToString(h[:16])
}

// Same tells whether two results agree, and where they do not.
func (p Program) Same(got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	if len(got) != len(want) {
		return fmt.Errorf("conform: %s: %d bytes, want %d", p.Name, len(got), len(want))
	}
	for i := 0; i+4 <= len(got); i += 4 {
		x, y := binary.LittleEndian.Uint32(got[i:]), binary.LittleEndian.Uint32(want[i:])
		if x == y || p.Floats && p.near(i/4, math.Float32frombits(x), math.Float32frombits(y)) {
			continue
		}
		return fmt.Errorf("conform: %s: word %d is %#08x (%v), want %#08x (%v)", p.Name, i/4, x, math.Float32frombits(x), y, math.Float32frombits(y))
	}
	return nil
}

// near tells whether two floats are as close as the program wants.
func (p Program) near(word int, x, y float32) bool {
	return num.ULPs(x, y) <= p.ULPs || p.Within != nil && math.Abs(float64(x)-float64(y)) <= p.Within(word, y)
}

func words(name string, x []uint32) *ptx.Buffer {
	b := &ptx.Buffer{Name: name, Data: make([]byte, 4*len(x))}
	for i, v := range x {
		binary.LittleEndian.PutUint32(b.Data[4*i:], v)
	}
	return b
}
