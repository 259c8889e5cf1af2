package ptx

import (
	"fmt"
	"math"
)

// A Runner executes one launch and waits for it. The emulator and the driver implement it, so every kernel test runs on both.
//
// Before the launch a Runner on a device copies the Data of every Buffer that args name (once each) to device memory, and back into Data afterwards;
// buffers with a Device address stay where they are and are not copied. The emulator works on Data itself and refuses buffers without it.
// A Runner calls Check first and returns its error; what the kernel itself does wrong comes back as an error too.
type Runner interface {
	Run(m *Module, l Launch, args *Args) error
}

// Launch says how one entry of a module is started.
type Launch struct {
	Entry   string // name of the entry in the module
	Grid    Dim3   // CTAs in all, a multiple of Cluster along each direction
	Block   Dim3   // threads of a CTA; zero: Entry.Threads × 1 × 1
	Cluster Dim3   // CTAs of a cluster; zero: Entry.Cluster × 1 × 1
	Shared  int    // bytes of dynamic shared memory; zero: Entry.SharedBytes
	PDL     bool   // programmatic stream serialization: may start before the grid in front of it has ended (griddepcontrol)
}

// Dim3 is a size along x, y and z; a zero direction counts as 1.
type Dim3 struct{ X, Y, Z int }

// Count is the number of elements, with zero directions taken as 1.
func (d Dim3) Count() int { return max(1, d.X) * max(1, d.Y) * max(1, d.Z) }

func (d Dim3) ones() Dim3 { return Dim3{max(1, d.X), max(1, d.Y), max(1, d.Z)} }

// Buffer is a stretch of global memory that a launch may touch. Its address is 256-byte aligned.
type Buffer struct {
	Name   string // for reports
	Data   []byte // host contents, read before and written after a launch; may be nil where Device is set
	Device uint64 // device address of memory that lives there already; 0: the Runner places Data itself
	Bytes  int    // size where Data is nil
}

// Size is the number of bytes the kernel may touch.
func (b *Buffer) Size() int {
	if b.Data != nil {
		return len(b.Data)
	}
	return b.Bytes
}

// ParamKind tells how a parameter is passed.
type ParamKind uint8

const (
	KindU32 ParamKind = iota + 1 // 4 bytes
	KindU64                      // 8 bytes
	KindF32                      // 4 bytes
	KindPtr                      // 8 bytes: address in global memory
	KindMap                      // 128 bytes, aligned 64: a CUtensorMap
)

// Param is one parameter of an entry. Entry.Params are in the order of the PTX signature, which is the order of cuLaunchKernel's pointers.
type Param struct {
	Name string
	Kind ParamKind
}

// Size is the parameter's bytes in the launch.
func (k ParamKind) Size() int {
	switch k {
	case KindU32, KindF32:
		return 4
	case KindU64, KindPtr:
		return 8
	case KindMap:
		return 128
	}
	return 0
}

// Arg is the value of one parameter.
type Arg struct {
	Kind   ParamKind // zero: nothing was put
	Bits   uint64    // KindU32, KindU64, KindF32: the value's bits
	Buffer *Buffer   // KindPtr: the address is that of Buffer …
	Offset int       // … plus Offset bytes
	Map    *Map      // KindMap
}

// Args are the values of one entry's parameters, in the order of Entry.Params. Entry.NewArgs makes them, the parameters' Put methods fill them.
type Args struct {
	entry *Entry
	vals  []Arg
	err   error
}

// Len is the number of parameters.
func (a *Args) Len() int { return len(a.vals) }

// At is the value of parameter i; its Kind is zero while nothing was put.
func (a *Args) At(i int) Arg { return a.vals[i] }

// Buffers are the buffers that the arguments name, each once, in order of first appearance.
func (a *Args) Buffers() []*Buffer {
	var bufs []*Buffer
	seen := map[*Buffer]bool{}
	for _, v := range a.vals {
		b := v.Buffer
		if v.Map != nil {
			b = v.Map.Buffer
		}
		if b != nil && !seen[b] {
			seen[b] = true
			bufs = append(bufs, b)
		}
	}
	return bufs
}

// Check tells whether the launch fits the entry and its arguments, and completes l: zero fields become what the entry says.
func (e *Entry) Check(l Launch, a *Args) (Launch, error) {
	if a == nil || a.entry.k != e.k { // a mutant takes the arguments of its original
		return l, fmt.Errorf("ptx: launch of %s: arguments were made for another entry; hint: use its NewArgs", e.Name)
	}
	if a.err != nil {
		return l, a.err
	}
	if l.Block == (Dim3{}) {
		l.Block = Dim3{X: e.Threads}
	}
	if l.Cluster == (Dim3{}) {
		l.Cluster = Dim3{X: e.Cluster}
	}
	if l.Shared == 0 {
		l.Shared = e.SharedBytes
	}
	l.Grid, l.Block, l.Cluster = l.Grid.ones(), l.Block.ones(), l.Cluster.ones()
	if l.Block.Count() != e.Threads || l.Cluster.Count() != e.Cluster {
		return l, fmt.Errorf("ptx: launch of %s: block %v, cluster %v, want %d threads and clusters of %d", e.Name, l.Block, l.Cluster, e.Threads, e.Cluster)
	}
	if l.Shared < e.SharedBytes {
		return l, fmt.Errorf("ptx: launch of %s: %d bytes of shared memory, want at least %d", e.Name, l.Shared, e.SharedBytes)
	}
	if l.Grid.X%l.Cluster.X != 0 || l.Grid.Y%l.Cluster.Y != 0 || l.Grid.Z%l.Cluster.Z != 0 {
		return l, fmt.Errorf("ptx: launch of %s: grid %v is no multiple of cluster %v", e.Name, l.Grid, l.Cluster)
	}
	for i, v := range a.vals {
		p := e.Params[i]
		if v.Kind != p.Kind {
			return l, fmt.Errorf("ptx: launch of %s: parameter %s has no value; hint: call its Put", e.Name, p.Name)
		}
		if v.Kind == KindPtr && v.Buffer != nil && (v.Offset < 0 || v.Offset > v.Buffer.Size()) {
			return l, fmt.Errorf("ptx: launch of %s: parameter %s points %d bytes into a buffer of %d", e.Name, p.Name, v.Offset, v.Buffer.Size())
		}
		if v.Map != nil {
			if err := v.Map.Check(); err != nil {
				return l, fmt.Errorf("ptx: launch of %s: parameter %s: %w", e.Name, p.Name, err)
			}
		}
	}
	return l, e.checkFills(a)
}

func f32bits(x float32) uint64 { return uint64(math.Float32bits(x)) }
