package analyze

import (
	"bytes"
	"strings"

	"heddle/trace"
)

// plainEvent keeps an event without category until its process has a name.
func (c *chrome) plainEvent(e *trace.Raw, end int64) {
	name := c.names.raw(e.Name)
	corr := argInt(e, "correlation_id", noCorr)
	if bytes.HasPrefix(e.Name, []byte("cu")) || bytes.HasPrefix(e.Name, []byte("hip")) {
		c.t.Calls = append(c.t.Calls, Call{Start: e.Start, End: end, Corr: corr, Name: name, Thread: c.threadOf(e), Kind: c.kindOf(name).call})
		return
	}
	c.key = append(append(append(c.key[:0], e.Pid...), '/'), e.Tid...)
	row, _ := c.plainRows.at(c.key)
	c.plain = append(c.plain, plain{start: e.Start, end: end, corr: corr, name: name, row: row,
		copies: len(e.Arg("memcpy_details")) > 0 || bytes.HasPrefix(e.Name, []byte("Memcpy")), fills: len(e.Arg("memset_details")) > 0 || bytes.HasPrefix(e.Name, []byte("Memset"))})
}

// resolvePlain turns events without category into work where their process is a device and their thread one of its
// streams, else into ranges. It tells whether there was a device.
//
// JAX gives a device further rows ("XLA Modules", "XLA Ops", "Steps") that repeat the work under other names. On a
// TPU, which has no streams, "XLA Ops" is the work.
func (c *chrome) resolvePlain() (found bool) {
	for _, p := range c.plain {
		key := c.plainRows.keys[p.row]
		pid, _, _ := strings.Cut(key, "/")
		process, row := c.process[pid], c.thread[key]
		if !strings.HasPrefix(process, "/device:") || strings.HasPrefix(process, "/device:CUSTOM") {
			c.t.Ranges = append(c.t.Ranges, Range{Start: p.start, End: p.end, Name: p.name, Thread: c.plainThread(key), Kind: c.plainKind(p.name)})
			continue
		}
		tpu := strings.HasPrefix(process, "/device:TPU") && row == "XLA Ops"
		if !tpu && !strings.HasPrefix(row, "Stream") {
			continue
		}
		found = true
		device := 0
		if n, ok := trace.ParseInt([]byte(process[strings.LastIndexByte(process, ':')+1:])); ok && n >= 0 && n < 1<<20 {
			device = int(n)
		}
		c.t.Devices[device] = process
		kind := Kernel
		switch {
		case p.copies:
			kind = Copy
		case p.fills:
			kind = Fill
		case c.kindOf(p.name).comm:
			kind = Comm
		}
		c.t.Work = append(c.t.Work, Work{Start: p.start, End: p.end, Corr: p.corr, Name: p.name, Stream: c.streamAt(device, []byte(row), 0), Kind: kind})
	}
	c.plain = nil
	return found
}

func (c *chrome) plainKind(name uint32) RangeKind {
	if c.kindOf(name).step {
		return Step
	}
	return Named
}

func (c *chrome) plainThread(key string) uint32 {
	id, fresh := c.threads.at([]byte(key))
	if fresh {
		c.t.Threads = append(c.t.Threads, Thread{Name: key})
	}
	return id
}
