package gguf

import (
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strings"
)

// A file is: "GGUF", version, number of tensors, number of metadata pairs, the pairs, the tensor list, padding to the alignment, the data of the tensors,
// each padded to the alignment. Described in ggml's docs/gguf.md.
const (
	magic        = "GGUF"
	alignmentKey = "general.alignment"
	maxName      = 1 << 16 // bytes of a key or tensor name
	maxDims      = 4
)

// Info describes one tensor of a file.
type Info struct {
	Name  string
	Type  Type
	Shape []int // outermost dim first, as in safetensors: [out, in] for a matrix. The file has them the other way round.
	Begin int64 // first byte in the file
	End   int64 // byte after the last
}

// Len is the number of elements.
func (i Info) Len() int {
	n := 1
	for _, d := range i.Shape {
		n *= d
	}
	return n
}

func (f *File) parse(r io.ReaderAt, size int64) error {
	s := newScanner(r, size)
	m := s.bytes(4, "magic")
	if s.err == nil && string(m) != magic {
		return fmt.Errorf("byte 0: got %q, want %q", m, magic)
	}
	version := s.u32("version")
	if s.err == nil && version != 2 && version != 3 {
		hint := ""
		if bits.ReverseBytes32(version) <= 3 {
			hint = "; hint: this is a big-endian file"
		}
		return fmt.Errorf("byte 4: version %d, want 2 or 3%s", version, hint)
	}
	tensors, pairs := s.u64("number of tensors"), s.u64("number of metadata pairs")
	s.fits(pairs, 8+4+1, "metadata pairs")
	s.fits(tensors, 8+4+8+4+8, "tensors")
	f.meta = map[string]value{}
	for i := uint64(0); i < pairs && s.err == nil; i++ {
		key := s.text(maxName, "metadata key")
		if _, twice := f.meta[key]; twice {
			s.fail("metadata %.100q occurs twice", key)
		}
		f.meta[key] = s.value(fmt.Sprintf("metadata %.100q", key))
	}
	for i := uint64(0); i < tensors && s.err == nil; i++ {
		f.tensors = append(f.tensors, s.tensor())
	}
	if s.err != nil {
		return s.err
	}
	return f.place(s.at, size)
}

// tensor reads one entry of the list. Begin is still relative to the data, End not known.
func (s *scanner) tensor() Info {
	info := Info{Name: s.text(maxName, "tensor name")}
	what := fmt.Sprintf("tensor %.100q", info.Name)
	dims := s.u32(what)
	if s.err == nil && dims > maxDims {
		s.fail("%s has %d dimensions, at most %d are allowed", what, dims, maxDims)
	}
	for i := uint32(0); i < dims && s.err == nil; i++ {
		d := s.u64(what)
		if d == 0 || d > 1<<40 {
			s.fail("%s: dimension %d", what, d)
		}
		info.Shape = append(info.Shape, int(d))
	}
	info.Type = Type(s.u32(what))
	begin := s.u64(what)
	block, size := info.Type.block()
	switch {
	case s.err != nil:
	case size == 0:
		s.fail("%s: type %s is not supported; hint: heddle reads %s", what, info.Type, supported())
	case dims == 0 && block != 1, dims > 0 && info.Shape[0]%block != 0:
		s.fail("%s: rows of %v are not made of blocks of %d (%s)", what, info.Shape, block, info.Type)
	case begin > 1<<62:
		s.fail("%s: offset %d", what, begin)
	}
	slices.Reverse(info.Shape)
	info.Begin = int64(begin)
	return info
}

// place turns offsets into places in the file and checks that the tensors lie one after the other, with padding and nothing else between.
func (f *File) place(headerEnd, size int64) error {
	f.alignment = 32
	if f.Has(alignmentKey) {
		n, err := f.Uint(alignmentKey)
		if err != nil {
			return err
		}
		if n < 1 || n > 1<<16 || n&(n-1) != 0 {
			return fmt.Errorf("metadata %q is %d, want a power of two up to 65536", alignmentKey, n)
		}
		f.alignment = int64(n)
	}
	base := align(headerEnd, f.alignment)
	if len(f.tensors) == 0 {
		base = headerEnd
	}
	order := make([]int, len(f.tensors))
	f.byName = make(map[string]int, len(f.tensors))
	for i := range f.tensors {
		t := &f.tensors[i]
		if _, twice := f.byName[t.Name]; twice {
			return fmt.Errorf("tensor %.100q occurs twice", t.Name)
		}
		f.byName[t.Name], order[i] = i, i
		n, ok := t.bytes()
		if !ok || base > size || n > size-base || t.Begin > size-base-n {
			return fmt.Errorf("tensor %.100q: %s%v at byte %d of the data needs more than the %d bytes of the file", t.Name, t.Type, t.Shape, t.Begin, size)
		}
		t.Begin += base
		t.End = t.Begin + n
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(min(1, max(-1, f.tensors[a].Begin-f.tensors[b].Begin))) })
	end := base
	for _, i := range order {
		if t := f.tensors[i]; t.Begin != end {
			return fmt.Errorf("byte %d: tensor %.100q starts here, want it at %d: a hole, an overlap or a wrong alignment", t.Begin, t.Name, end)
		}
		end = align(f.tensors[i].End, f.alignment)
	}
	if size > end {
		return fmt.Errorf("byte %d: %d bytes belong to no tensor", end, size-end)
	}
	return nil
}

func align(n, to int64) int64 { return (n + to - 1) / to * to }

// bytes is the size of the tensor's data; false when it overflows.
func (i Info) bytes() (int64, bool) {
	block, size := i.Type.block()
	n := uint64(1)
	for _, d := range i.Shape {
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > 1<<52 {
			return 0, false
		}
		n = lo
	}
	return int64(n/uint64(block)) * int64(size), true
}

func supported() string {
	var names []string
	for t := range Type(32) {
		if _, size := t.block(); size > 0 {
			names = append(names, t.String())
		}
	}
	return strings.Join(names, ", ")
}
