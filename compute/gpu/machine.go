package gpu

import (
	"fmt"
	"unsafe"

	"heddle/ptx"
)

// Machine queues one rank's work, in order. All its memory is one arena, which the ranks of a card share; At counts from its start.
type Machine interface {
	Arena() *ptx.Buffer
	Pointer(at int) unsafe.Pointer // of the machine's address at that place
	SMs() int

	Launch(label string, m *ptx.Module, l ptx.Launch, a *ptx.Args) error // label is for profiles
	Zero(at, bytes int) error
	Copy(dst, src, bytes int) error
	// Write and Read wait: for what is queued, and until the data are there.
	Write(at int, data []byte) error
	Read(data []byte, at int) error

	// Mark is a point of the queue that it has not passed yet; After holds the queue back until another rank has passed its point.
	Mark() (value uint32, err error)
	After(rank int, value uint32) error
}

// Emulated runs each launch at once on a Runner that works on host memory: the emulator.
type Emulated struct {
	run   ptx.Runner
	arena *ptx.Buffer
	sms   int
}

// NewEmulated makes an arena of so many bytes in host memory, filled with NaN, for a device of so many SMs.
func NewEmulated(run ptx.Runner, bytes, sms int) *Emulated {
	b := &ptx.Buffer{Name: "arena", Data: make([]byte, bytes)}
	for i := range b.Data {
		b.Data[i] = 0xff
	}
	return &Emulated{run, b, sms}
}

var _ Machine = (*Emulated)(nil)

// Arena is the memory.
func (e *Emulated) Arena() *ptx.Buffer { return e.arena }

// Pointer is a host address.
func (e *Emulated) Pointer(at int) unsafe.Pointer { return unsafe.Pointer(&e.arena.Data[at]) }

// SMs is what NewEmulated was told.
func (e *Emulated) SMs() int { return e.sms }

// Launch runs the kernel.
func (e *Emulated) Launch(_ string, m *ptx.Module, l ptx.Launch, a *ptx.Args) error {
	return e.run.Run(m, l, a)
}

// Zero clears memory.
func (e *Emulated) Zero(at, bytes int) error {
	clear(e.arena.Data[at : at+bytes])
	return nil
}

// Copy copies within the arena.
func (e *Emulated) Copy(dst, src, bytes int) error {
	copy(e.arena.Data[dst:dst+bytes], e.arena.Data[src:src+bytes])
	return nil
}

// Write copies host data to the arena.
func (e *Emulated) Write(at int, data []byte) error {
	if n := copy(e.arena.Data[at:], data); n < len(data) {
		return fmt.Errorf("gpu: %d bytes at %d of an arena of %d", len(data), at, len(e.arena.Data))
	}
	return nil
}

// Read copies from the arena.
func (e *Emulated) Read(data []byte, at int) error {
	copy(data, e.arena.Data[at:])
	return nil
}

// Mark has nothing to mark: nothing is queued.
func (e *Emulated) Mark() (uint32, error) { return 0, nil }

// After has nothing to wait for.
func (e *Emulated) After(int, uint32) error { return nil }
