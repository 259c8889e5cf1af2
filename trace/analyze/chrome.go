package analyze

import (
	"bytes"
	"fmt"
	"io"
	"strconv"

	"heddle/trace"
)

// chrome builds a Timeline from the events of a Chrome trace. Which program wrote it shows in the categories: Kineto
// has "kernel" and "cuda_runtime" (capitalised in 2021), JAX has none, but devices as processes. A heddle file says so.
type chrome struct {
	t       *Timeline
	names   names
	kinds   []nameKind // of names, as far as they were asked for
	streams rows
	threads rows
	groups  rows
	key     []byte
	heddle  bool
	process map[string]string // names of processes, by pid
	thread  map[string]string // names of threads, by pid/tid
	plain   []plain           // events without category, which JAX's are

	plainRows rows // their pid/tid
	open      map[uint32][]begun
}

// plain is an event that means nothing before its process has a name.
type plain struct {
	start, end, corr int64
	name             uint32
	row              uint32 // in plainRows
	copies, fills    bool
}

// begun is a B event that waits for its E.
type begun struct {
	name  uint32
	start int64
}

// readChrome reads a Chrome trace. What the file lacks is in the warnings; err says that it is none, or cannot be read.
func readChrome(r io.Reader, heddle bool) (*Timeline, error) {
	c := &chrome{t: &Timeline{Rank: -1, Devices: map[int]string{}}, names: newNames(), heddle: heddle,
		process: map[string]string{}, thread: map[string]string{}, open: map[uint32][]begun{}}
	flows := func(ph byte) bool { return ph == 's' || ph == 't' || ph == 'f' }
	scan, err := trace.ScanEvents(r, flows, c.event)
	t := c.t
	t.Read = scan.Events
	if err != nil && len(t.Work)+len(t.Ranges)+len(t.Calls)+len(c.plain) == 0 {
		return nil, err
	}
	if err != nil {
		t.Warnings = append(t.Warnings, fmt.Sprintf("reading stopped: %v", err))
	}
	c.finish(scan)
	return t, nil
}

func (c *chrome) event(e *trace.Raw) {
	switch e.Ph {
	case 'X':
		c.complete(e)
	case 'M':
		c.metadata(e)
	case 'B':
		if e.HasStart {
			th := c.threadOf(e)
			c.open[th] = append(c.open[th], begun{c.names.raw(e.Name), e.Start})
		}
	case 'E':
		th := c.threadOf(e)
		if stack := c.open[th]; len(stack) > 0 && e.HasStart {
			b := stack[len(stack)-1]
			c.open[th] = stack[:len(stack)-1]
			c.addRange(e, Named, b.name, b.start, e.Start)
		} else {
			c.t.drop("end without begin")
		}
	case 0:
		c.t.drop("no ph")
	}
}

// complete takes an X event: one that has a start and a duration.
func (c *chrome) complete(e *trace.Raw) {
	if !e.HasStart {
		c.t.drop("no time")
		return
	}
	if e.Dur < 0 {
		c.t.drop("negative duration")
		return
	}
	end := e.Start + e.Dur
	if end < e.Start {
		c.t.drop("time beyond all bounds")
		return
	}
	switch string(e.Cat) {
	case "kernel", "Kernel":
		c.work(e, Kernel)
	case trace.Collective:
		c.work(e, Comm)
	case "gpu_memcpy", "Memcpy":
		c.work(e, Copy)
	case "gpu_memset", "Memset":
		c.work(e, Fill)
	case "cuda_runtime", "cuda_driver", "Runtime", "hip_runtime", "hip_api":
		name := c.names.raw(e.Name)
		c.t.Calls = append(c.t.Calls, Call{Start: e.Start, End: end, Corr: argInt(e, "correlation", noCorr), Name: name, Thread: c.threadOf(e), Kind: c.kindOf(name).call})
	case "cuda_sync":
		c.wait(e)
	case "cpu_op", "Operator":
		c.addRange(e, Op, c.names.raw(e.Name), e.Start, end)
	case "python_function":
		c.addRange(e, Python, c.names.raw(e.Name), e.Start, end)
	case "user_annotation", "nvtx":
		c.addRange(e, Named, c.names.raw(e.Name), e.Start, end)
	case trace.Step:
		c.addRange(e, Step, c.names.raw(e.Name), e.Start, end)
	case "":
		c.plainEvent(e, end)
	case "Trace", "gpu_user_annotation", "overhead":
	default:
		c.addRange(e, Named, c.names.raw(e.Name), e.Start, end)
	}
}

