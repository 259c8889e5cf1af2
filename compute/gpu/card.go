package gpu

import (
	"encoding/binary"
	"fmt"
	"sync"
	"unsafe"

	"heddle/cuda"
	"heddle/cuda/timeline"
	"heddle/ptx"
)

// Card is one GPU with the arena that its ranks share.
type Card struct {
	Device  *cuda.Device
	arena   *ptx.Buffer
	words   cuda.Ptr // one a rank: the point that its queue has passed
	ranks   int
	kernels *Kernels // of all fleets on the card
	Profile *Profile // nil: kernels are not timed; for one rank

	Timeline *timeline.Recorder // nil: no timeline is taken; by events alone for one rank

	mu     sync.Mutex // of runner, which finds and compiles kernels
	runner *cuda.Runner
}

// OpenCard opens a GPU. The calling goroutine is bound to it from now on.
func OpenCard(ordinal int, cache string) (*Card, error) {
	driver, err := cuda.Open("")
	if err != nil {
		return nil, err
	}
	dev, err := driver.Device(ordinal)
	if err != nil {
		return nil, err
	}
	if err := dev.Bind(); err != nil {
		return nil, err
	}
	s, err := dev.NewStream()
	if err != nil {
		return nil, err
	}
	return &Card{Device: dev, kernels: NewKernels(), runner: cuda.NewRunner(dev, s, &cuda.Cache{Dir: cache})}, nil
}

// Reserve takes the arena of so many ranks. It is refused where the card has less memory free.
func (c *Card) Reserve(bytes, ranks int) error {
	free, total, err := c.Device.MemInfo()
	if err != nil {
		return err
	}
	const gib = 1 << 30
	if need := uint64(bytes) + margin; need > free {
		return fmt.Errorf("gpu: the ranks need %.1f GiB and %.1f GiB for the driver's kernels, the card has %.1f of %.1f GiB free", float64(bytes)/gib, float64(margin)/gib, float64(free)/gib, float64(total)/gib)
	}
	at, err := c.Device.Alloc(max(bytes, unit))
	if err != nil {
		return err
	}
	c.arena, c.ranks = &ptx.Buffer{Name: "arena", Device: uint64(at), Bytes: bytes}, ranks
	if c.words, err = c.Device.Alloc(4 * ranks); err != nil {
		return err
	}
	return c.Device.CopyIn(c.words, make([]byte, 4*ranks))
}

// margin is what the driver takes beside the arena while a program runs: kernels and their local memory, measured on an H200 (2026-12-01) to be below this.
const margin = 256 << 20

// Release gives the arena back.
func (c *Card) Release() error {
	if c.arena == nil {
		return nil
	}
	at := cuda.Ptr(c.arena.Device)
	c.arena = nil
	if err := c.Device.Free(at); err != nil {
		return err
	}
	return c.Device.Free(c.words)
}

// Queue is one rank's machine on a card: a stream.
type Queue struct {
	card   *Card
	rank   int
	stream *cuda.Stream
	point  uint32
	known  map[*ptx.Entry]map[string]ready
	key    []byte
}

// ready is a launch that was laid out before: a program makes the same ones in every step, but for numbers such as the learning rate.
type ready struct {
	launch *cuda.Prepared
	args   *cuda.Args
}

// mostReady bounds the launches of one kernel that are kept.
const mostReady = 4096

var _ Machine = (*Queue)(nil)

// Queue opens a rank's stream. The calling goroutine, which alone may use it, is bound to the card.
func (c *Card) Queue(rank int) (*Queue, error) {
	if err := c.Device.Bind(); err != nil {
		return nil, err
	}
	s, err := c.Device.NewStream()
	return &Queue{card: c, rank: rank, stream: s, known: map[*ptx.Entry]map[string]ready{}}, err
}

// Close ends the stream once its work is done.
func (q *Queue) Close() error { return q.stream.Close() }

// Arena is the card's.
func (q *Queue) Arena() *ptx.Buffer { return q.card.arena }

