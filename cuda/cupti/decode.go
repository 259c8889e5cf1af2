package cupti

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"heddle/trace"
)

// record is a record and what follows it in the buffer. The layouts are those of cupti_activity.h (CUpti_ActivityKernel9, Memcpy6, Memset4, API, Synchronization, Overhead), whose later
// versions only grow at the end; fields were checked against known launches.
type record []byte

func (r record) u8(at int) uint8   { return r[at] }
func (r record) u16(at int) uint16 { return binary.LittleEndian.Uint16(r[at:]) }
func (r record) u32(at int) uint32 { return binary.LittleEndian.Uint32(r[at:]) }
func (r record) u64(at int) uint64 { return binary.LittleEndian.Uint64(r[at:]) }

// sizes are the bytes of each kind that are read.
var sizes = map[kind]int{kindMemcpy: 80, kindMemset: 72, kindDriver: 40, kindRuntime: 40, kindKernel: 208, kindOverhead: 40, kindSync: 40}

// decoder turns records into events.
type decoder struct {
	lib   *Library
	rank  int
	found *Found
	names map[call]string
}

// call is a driver or runtime function by its number.
type call struct {
	domain uint32
	id     uint32
}

func (d *decoder) record(r record) {
	if len(r) < 4 || sizes[kind(r.u32(0))] == 0 || len(r) < sizes[kind(r.u32(0))] {
		d.found.Unknown++
		return
	}
	var e trace.Event
	switch kind(r.u32(0)) {
	case kindKernel:
		e = d.kernel(r)
	case kindMemcpy:
		e = d.copied(r)
	case kindMemset:
		e = trace.Event{Name: "memset", Cat: trace.Fill, Track: stream(r.u32(40))}
		e = between(e, r.u64(16), r.u64(24))
		e.Args = []trace.Arg{trace.Int("correlation", int64(r.u32(44))), trace.Int("bytes", int64(r.u64(8)))}
	case kindDriver, kindRuntime:
		e = d.called(r)
	case kindSync:
		if r.u32(4) != streamWaitsEvent {
			return // the host's waits are driver calls too, and are left to them
		}
		e = synchronised(r)
	case kindOverhead:
		e = between(trace.Event{Name: overhead(r.u32(4)), Cat: "overhead", Track: "cupti"}, r.u64(24), r.u64(32))
	}
	if e.Cat == "" || e.Dur < 0 || e.Start <= 0 {
		d.found.Unknown++
		return
	}
	e.Rank = d.rank
	d.found.Events = append(d.found.Events, e)
}

func between(e trace.Event, start, end uint64) trace.Event {
	e.Start, e.Dur = int64(start), int64(end-start)
	return e
}

func stream(id uint32) trace.Track { return trace.Track(fmt.Sprintf("stream %d", id)) }

func (d *decoder) kernel(r record) trace.Event {
	e := between(trace.Event{Name: d.name(r), Cat: trace.Kernel, Track: stream(r.u32(48))}, r.u64(16), r.u64(24))
	e.Args = []trace.Arg{
		trace.Int("correlation", int64(r.u32(92))), trace.Int("stream", int64(r.u32(48))), trace.Text("grid", dims(r, 52)), trace.Text("block", dims(r, 64)),
		trace.Int("shared", int64(r.u32(76)+r.u32(80))), trace.Int("registers", int64(r.u16(6))),
	}
	if node := r.u64(144); node != 0 {
		e.Args = append(e.Args, trace.Int("graph node", int64(node)))
	}
	return e
}

// name is the kernel's, a string of the driver that lives as long as its module.
func (d *decoder) name(r record) string {
	p := uintptr(r.u64(104))
	if p == 0 {
		return "kernel"
	}
	return text(*(**byte)(unsafe.Pointer(&p)))
}

func dims(r record, at int) string {
	return fmt.Sprintf("%d×%d×%d", r.u32(at), r.u32(at+4), r.u32(at+8))
}

func (d *decoder) copied(r record) trace.Event {
	kinds := map[uint8]string{1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
	name := kinds[r.u8(4)]
	if name == "" {
		name = fmt.Sprintf("kind %d", r.u8(4))
	}
	e := between(trace.Event{Name: "memcpy " + name, Cat: trace.Copy, Track: stream(r.u32(40))}, r.u64(16), r.u64(24))
	e.Args = []trace.Arg{trace.Int("correlation", int64(r.u32(44))), trace.Int("bytes", int64(r.u64(8)))}
	return e
}

// called is a call into the driver or the runtime.
func (d *decoder) called(r record) trace.Event {
	c := call{domain: 1, id: r.u32(4)} // CUPTI_CB_DOMAIN_DRIVER_API
	if kind(r.u32(0)) == kindRuntime {
		c.domain = 2
	}
	name, ok := d.names[c]
	if !ok {
		name = d.lib.nameOf(c)
		d.names[c] = name
	}
	e := between(trace.Event{Name: name, Cat: trace.Launch, Track: trace.Track(fmt.Sprintf("thread %d", r.u32(28)))}, r.u64(8), r.u64(16))
	e.Args = []trace.Arg{trace.Int("correlation", int64(r.u32(32)))}
	if code := r.u32(36); code != 0 {
		e.Args = append(e.Args, trace.Int("status", int64(code)))
	}
	return e
}

// nameOf asks CUPTI for a function's name.
func (l *Library) nameOf(c call) string {
	var s *byte // a string of the library
	if l.callbackName.Call(uintptr(c.domain), uintptr(c.id), uintptr(unsafe.Pointer(&s))) != 0 || s == nil {
		return fmt.Sprintf("call %d of domain %d", c.id, c.domain)
	}
	return text(s)
}

const streamWaitsEvent = 2 // CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT

// synchronised is a stream that waits for another's event.
func synchronised(r record) trace.Event {
	e := between(trace.Event{Name: "Stream Wait Event", Cat: trace.Wait, Track: stream(r.u32(32))}, r.u64(8), r.u64(16))
	e.Args = []trace.Arg{trace.Int("correlation", int64(r.u32(24)))}
	return e
}

func overhead(kind uint32) string {
	switch kind {
	case 1:
		return "compiler"
	case 1 << 16:
		return "flush of records"
	case 2 << 16:
		return "instrumentation"
	case 3 << 16:
		return "resource"
	}
	return "overhead"
}
