package kernel

import (
	"encoding/binary"
	"math"

	"heddle/num"
	"heddle/ptx"
)

// Guard is how many bytes behind a Sample's elements nothing may touch.
const Guard = 64

// Sample is a buffer of numbers for tests: NaN until set, also behind its elements and before the first.
type Sample struct {
	*ptx.Buffer
	Type   num.DType
	Offset int // bytes before the first element
	N      int
}

// NewSample makes a buffer of n elements that start offset bytes into it.
func NewSample(name string, t num.DType, n, offset int) *Sample {
	s := &Sample{&ptx.Buffer{Name: name, Data: make([]byte, offset+n*t.Size()+Guard)}, t, offset, n}
	for i := range s.Data {
		s.Data[i] = 0xff // NaN in every float format, −1 as an integer
	}
	return s
}

// Place is where the elements lie.
func (s *Sample) Place() Place { return Place{Buffer: s.Buffer, Offset: s.Offset} }

// Set puts x, rounded to the type, into element i and gives what was stored.
func (s *Sample) Set(i int, x float64) float64 {
	at := s.Data[s.Offset+i*s.Type.Size():]
	switch s.Type {
	case num.BF16:
		b := num.ToBF16(float32(x))
		binary.LittleEndian.PutUint16(at, b)
		return float64(num.FromBF16(b))
	case num.I32:
		binary.LittleEndian.PutUint32(at, uint32(int32(x)))
		return x
	}
	binary.LittleEndian.PutUint32(at, math.Float32bits(float32(x)))
	return float64(float32(x))
}

// At is element i; one behind the last is the first of the guard band.
func (s *Sample) At(i int) float64 {
	at := s.Data[s.Offset+i*s.Type.Size():]
	switch s.Type {
	case num.BF16:
		return float64(num.FromBF16(binary.LittleEndian.Uint16(at)))
	case num.I32:
		return float64(int32(binary.LittleEndian.Uint32(at)))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(at)))
}

// Fill sets every element to f of its index and gives what was stored.
func (s *Sample) Fill(f func(i int) float64) []float64 {
	x := make([]float64, s.N)
	for i := range x {
		x[i] = s.Set(i, f(i))
	}
	return x
}

// Intact tells whether nothing was written around the elements.
func (s *Sample) Intact() bool {
	for i, b := range s.Data {
		if (i < s.Offset || i >= s.Offset+s.N*s.Type.Size()) && b != 0xff {
			return false
		}
	}
	return true
}

// Rounding is the relative error of one rounding to t.
func Rounding(t num.DType) float64 {
	if t == num.BF16 {
		return 0x1p-8
	}
	return 0x1p-24
}