// Pointer is a device address.
func (q *Queue) Pointer(at int) unsafe.Pointer {
	p := q.card.arena.Device + uint64(at)
	return *(*unsafe.Pointer)(unsafe.Pointer(&p)) // no Go memory: the driver keeps its addresses apart
}

// SMs is the card's.
func (q *Queue) SMs() int { return q.card.Device.SMs }

func (q *Queue) ptr(at int) cuda.Ptr { return cuda.Ptr(q.card.arena.Device) + cuda.Ptr(at) }

// Launch queues a kernel.
func (q *Queue) Launch(label string, m *ptx.Module, l ptx.Launch, a *ptx.Args) error {
	r, err := q.ready(m, l, a)
	if err != nil {
		return err
	}
	return q.card.Profile.span(q, label, func() error { return r.launch.Launch(q.stream) })
}

// ready finds the launch among the known ones, or lays it out.
func (q *Queue) ready(m *ptx.Module, l ptx.Launch, a *ptx.Args) (ready, error) {
	e := m.Entry(l.Entry)
	all := q.known[e]
	if all == nil || len(all) >= mostReady {
		all = map[string]ready{}
		q.known[e] = all
	}
	q.identify(l, a)
	r, ok := all[string(q.key)]
	if ok {
		for i := range a.Len() {
			if v := a.At(i); v.Kind == ptx.KindF32 {
				r.args.Set(i, v.Bits)
			}
		}
		return r, nil
	}
	q.card.mu.Lock()
	defer q.card.mu.Unlock()
	var err error
	if r.launch, r.args, err = q.card.runner.PrepareArgs(m, l, a); err == nil {
		all[string(q.key)] = r
	}
	return r, err
}

// identify sets key to all that tells launches of a kernel apart, save float32 arguments.
func (q *Queue) identify(l ptx.Launch, a *ptx.Args) {
	word := func(v int) { q.key = binary.LittleEndian.AppendUint64(q.key, uint64(v)) }
	q.key = q.key[:0]
	word(l.Grid.X)
	for i := range a.Len() {
		v := a.At(i)
		switch {
		case v.Kind == ptx.KindF32:
		case v.Map != nil:
			word(int(v.Map.Buffer.Device) + v.Map.Offset)
			for _, sizes := range [][]int{v.Map.Dims, v.Map.Strides, v.Map.Box} {
				for _, n := range sizes {
					word(n)
				}
			}
		case v.Buffer != nil:
			word(int(v.Buffer.Device) + v.Offset)
		default:
			word(int(v.Bits))
		}
	}
}

// Zero queues a memset.
func (q *Queue) Zero(at, bytes int) error {
	return q.card.Profile.span(q, "zero", func() error { return q.stream.Fill(q.ptr(at), 0, bytes) })
}

// Copy queues a copy.
func (q *Queue) Copy(dst, src, bytes int) error {
	return q.card.Profile.span(q, "copy", func() error { return q.stream.Copy(q.ptr(dst), q.ptr(src), bytes) })
}

// Write waits for the queue and copies.
func (q *Queue) Write(at int, data []byte) error {
	if err := q.stream.Synchronize(); err != nil {
		return err
	}
	return q.card.Device.CopyIn(q.ptr(at), data)
}

// Read waits for the queue and copies.
func (q *Queue) Read(data []byte, at int) error {
	if err := q.stream.Synchronize(); err != nil {
		return err
	}
	return q.card.Device.CopyOut(data, q.ptr(at))
}

// Mark queues the write of the rank's next point.
func (q *Queue) Mark() (uint32, error) {
	q.point++
	return q.point, q.stream.WriteWord(q.card.words+cuda.Ptr(4*q.rank), q.point)
}

// After queues a wait for another rank's point.
func (q *Queue) After(rank int, point uint32) error {
	return q.stream.WaitWord(q.card.words+cuda.Ptr(4*rank), point)
}
