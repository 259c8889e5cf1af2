// Package gpu is the GPU machine: compute.Leaf over the kernels of package kernel, in one arena.
//
// Read Leaf here, then layer.go for how an operation finds its kernel; card.go is the device itself. A leaf without a Machine computes nothing and finds out how
// much memory a program will need: the same code asks for the same memory in the same order, scratch included.
package gpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"sync"

	"heddle/compute"
	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
	"heddle/tensor"
)

// Leaf implements compute.Leaf for one rank: f32, or bf16 with f32 sums.
type Leaf struct {
	m       Machine // nil: plans
	space   *Space
	kernels *Kernels
	sms     int
	shape   string // of the product that is launched
	last    int    // largest position that was uploaded; −1: none
	angles  map[angleKey]angles
}

var _ compute.Leaf = (*Leaf)(nil)

// NewLeaf makes a leaf on a machine, with the part of its arena that is the rank's.
func NewLeaf(m Machine, space *Space, kernels *Kernels) *Leaf {
	return &Leaf{m: m, space: space, kernels: kernels, sms: m.SMs(), last: -1, angles: map[angleKey]angles{}}
}

// NewPlan makes a leaf that computes nothing, for a device of so many SMs. Need is what it would have needed.
func NewPlan(sms int, kernels *Kernels) *Leaf {
	return &Leaf{space: NewSpace(0, math.MaxInt), kernels: kernels, sms: sms, last: -1, angles: map[angleKey]angles{}}
}

// Need is the bytes of arena that all operations so far needed.
func (l *Leaf) Need() int { return l.space.Top() }

// fault is the panic of an operation that fails; train makes it an error.
func fault(op string, err error) *compute.Fault { return &compute.Fault{Op: op, Layer: -1, Err: err} }

func must(op string, err error) {
	if err != nil {
		panic(fault(op, err))
	}
}

// Alloc takes memory of the arena; what it holds is undefined.
func (l *Leaf) Alloc(bytes int) tensor.Mem {
	at, ok := l.space.Take(bytes)
	if !ok {
		panic(fault("alloc", fmt.Errorf("alloc: the arena has no room for %d more bytes; hint: it was planned for another program", bytes)))
	}
	mem := tensor.Mem{At: at}
	if l.m != nil {
		mem.Ptr = l.m.Pointer(at)
	}
	return mem
}

// Free gives memory back. Work that is queued may still use it: whoever gets it next queues behind.
func (l *Leaf) Free(m tensor.Mem, bytes int) { l.space.Give(m.At, bytes) }

// scratch is memory for the launches of one operation.
func (l *Leaf) scratch(bytes int) (p kernel.Place, free func()) {
	mem := l.Alloc(bytes)
	return l.place(mem.At), func() { l.Free(mem, bytes) }
}

func (l *Leaf) place(at int) kernel.Place {
	if l.m == nil {
		return kernel.Place{Offset: at}
	}
	return kernel.Place{Buffer: l.m.Arena(), Offset: at}
}

// at is where a tensor lies.
func (l *Leaf) at(t tensor.Tensor) kernel.Place { return l.place(t.Mem.At) }

// dtype is the type as kernels name it.
func dtype(t tensor.DType) num.DType {
	switch t {
	case tensor.F32:
		return num.F32
	case tensor.BF16:
		return num.BF16
	case tensor.I32:
		return num.I32
	}
	panic(fault("dtype", fmt.Errorf("dtype: %s is no type of GPUs here; hint: f32 or bf16", t)))
}

// wide tells whether all tensors start at multiples of 16 bytes.
func wide(ts ...tensor.Tensor) bool {
	for _, t := range ts {
		if t.Mem.At%16 != 0 {
			return false
		}
	}
	return true
}

// built is what all kernels have.
type built interface{ Module() *ptx.Module }

// run launches a kernel, unless the leaf only plans.
func (l *Leaf) run(op string, k built, launch func() (ptx.Launch, *ptx.Args, error)) {
	if l.m == nil {
		return
	}
	at, args, err := launch()
	if err == nil {
		err = l.m.Launch(l.label(k, at), k.Module(), at, args)
	}
	if err != nil {
		panic(fault(op, fmt.Errorf("%s: %w", op, err)))
	}
}

// label names a launch in profiles: products by their shapes.
func (l *Leaf) label(k built, at ptx.Launch) string {
	if l.shape != "" {
		return at.Entry + " " + l.shape
	}
	return at.Entry
}

// Upload converts from float64 and waits until the data are there. Positions must rise: attention sees what is not behind.
func (l *Leaf) Upload(dst tensor.Tensor, src []float64) {
	if dst.Const && dst.Letters == "s" {
		l.positions(src)
	}
	if l.m == nil || len(src) == 0 {
		return
	}
	size := dst.Type.Size()
	data := make([]byte, min(len(src), chunk)*size)
	for at := 0; at < len(src); at += chunk {
		part := src[at:min(at+chunk, len(src))]
		encodeAll(data, dst.Type, part)
		must("upload", l.m.Write(dst.Mem.At+at*size, data[:len(part)*size]))
	}
}

// chunk is how many elements travel together.
const chunk = 1 << 22

// encodeAll is encode by several goroutines where that pays.
func encodeAll(data []byte, t tensor.DType, src []float64) {
	const worth = 1 << 16
	parts := max(1, min(len(src)/worth, runtime.GOMAXPROCS(0)))
	var wg sync.WaitGroup
	for i := range parts {
		lo, hi := len(src)*i/parts, len(src)*(i+1)/parts
		wg.Go(func() { encode(data[lo*t.Size():hi*t.Size()], t, src[lo:hi]) })
	}
	wg.Wait()
}

func (l *Leaf) positions(src []float64) {
	for i, p := range src {
		if i > 0 && p <= src[i-1] || p < 0 || p >= 1<<24 || p != math.Trunc(p) {
			panic(fault("upload", fmt.Errorf("upload: position %d is %g, want whole numbers that rise", i, p)))
		}
		l.last = max(l.last, int(p))
	}
}

func encode(data []byte, t tensor.DType, src []float64) {
	switch t {
	case tensor.I32:
		for i, v := range src {
			binary.LittleEndian.PutUint32(data[4*i:], uint32(int32(v)))
		}
	case tensor.BF16:
		for i, v := range src {
			binary.LittleEndian.PutUint16(data[2*i:], num.ToBF16(float32(v)))
		}
	default:
		for i, v := range src {
			binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(v)))
		}
	}
}

// Download waits for all that is queued and converts to float64.
func (l *Leaf) Download(dst []float64, src tensor.Tensor) {
	if l.m == nil || len(dst) == 0 {
		return
	}
	data := make([]byte, src.Bytes())
	must("download", l.m.Read(data, src.Mem.At))
	switch src.Type {
	case tensor.I32:
		for i := range dst {
			dst[i] = float64(int32(binary.LittleEndian.Uint32(data[4*i:])))
		}
	case tensor.BF16:
		for i := range dst {
			dst[i] = float64(num.FromBF16(binary.LittleEndian.Uint16(data[2*i:])))
		}
	default:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
		}
	}
}
