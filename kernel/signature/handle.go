package signature

import (
	"fmt"
	"unsafe"

	"heddle/ptx"
)

// Block is a launch laid out for the driver. Package cuda's Prepared is one; tests bring their own.
type Block interface {
	// SetWord changes scalar or address parameter i.
	SetWord(i int, bits uint64)
	// SetMap moves the tensor that tensor map parameter i describes.
	SetMap(i int, addr uint64) error
	// Queue launches on a CUstream.
	Queue(stream uintptr) error
}

// Stream is where a launch goes. Package cuda's Stream is one.
type Stream interface{ Handle() uintptr }

// Load lays out a launch of the kernel that a handle is for. The driver's is
//
//	func(l ptx.Launch, a *ptx.Args) (signature.Block, error) { return runner.Prepare(module, l, a) }
type Load func(ptx.Launch, *ptx.Args) (Block, error)

// Handle launches a kernel. It is not safe for concurrent use.
type Handle[A any] struct {
	sig   *Signature[A]
	entry *ptx.Entry
	load  Load
	sizes [maxSizes]int // of the call in progress
	last  *laid         // the launch that the call before used
	laid  map[[maxSizes]int]*laid
	// PDL lets launches begin while the kernel in front of them still runs. The kernel must wait for it (griddepcontrol.wait) wherever it touches memory.
	// It is read when a set of sizes is first met.
	PDL bool
}

// laid is a launch for one set of sizes, once for each of the places that its tensors have lately been in: a program that goes round the same memory moves nothing.
type laid struct {
	sizes  [maxSizes]int
	places [1 << placeBits]*place
}

// placeBits bounds the places of a launch, which a hash of the addresses tells apart: of two that meet one is moved. A place takes about 1.5 KB.
const placeBits = 6

// place is a launch laid out for the driver.
type place struct {
	block Block
	moves []move   // parameters that hold an address
	at    []uint64 // and where it points now
	words []int    // the parameter of each scalar
}

// move is one parameter that follows a tensor.
type move struct {
	tensor int
	param  int
	isMap  bool
	offset uint64 // bytes behind the tensor's address
}

// maxLaid bounds the sets of sizes a handle keeps; beyond it starts anew.
const maxLaid = 1024

// Bind makes a handle for a built kernel.
func (s *Signature[A]) Bind(entry *ptx.Entry, load Load) (*Handle[A], error) {
	if s.fault != nil {
		return nil, s.fault
	}
	if s.plan == nil || len(s.tensors) == 0 {
		return nil, fmt.Errorf("signature: %s has no plan or no tensors; hint: call Plan and Tensor", s.name)
	}
	bound := map[int]bool{}
	for _, t := range s.tensors {
		for i, d := range t.Dims {
			bound[d.symbol], bound[t.stride[i].symbol] = true, true
		}
	}
	for i, y := range s.symbols {
		if !bound[i+1] {
			return nil, fmt.Errorf("signature: %s: size %s is a dimension or stride of no tensor", s.name, y.name)
		}
	}
	for _, c := range s.scalars {
		if paramOf(entry, c) < 0 {
			return nil, fmt.Errorf("signature: %s: the kernel has no parameter %s of that type", s.name, c.name)
		}
	}
	return &Handle[A]{sig: s, entry: entry, load: load, laid: map[[maxSizes]int]*laid{}}, nil
}

// paramOf finds a scalar among the kernel's parameters.
func paramOf(e *ptx.Entry, c scalar) int {
	for i, p := range e.Params {
		if p.Name == c.name && p.Kind == c.kind {
			return i
		}
	}
	return -1
}

// Launch checks the arguments and queues the kernel on a stream. It allocates nothing, unless these sizes or places are met for the first time.
func (h *Handle[A]) Launch(to Stream, args *A) error {
	if !h.sig.bind(args, &h.sizes) {
		return h.sig.refusal(args)
	}
	l := h.last
	if l == nil || l.sizes != h.sizes {
		l = h.find()
	}
	slot := &l.places[hash(h.sig.tensors, unsafe.Pointer(args))]
	if *slot == nil {
		p, err := h.lay(args)
		if err != nil {
			return err
		}
		*slot = p
	}
	p := *slot
	if err := p.pack(h.sig.tensors, h.sig.scalars, unsafe.Pointer(args)); err != nil {
		return err
	}
	return p.block.Queue(to.Handle())
}

