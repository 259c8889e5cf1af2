package cuda

import (
	"errors"
	"fmt"

	"heddle/ptx"
)

// Runner executes modules of package ptx on a device: the driver's counterpart of the emulator. It keeps what it compiled.
type Runner struct {
	dev       *Device
	stream    *Stream
	cache     *Cache
	modules   map[string]*Module       // by PTX text: a module of many entries is loaded once
	functions map[string]*Function     // by PTX text and entry
	entries   map[*ptx.Entry]*Function // the same, for entries met before: an Entry never changes
}

// NewRunner makes a runner on a stream of the device, which must be bound to the calling thread in every call.
func NewRunner(dev *Device, s *Stream, cache *Cache) *Runner {
	return &Runner{dev: dev, stream: s, cache: cache, modules: map[string]*Module{}, functions: map[string]*Function{}, entries: map[*ptx.Entry]*Function{}}
}

// Stream is the stream that Run uses.
func (r *Runner) Stream() *Stream { return r.stream }

// Run executes one launch as ptx.Runner says: buffers with Data travel to the device and back, the others stay where they are.
func (r *Runner) Run(m *ptx.Module, l ptx.Launch, args *ptx.Args) (err error) {
	if args == nil {
		return fmt.Errorf("cuda: launch of %s without arguments; hint: Entry.NewArgs", l.Entry)
	}
	place, err := r.place(args.Buffers())
	defer func() { err = errors.Join(err, r.free(place)) }()
	if err != nil {
		return err
	}
	p, err := r.prepare(m, l, args, place)
	if err != nil {
		return err
	}
	if err := p.Launch(r.stream); err != nil {
		return err
	}
	if err := r.stream.Synchronize(); err != nil {
		return p.f.named(err)
	}
	for b, at := range place {
		if err := r.dev.CopyOut(b.Data, at); err != nil {
			return err
		}
	}
	return nil
}

// Prepare lays out a launch whose buffers all live on the device already.
func (r *Runner) Prepare(m *ptx.Module, l ptx.Launch, args *ptx.Args) (*Prepared, error) {
	return r.prepare(m, l, args, nil)
}

// place copies the Data of buffers that have no device address to the device.
func (r *Runner) place(buffers []*ptx.Buffer) (map[*ptx.Buffer]Ptr, error) {
	place := map[*ptx.Buffer]Ptr{}
	for _, b := range buffers {
		if b.Device != 0 {
			continue
		}
		if len(b.Data) == 0 {
			return place, fmt.Errorf("cuda: buffer %s has neither data nor a device address", b.Name)
		}
		at, err := r.dev.Alloc(len(b.Data))
		if err != nil {
			return place, err
		}
		place[b] = at
		if err := r.dev.CopyIn(at, b.Data); err != nil {
			return place, err
		}
	}
	return place, nil
}

func (r *Runner) free(place map[*ptx.Buffer]Ptr) error {
	var errs []error
	for _, at := range place {
		errs = append(errs, r.dev.Free(at))
	}
	return errors.Join(errs...)
}

func (r *Runner) prepare(m *ptx.Module, l ptx.Launch, args *ptx.Args, place map[*ptx.Buffer]Ptr) (*Prepared, error) {
	e := m.Entry(l.Entry)
	if e == nil {
		return nil, fmt.Errorf("cuda: the module has no entry %q", l.Entry)
	}
	f, err := r.function(m, e)
	if err != nil {
		return nil, err
	}
	return r.lay(f, e, l, args, place, nil)
}

// PrepareArgs is Prepare, and the arguments that later launches may change.
func (r *Runner) PrepareArgs(m *ptx.Module, l ptx.Launch, args *ptx.Args) (*Prepared, *Args, error) {
	e := m.Entry(l.Entry)
	if e == nil {
		return nil, nil, fmt.Errorf("cuda: the module has no entry %q", l.Entry)
	}
	f, err := r.function(m, e)
	if err != nil {
		return nil, nil, err
	}
	var out *Args
	p, err := r.lay(f, e, l, args, nil, func(a *Args) { out = a })
	return p, out, err
}

// PrepareText lays out a launch of an entry whose text the caller compiled himself: the entry's own, or that with additions that leave its parameters where they are. Buffers live on
// the device. extra adds arguments behind the entry's own; it may be nil.
func (r *Runner) PrepareText(f *Function, e *ptx.Entry, l ptx.Launch, args *ptx.Args, extra func(*Args)) (*Prepared, error) {
	return r.lay(f, e, l, args, nil, extra)
}

