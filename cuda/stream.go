package cuda

import (
	"time"
	"unsafe"

	"heddle/internal/dl"
)

// Stream is a queue of work on a device. Streams of this package do not wait for the default stream.
type Stream struct {
	dev    *Device
	handle uintptr
}

// NewStream makes a stream.
func (dev *Device) NewStream() (*Stream, error) {
	const nonBlocking = 1 // CU_STREAM_NON_BLOCKING
	s := &Stream{dev: dev}
	return s, dev.driver.check("cuStreamCreate", dev.driver.api.streamCreate, uintptr(unsafe.Pointer(&s.handle)), nonBlocking)
}

// Handle is the CUstream, for libraries that take one.
func (s *Stream) Handle() uintptr { return s.handle }

func (s *Stream) check(name string, f dl.Func, words ...uintptr) error {
	return s.dev.driver.check(name, f, words...)
}

// Synchronize waits until the stream is empty, spinning.
func (s *Stream) Synchronize() error {
	return s.check("cuStreamSynchronize", s.dev.driver.api.streamSynchronize, s.handle)
}

// Idle tells whether the stream is empty.
func (s *Stream) Idle() (bool, error) {
	switch code := s.dev.driver.api.streamQuery.Call(s.handle); code {
	case 0:
		return true, nil
	case codeNotReady:
		return false, nil
	default:
		return false, s.dev.driver.failure("cuStreamQuery", code)
	}
}

// Close destroys the stream once its work is done.
func (s *Stream) Close() error {
	return s.check("cuStreamDestroy", s.dev.driver.api.streamDestroy, s.handle)
}

// Fill sets bytes of device memory to b.
func (s *Stream) Fill(dst Ptr, b byte, bytes int) error {
	return s.check("cuMemsetD8Async", s.dev.driver.api.memsetD8Async, uintptr(dst), uintptr(b), uintptr(bytes), s.handle)
}

// FillWords sets 32-bit words of device memory to w.
func (s *Stream) FillWords(dst Ptr, w uint32, words int) error {
	return s.check("cuMemsetD32Async", s.dev.driver.api.memsetD32Async, uintptr(dst), uintptr(w), uintptr(words), s.handle)
}

// Copy copies within device memory.
func (s *Stream) Copy(dst, src Ptr, bytes int) error {
	return s.check("cuMemcpyDtoDAsync", s.dev.driver.api.memcpyDtoDAsync, uintptr(dst), uintptr(src), uintptr(bytes), s.handle)
}

// CopyIn queues a copy of pinned memory to the device.
func (s *Stream) CopyIn(dst Ptr, src *Pinned, bytes int) error {
	return s.check("cuMemcpyHtoDAsync", s.dev.driver.api.memcpyHtoDAsync, uintptr(dst), src.address(), uintptr(min(bytes, len(src.Bytes))), s.handle)
}

// CopyOut queues a copy of device memory to pinned memory.
func (s *Stream) CopyOut(dst *Pinned, src Ptr, bytes int) error {
	return s.check("cuMemcpyDtoHAsync", s.dev.driver.api.memcpyDtoHAsync, dst.address(), uintptr(src), uintptr(min(bytes, len(dst.Bytes))), s.handle)
}

func (p *Pinned) address() uintptr { return uintptr(unsafe.Pointer(&p.Bytes[0])) }

// WaitWord holds the stream back until the 32-bit word at p is at least v.
func (s *Stream) WaitWord(p Ptr, v uint32) error {
	return s.check("cuStreamWaitValue32", s.dev.driver.api.streamWaitValue32, s.handle, uintptr(p), uintptr(v), 0)
}

// WriteWord writes v to the 32-bit word at p when the stream gets there.
func (s *Stream) WriteWord(p Ptr, v uint32) error {
	return s.check("cuStreamWriteValue32", s.dev.driver.api.streamWriteValue32, s.handle, uintptr(p), uintptr(v), 0)
}

// Event is a point in a stream that can be waited for and timed.
type Event struct {
	dev    *Device
	handle uintptr
}

// NewEvent makes an event that takes the time. Between two kernels of a PDL chain it ends their overlap: time such chains as a whole.
func (dev *Device) NewEvent() (*Event, error) {
	e := &Event{dev: dev}
	return e, dev.driver.check("cuEventCreate", dev.driver.api.eventCreate, uintptr(unsafe.Pointer(&e.handle)), 0)
}

// Record puts the event into a stream.
func (e *Event) Record(s *Stream) error {
	return s.check("cuEventRecord", e.dev.driver.api.eventRecord, e.handle, s.handle)
}

// Synchronize waits until the stream has passed the event.
func (e *Event) Synchronize() error {
	return e.dev.driver.check("cuEventSynchronize", e.dev.driver.api.eventSynchronize, e.handle)
}

// Since is the time on the device from an earlier event to e; both must have passed.
func (e *Event) Since(start *Event) (time.Duration, error) {
	var ms float32
	err := e.dev.driver.check("cuEventElapsedTime", e.dev.driver.api.eventElapsedTime, uintptr(unsafe.Pointer(&ms)), start.handle, e.handle)
	return time.Duration(float64(ms) * 1e6), err
}

// Wait holds a stream back until e has passed.
func (s *Stream) Wait(e *Event) error {
	return s.check("cuStreamWaitEvent", s.dev.driver.api.streamWaitEvent, s.handle, e.handle, 0)
}

// Close destroys the event.
func (e *Event) Close() error {
	return e.dev.driver.check("cuEventDestroy", e.dev.driver.api.eventDestroy, e.handle)
}

// NewEvent makes an event on the stream's device.
func (s *Stream) NewEvent() (*Event, error) { return s.dev.NewEvent() }