func (c *chrome) work(e *trace.Raw, kind WorkKind) {
	device, stream := e.Arg("device"), e.Arg("stream")
	if len(device) == 0 || c.heddle {
		device = e.Pid
	}
	if len(stream) == 0 {
		stream = e.Tid // heddle's own names the stream where its kernels overlap, as under PDL: their rows are two then
	}
	dev, ok := trace.ParseInt(device)
	if !ok || dev < 0 || dev > 1<<20 {
		c.t.drop("no device")
		return
	}
	name := c.names.raw(e.Name)
	if kind == Kernel && c.kindOf(name).comm {
		kind = Comm
	}
	if !e.HasDur {
		c.t.drop("no duration, taken as 0")
	}
	process := uint32(0) // Kineto: a file is a process
	if c.heddle {
		process = uint32(dev)
	}
	bytes := argInt(e, "bytes", 0)
	s := c.streamAt(int(dev), stream, bytes)
	w := Work{Start: e.Start, End: e.Start + e.Dur, Corr: argInt(e, "correlation", noCorr), Bytes: bytes, Name: name, Stream: s, Process: process, Kind: kind}
	if kind == Comm {
		w.Group = c.group(e)
	}
	c.t.Work = append(c.t.Work, w)
}

// group is the group of ranks that a kernel communicates in: PyTorch says which ranks, or the group's name.
func (c *chrome) group(e *trace.Raw) uint16 {
	for _, arg := range []string{"Process Group Ranks", "Process Group Name", "group"} {
		if v := e.Arg(arg); len(v) > 0 {
			id, _ := c.groups.at(v)
			return uint16(min(id+1, 1<<16-1))
		}
	}
	return 0
}

func (c *chrome) streamAt(device int, stream []byte, bytes int64) uint32 {
	stream = bytesAfter(stream, "stream ")
	c.key = append(strconv.AppendInt(c.key[:0], int64(device), 10), '/')
	c.key = append(c.key, stream...)
	id, fresh := c.streams.at(c.key)
	if fresh {
		c.t.Streams = append(c.t.Streams, Stream{Device: device, Name: trace.Unescape(stream)})
	}
	c.t.Streams[id].Bytes += bytes
	return id
}

func (c *chrome) threadOf(e *trace.Raw) uint32 {
	c.key = append(append(append(c.key[:0], e.Pid...), '/'), e.Tid...)
	id, fresh := c.threads.at(c.key)
	if fresh {
		process := uint32(0)
		if pid, ok := trace.ParseInt(e.Pid); ok && c.heddle {
			process = uint32(pid)
		}
		c.t.Threads = append(c.t.Threads, Thread{Process: process, Name: string(c.key)})
	}
	return id
}

func (c *chrome) addRange(e *trace.Raw, kind RangeKind, name uint32, start, end int64) {
	if kind == Named && c.kindOf(name).step {
		kind = Step
	}
	if end < start {
		c.t.drop("negative duration")
		return
	}
	c.t.Ranges = append(c.t.Ranges, Range{Start: start, End: end, Name: name, Thread: c.threadOf(e), Kind: kind})
}

// nameKind is what a name tells.
type nameKind struct {
	call       CallKind
	comm, step bool
}

func (c *chrome) kindOf(name uint32) nameKind {
	for len(c.kinds) <= int(name) {
		n := c.names.all[len(c.kinds)]
		c.kinds = append(c.kinds, nameKind{callKind(n), isComm(n), isStep(n)})
	}
	return c.kinds[name]
}

// wait keeps Kineto's record of a stream that waits for another's event.
func (c *chrome) wait(e *trace.Raw) {
	if !bytes.Contains(e.Name, []byte("Wait")) {
		return // the waiting of the host is there as a call too
	}
	device, stream := e.Arg("device"), e.Arg("stream")
	if c.heddle {
		device, stream = e.Pid, e.Tid
	}
	dev, ok := trace.ParseInt(device)
	if !ok || dev < 0 || dev > 1<<20 || len(stream) == 0 || stream[0] == '-' {
		return
	}
	w := Wait{Start: e.Start, Corr: argInt(e, "correlation", noCorr), Stream: c.streamAt(int(dev), stream, 0), On: noStream}
	if on := e.Arg("wait_on_stream"); len(on) > 0 && on[0] != '-' {
		w.On = c.streamAt(int(dev), on, 0)
	}
	c.t.Waits = append(c.t.Waits, w)
}

func (c *chrome) metadata(e *trace.Raw) {
	name := e.Arg("name")
	switch string(e.Name) {
	case "process_name":
		c.process[string(e.Pid)] = trace.Unescape(name)
	case "thread_name":
		c.thread[string(e.Pid)+"/"+string(e.Tid)] = trace.Unescape(name)
	}
}

func argInt(e *trace.Raw, name string, missing int64) int64 {
	if n, ok := trace.ParseInt(e.Arg(name)); ok {
		return n
	}
	return missing
}

func bytesAfter(b []byte, prefix string) []byte {
	if rest, ok := bytes.CutPrefix(b, []byte(prefix)); ok {
		return rest
	}
	return b
}