// lay puts a launch of an entry into the driver's terms.
func (r *Runner) lay(f *Function, e *ptx.Entry, l ptx.Launch, args *ptx.Args, place map[*ptx.Buffer]Ptr, extra func(*Args)) (*Prepared, error) {
	l, err := e.Check(l, args)
	if err != nil {
		return nil, err
	}
	if err := f.AllowShared(l.Shared); err != nil {
		return nil, err
	}
	if l.Cluster.Count() > 8 {
		if err := f.AllowLargeClusters(); err != nil {
			return nil, err
		}
	}
	out := new(Args)
	for i := range args.Len() {
		if err := r.argument(out, args.At(i), place); err != nil {
			return nil, fmt.Errorf("%w (parameter %s of %s)", err, e.Params[i].Name, e.Name)
		}
	}
	if extra != nil {
		extra(out)
	}
	// The cluster is the entry's own directive (.reqnctapercluster); naming it again in the launch would only allow a contradiction.
	return f.Prepare(Launch{Grid: dim(l.Grid), Block: dim(l.Block), Shared: l.Shared, PDL: l.PDL}, out)
}

func dim(d ptx.Dim3) [3]uint32 { return [3]uint32{uint32(d.X), uint32(d.Y), uint32(d.Z)} }

// Function compiles the module, unless it did before, and finds the entry.
func (r *Runner) function(m *ptx.Module, e *ptx.Entry) (*Function, error) {
	if f := r.entries[e]; f != nil {
		return f, nil
	}
	text := m.PTX()
	key := e.Name + "\x00" + text
	if f := r.functions[key]; f != nil {
		r.entries[e] = f
		return f, nil
	}
	loaded := r.modules[text]
	if loaded == nil {
		var err error
		if loaded, err = r.dev.Compile(text, r.cache); err != nil {
			return nil, err
		}
		r.modules[text] = loaded
	}
	f, err := loaded.Function(e.Name)
	if err == nil {
		r.functions[key], r.entries[e] = f, f
	}
	return f, err
}

// Facts compiles an entry of the module and says what the compiler made of it.
func (r *Runner) Facts(m *ptx.Module, entry string) (FunctionFacts, error) {
	e := m.Entry(entry)
	if e == nil {
		return FunctionFacts{}, fmt.Errorf("cuda: the module has no entry %q", entry)
	}
	f, err := r.function(m, e)
	if err != nil {
		return FunctionFacts{}, err
	}
	return f.FunctionFacts, nil
}

func (r *Runner) argument(out *Args, a ptx.Arg, place map[*ptx.Buffer]Ptr) error {
	switch a.Kind {
	case ptx.KindU32, ptx.KindU64, ptx.KindF32:
		out.U64(a.Bits) // little endian: a 4-byte parameter reads the low half
	case ptx.KindPtr:
		at := Ptr(0)
		if a.Buffer != nil {
			at = address(a.Buffer, place)
		}
		out.Ptr(at + Ptr(a.Offset))
	case ptx.KindMap:
		m, err := r.encode(a.Map, address(a.Map.Buffer, place))
		if err != nil {
			return err
		}
		out.Map(m)
	default:
		return fmt.Errorf("cuda: argument of unknown kind %d", a.Kind)
	}
	return nil
}

func address(b *ptx.Buffer, place map[*ptx.Buffer]Ptr) Ptr {
	if b.Device != 0 {
		return Ptr(b.Device)
	}
	return place[b]
}

func (r *Runner) encode(m *ptx.Map, at Ptr) (*TensorMap, error) {
	element, err := m.EncodeType()
	if err != nil {
		return nil, err
	}
	t := Tiled{Element: Element(element), Addr: at + Ptr(m.Offset), NaNFill: m.NaNFill}
	if m.Swizzle != ptx.SwizzleNone {
		t.Swizzle = m.Swizzle.Width()
	}
	if m.L2 != ptx.L2None {
		t.Promotion = 32 << m.L2
	}
	for i, d := range m.Dims {
		t.Dims, t.Box = append(t.Dims, uint64(d)), append(t.Box, uint32(m.Box[i]))
	}
	for _, s := range m.Strides {
		t.Strides = append(t.Strides, uint64(s))
	}
	return r.dev.EncodeTiled(t)
}
