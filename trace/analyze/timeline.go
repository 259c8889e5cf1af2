// Package analyze reads timelines of other programs (PyTorch's Kineto, JAX, Nsight Systems) and of heddle, and says
// where the device waits and why.
//
// Open reads a file into a Timeline, Bubbles turns timelines into a Report: busy and idle per device, every gap with
// its cause and the evidence for it, and across ranks who waited for whom. Broken files give what can be read of them
// and a warning. Start with Open and Bubbles; the causes are decided in cause.go.
package analyze

import "heddle/trace"

// Timeline is what a file holds. Times are ns on the file's own clock, which its ranks may not share.
type Timeline struct {
	Source   string
	Format   string // as people call it: "Kineto", "JAX", "heddle", "Nsight Systems 2025.1"
	Rank     int    // -1 if the file does not say
	Names    []string
	Streams  []Stream
	Threads  []Thread
	Work     []Work  // on devices
	Calls    []Call  // of the driver and its runtime, on hosts
	Ranges   []Range // named by people or frameworks, on hosts
	Waits    []Wait
	Groups   []string       // of ranks that communicate; the first is unnamed
	Devices  map[int]string // names of the devices that the file describes
	Warnings []string
	Read     int64            // events or rows that were looked at
	Dropped  map[string]int64 // of those, not kept, by reason
}

// Stream is a queue of a device: its work runs in order.
type Stream struct {
	Device int
	Name   string
	Bytes  int64 // that went through its copies and collectives
}

// Thread is a thread of a process on the host.
type Thread struct {
	Process uint32
	Name    string
}

// Work is something that a device did.
type Work struct {
	Start, End int64
	Corr       int64 // correlation id of the call that launched it, noCorr if unknown
	Bytes      int64
	Name       uint32 // in Names
	Stream     uint32 // in Streams
	Process    uint32 // whose correlation id it is
	Group      uint16 // in Groups, of communication
	Kind       WorkKind
}

// WorkKind is what kind of work.
type WorkKind uint8

const (
	Kernel WorkKind = iota
	Comm            // a kernel that communicates with other ranks
	Copy
	Fill
	Graph // a whole graph, recorded without its kernels
)

// IsKernel tells whether the work counts as a kernel: busy time is the union of those.
func (k WorkKind) IsKernel() bool { return k <= Comm }

// Call is a call into the driver or its runtime.
type Call struct {
	Start, End int64
	Corr       int64
	Name       uint32
	Thread     uint32 // in Threads
	Kind       CallKind
}

// CallKind is what a call means for the device.
type CallKind uint8

const (
	OtherCall CallKind = iota
	LaunchCall
	SyncCall    // waits for the device
	CopyCall    // starts a copy, and may wait for it
	RecordEvent // between two kernels it costs their overlap
)

// Range is a span of time on a host that has a name.
type Range struct {
	Start, End int64
	Name       uint32
	Thread     uint32
	Kind       RangeKind
}

// RangeKind tells who named a range.
type RangeKind uint8

const (
	Op     RangeKind = iota // an operator of the framework
	Python                  // a Python function
	Named                   // NVTX, user annotations, heddle's phases
	Step                    // one of the above that is a training step
	System                  // a call of the operating system
)

// Wait says that from Start on a stream waits for what another had queued.
type Wait struct {
	Start int64 // when the host asked for it
	Corr  int64
	// Streams; On is noStream if the file does not say.
	Stream, On uint32
}

const (
	noCorr   = -1
	noStream = 1<<32 - 1
)

// names gives every distinct name a number.
type names struct {
	ids map[string]uint32
	all []string
}

func newNames() names { return names{ids: map[string]uint32{}} }

// raw is the number of a name as it stands in JSON.
func (n *names) raw(b []byte) uint32 {
	if id, ok := n.ids[string(b)]; ok {
		return id
	}
	return n.add(string(b), trace.Unescape(b))
}

func (n *names) text(s string) uint32 {
	if id, ok := n.ids[s]; ok {
		return id
	}
	return n.add(s, s)
}

func (n *names) add(key, name string) uint32 {
	id := uint32(len(n.all))
	n.ids[key] = id
	n.all = append(n.all, name)
	return id
}

// rows numbers things that are known by a key.
type rows struct {
	ids  map[string]uint32
	keys []string
	id   uint32 // of the previous call, most often the next one's too
}

// at is the number of key; fresh if it is new.
func (r *rows) at(key []byte) (id uint32, fresh bool) {
	if len(r.keys) > 0 && string(key) == r.keys[r.id] {
		return r.id, false
	}
	id, ok := r.ids[string(key)]
	if !ok {
		if r.ids == nil {
			r.ids = map[string]uint32{}
		}
		id = uint32(len(r.keys))
		r.keys = append(r.keys, string(key))
		r.ids[r.keys[id]] = id
	}
	r.id = id
	return id, !ok
}

// rankOf is the rank that a device belongs to, -1 if the file does not say. In heddle's files a device is a rank.
func (t *Timeline) rankOf(device int) int {
	if t.Format == heddleFormat {
		return device
	}
	return t.Rank
}

const heddleFormat = "heddle"

// drop counts an event that was not kept.
func (t *Timeline) drop(reason string) {
	if t.Dropped == nil {
		t.Dropped = map[string]int64{}
	}
	t.Dropped[reason]++
}
