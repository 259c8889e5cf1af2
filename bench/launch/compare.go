package launch

import (
	"encoding/binary"

	"heddle/cuda"
	"heddle/kernel/gemm"
	"heddle/ptx"
)

// differ counts, for two stretches of memory, the 4-byte words in which they differ: count += Σ (x[i] ≠ y[i]).
type differ struct {
	entry       *ptx.Entry
	x, y, count ptx.ParamPtr
	words       ptx.ParamU32
}

func newDiffer() (*differ, error) {
	const threads = 256
	k := ptx.New("differ", threads, 1)
	d := &differ{x: k.ParamPtr("x"), y: k.ParamPtr("y"), count: k.ParamPtr("count"), words: k.ParamU32("words")}
	k.For(k.CTAIndex().Times(threads), d.words.U32, k.NumCTAs().Times(threads), func(base ptx.U32) {
		i := base.Add(k.Tid())
		k.If(i.Lt(d.words.U32), func() {
			at := i.MulWide(k.U32(4))
			k.If(d.x.At(at).LoadU32().Ne(d.y.At(at).LoadU32()), func() { d.count.RedAddU32(k.U32(1)) })
		})
	})
	var err error
	d.entry, err = k.Build()
	return d, err
}

// module is the kernel alone.
func (d *differ) module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{d.entry}} }

// launch describes the comparison of so many bytes, a multiple of 4.
func (d *differ) launch(x, y, count *ptx.Buffer, bytes, sms int) (ptx.Launch, *ptx.Args) {
	a := d.entry.NewArgs()
	d.x.Put(a, x, 0)
	d.y.Put(a, y, 0)
	d.count.Put(a, count, 0)
	d.words.Put(a, uint32(bytes/4))
	return ptx.Launch{Entry: "differ", Grid: ptx.Dim3{X: 4 * sms}}, a
}

// checker compares E of every chain with that of plain launches, bit for bit, on the device.
type checker struct {
	s         *session
	m         *memory
	differ    *differ
	reference cuda.Ptr // E of every set
	count     cuda.Ptr
}

// newChecker runs plain, whose launches follow one another, and keeps its results.
func (s *session) newChecker(m *memory, c gemm.Config) (*checker, error) {
	k := &checker{s: s, m: m}
	var err error
	if k.differ, err = newDiffer(); err != nil {
		return nil, err
	}
	if k.reference, err = s.dev.Alloc(len(m.chains) * k.bytes()); err != nil {
		return nil, err
	}
	if k.count, err = s.dev.Alloc(256); err != nil {
		return nil, err
	}
	plain, err := s.ready(Variant{Name: "reference"}, c, m, len(m.chains), false)
	if err != nil {
		return nil, err
	}
	if err := k.poison(); err != nil {
		return nil, err
	}
	if err := plain.queue(); err != nil {
		return nil, err
	}
	for i, o := range m.chains {
		if err := s.stream.Copy(k.of(i), o.e, k.bytes()); err != nil {
			return nil, err
		}
	}
	return k, s.stream.Synchronize()
}

func (k *checker) bytes() int { return 2 * k.m.n * k.m.n }

// of is where the reference for set i lies.
func (k *checker) of(i int) cuda.Ptr { return k.reference + cuda.Ptr(i*k.bytes()) }

// poison fills every result with NaNs, so that one left out or added to shows.
func (k *checker) poison() error {
	for _, o := range k.m.chains {
		for _, p := range []cuda.Ptr{o.c, o.e} {
			if err := k.s.stream.Fill(p, 0xff, k.bytes()); err != nil {
				return err
			}
		}
	}
	return nil
}

// wrong runs a burst over poisoned results and counts the words that differ from the reference. A burst that uses a set twice proves less: what the first chain spoilt the second
// may mend.
func (k *checker) wrong(u *burst) (int, error) {
	// A kernel that holds the device until all is queued: chains overlap as much as they ever will.
	if err := k.s.hold(u.holdFor()); err != nil {
		return 0, err
	}
	if err := k.poison(); err != nil {
		return 0, err
	}
	if err := u.queue(); err != nil {
		return 0, err
	}
	if err := k.s.stream.Fill(k.count, 0, 4); err != nil {
		return 0, err
	}
	at := func(name string, p cuda.Ptr) *ptx.Buffer {
		return &ptx.Buffer{Name: name, Device: uint64(p), Bytes: k.bytes()}
	}
	for i, o := range k.m.chains {
		l, args := k.differ.launch(at("x", o.e), at("y", k.of(i)), at("count", k.count), k.bytes(), k.s.dev.SMs)
		d, err := k.s.run.Prepare(k.differ.module(), l, args)
		if err != nil {
			return 0, err
		}
		if err := d.Launch(k.s.stream); err != nil {
			return 0, err
		}
	}
	if err := k.s.stream.Synchronize(); err != nil {
		return 0, err
	}
	var n [4]byte
	err := k.s.dev.CopyOut(n[:], k.count)
	return int(binary.LittleEndian.Uint32(n[:])), err
}

func (k *checker) close() error {
	if err := k.s.dev.Free(k.count); err != nil {
		return err
	}
	return k.s.dev.Free(k.reference)
}