// hash tells places apart by the addresses of the tensors.
func hash(tensors []tensor, args unsafe.Pointer) uint64 {
	h := uint64(0)
	for i := range tensors {
		h = (h ^ tensors[i].of(args).Addr) * 0x9e3779b97f4a7c15 // 2⁶⁴ over the golden ratio (Knuth, TAOCP 3, §6.4)
		h ^= h >> 29
	}
	return h >> (64 - placeBits)
}

// pack writes what changes from call to call.
func (p *place) pack(tensors []tensor, scalars []scalar, args unsafe.Pointer) error {
	for i := range p.moves {
		m := &p.moves[i]
		addr := tensors[m.tensor].of(args).Addr + m.offset
		if p.at[i] == addr {
			continue
		}
		if !m.isMap {
			p.block.SetWord(m.param, addr)
		} else if err := p.block.SetMap(m.param, addr); err != nil {
			return err
		}
		p.at[i] = addr
	}
	for i := range scalars {
		c := &scalars[i]
		if x := unsafe.Add(args, c.offset); c.kind == ptx.KindU64 {
			p.block.SetWord(p.words[i], *(*uint64)(x))
		} else {
			p.block.SetWord(p.words[i], uint64(*(*uint32)(x)))
		}
	}
	return nil
}

// find gets what is kept for h.sizes.
func (h *Handle[A]) find() *laid {
	l := h.laid[h.sizes]
	if l == nil {
		if len(h.laid) >= maxLaid {
			clear(h.laid)
		}
		l = &laid{sizes: h.sizes}
		h.laid[h.sizes] = l
	}
	h.last = l
	return l
}

// lay asks the kernel for the launch, and finds out which parameters follow which tensor.
func (h *Handle[A]) lay(args *A) (*place, error) {
	shape := &Shape{sizes: h.sizes}
	slots := map[*ptx.Buffer]int{}
	for i := range h.sig.tensors {
		t := &h.sig.tensors[i]
		x := t.of(unsafe.Pointer(args))
		b := &ptx.Buffer{Name: t.name, Device: x.Addr, Bytes: x.bytes()}
		shape.buffers = append(shape.buffers, b)
		slots[b] = i
	}
	launch, params, err := h.sig.plan(shape)
	if err != nil {
		return nil, fmt.Errorf("signature: %s: %w", h.sig.name, err)
	}
	launch.PDL = launch.PDL || h.PDL
	p := new(place)
	for i := range params.Len() {
		a := params.At(i)
		b, offset := a.Buffer, a.Offset
		if a.Map != nil {
			b, offset = a.Map.Buffer, a.Map.Offset
		}
		if b == nil {
			continue
		}
		slot, ok := slots[b]
		if !ok && b.Device != 0 {
			continue // the kernel's own workspace, which stays where it is
		}
		if !ok {
			return nil, fmt.Errorf("signature: %s: parameter %s holds a buffer that is no tensor of the signature and has no address", h.sig.name, h.entry.Params[i].Name)
		}
		p.moves = append(p.moves, move{tensor: slot, param: i, isMap: a.Map != nil, offset: uint64(offset)})
		p.at = append(p.at, b.Device+uint64(offset))
	}
	for _, c := range h.sig.scalars {
		p.words = append(p.words, paramOf(h.entry, c))
	}
	p.block, err = h.load(launch, params)
	return p, err
}

// bytes is the memory from the first element to behind the last.
func (x *Tensor) bytes() int {
	last := 0
	for i := range x.Rank {
		last += (x.Dims[i] - 1) * x.Strides[i]
	}
	return (last + 1) * x.Type.Size()
}
