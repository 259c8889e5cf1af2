package analyze

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"heddle/trace/sqlite"
)

// nsight builds a Timeline from an SQLite export of Nsight Systems. Exports differ by version in which tables there
// are, what they are called (a _V2 behind the name) and which columns they have: all that is asked for by name.
type nsight struct {
	f       *sqlite.File
	t       *Timeline
	names   names
	strings map[int64]uint32 // StringIds
	threads rows
	streams rows
	key     []byte
}

func readNsight(r io.ReaderAt, size int64) (*Timeline, error) {
	f, err := sqlite.Open(r, size)
	if err != nil {
		return nil, err
	}
	n := &nsight{f: f, t: &Timeline{Rank: -1, Format: "Nsight Systems", Devices: map[int]string{}}, names: newNames(), strings: map[int64]uint32{}}
	if n.table("StringIds") == nil && n.table("CUPTI_ACTIVITY_KIND_KERNEL") == nil && n.table("CUPTI_ACTIVITY_KIND_RUNTIME") == nil {
		return nil, fmt.Errorf("SQLite file with %d tables, none of them Nsight's; hint: nsys export --type sqlite report.nsys-rep", len(f.Tables))
	}
	for _, table := range []string{"META_DATA_EXPORT", "EXPORT_META_DATA"} {
		n.each(table, []string{"name", "value"}, func(v []sqlite.Value) {
			if string(v[0].Bytes) == "EXPORT_PRODUCT_VERSION" {
				n.t.Format = "Nsight Systems " + string(v[1].Bytes)
			}
		})
	}
	n.each("StringIds", []string{"id", "value"}, func(v []sqlite.Value) { n.strings[v[0].Int] = n.names.text(string(v[1].Bytes)) })
	n.each("TARGET_INFO_GPU", []string{"id", "name"}, func(v []sqlite.Value) { n.t.Devices[int(v[0].Int)] = string(v[1].Bytes) })
	n.work()
	n.calls()
	n.ranges()
	n.t.Names, n.t.Groups = n.names.all, []string{""}
	if n.t.Read == 0 && n.table("CUPTI_ACTIVITY_KIND_KERNEL") == nil {
		n.t.Warnings = append(n.t.Warnings, "no table CUPTI_ACTIVITY_KIND_KERNEL; hint: record with nsys profile --trace=cuda,nvtx")
	}
	if m := f.Missing(); m > 0 {
		n.t.Warnings = append(n.t.Warnings, fmt.Sprintf("the file is cut: %d of %d pages are missing; what follows is of the rest", m, uint32(m)+f.Pages))
	}
	if f.Lost > 0 {
		n.t.Warnings = append(n.t.Warnings, fmt.Sprintf("%d pages or rows could not be read", f.Lost))
	}
	return n.t, nil
}

// table finds a table under its name or a later version's.
func (n *nsight) table(name string) *sqlite.Table {
	if t := n.f.Table(name); t != nil {
		return t
	}
	var best *sqlite.Table
	version := 0
	for _, t := range n.f.Tables {
		if rest, ok := strings.CutPrefix(t.Name, name+"_V"); ok {
			if v, err := strconv.Atoi(rest); err == nil && v > version {
				best, version = t, v
			}
		}
	}
	return best
}

func (n *nsight) each(table string, columns []string, row func([]sqlite.Value)) {
	t := n.table(table)
	if t == nil {
		return
	}
	n.f.Scan(t, columns, func(v []sqlite.Value) error { row(v); return nil }) // row returns no error, so neither does Scan
}

// spans is each for tables of things that took time; start and end are the first two columns.
func (n *nsight) spans(table string, columns []string, row func(start, end int64, v []sqlite.Value)) {
	n.each(table, append([]string{"start", "end"}, columns...), func(v []sqlite.Value) {
		n.t.Read++
		start, end := v[0], v[1]
		switch {
		case start.Kind != sqlite.Integer:
			n.t.drop("no time")
		case end.Kind != sqlite.Integer:
			n.t.drop("no end")
		case end.Int < start.Int:
			n.t.drop("negative duration")
		default:
			row(start.Int, end.Int, v[2:])
		}
	})
}

// process is the part of a global id that names the process: all but the thread's 24 bits.
func process(globalID int64) uint32 { return uint32(globalID >> 24) }

func (n *nsight) work() {
	add := func(kind WorkKind, start, end int64, v []sqlite.Value, name uint32, bytes int64) {
		if v[0].Kind != sqlite.Integer {
			n.t.drop("no device")
			return
		}
		n.t.Work = append(n.t.Work, Work{Start: start, End: end, Corr: corr(v[2]), Bytes: bytes, Name: name,
			Stream: n.stream(v[0].Int, v[1].Int, bytes), Process: process(v[3].Int), Kind: kind})
	}
	common := []string{"deviceId", "streamId", "correlationId", "globalPid"}
	comm := map[uint32]bool{}
	n.spans("CUPTI_ACTIVITY_KIND_KERNEL", append(common, "demangledName", "shortName", "name"), func(start, end int64, v []sqlite.Value) {
		name := n.nameOf(v[4], v[5], v[6])
		is, known := comm[name]
		if !known {
			is = isComm(n.names.all[name])
			comm[name] = is
		}
		kind := Kernel
		if is {
			kind = Comm
		}
		add(kind, start, end, v, name, 0)
	})
	kinds := map[int64]uint32{}
	n.spans("CUPTI_ACTIVITY_KIND_MEMCPY", append(common, "copyKind", "bytes"), func(start, end int64, v []sqlite.Value) {
		name, ok := kinds[v[4].Int]
		if !ok {
			name = n.names.text("Memcpy " + copyKind(v[4].Int))
			kinds[v[4].Int] = name
		}
		add(Copy, start, end, v, name, v[5].Int)
	})
	fill := n.names.text("Memset")
	n.spans("CUPTI_ACTIVITY_KIND_MEMSET", append(common, "bytes"), func(start, end int64, v []sqlite.Value) {
		add(Fill, start, end, v, fill, v[4].Int)
	})
	graph := n.names.text("graph without its kernels")
	n.spans("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", common, func(start, end int64, v []sqlite.Value) { add(Graph, start, end, v, graph, 0) })
	n.spans("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", append(common, "syncType"), func(start, _ int64, v []sqlite.Value) {
		const streamWaitsForEvent = 2
		if v[4].Int == streamWaitsForEvent {
			n.t.Waits = append(n.t.Waits, Wait{Start: start, Corr: corr(v[2]), Stream: n.stream(v[0].Int, v[1].Int, 0), On: noStream})
		}
	})
}

// copyKind are CUPTI's CUpti_ActivityMemcpyKind.
func copyKind(k int64) string {
	if k >= 1 && k <= 10 {
		return [...]string{"HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"}[k-1]
	}
	return "kind " + strconv.FormatInt(k, 10)
}

func (n *nsight) calls() {
	kinds := map[uint32]CallKind{}
	for _, table := range []string{"CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"} {
		n.spans(table, []string{"globalTid", "correlationId", "nameId", "name", "cbid"}, func(start, end int64, v []sqlite.Value) {
			name := n.nameOf(v[2], v[3])
			if v[2].Kind == sqlite.Null && v[3].Kind == sqlite.Null {
				name = n.names.text("call " + strconv.FormatInt(v[4].Int, 10))
			}
			kind, ok := kinds[name]
			if !ok {
				kind = callKind(n.names.all[name])
				kinds[name] = kind
			}
			n.t.Calls = append(n.t.Calls, Call{Start: start, End: end, Corr: corr(v[1]), Name: name, Thread: n.thread(v[0].Int), Kind: kind})
		})
	}
}

func (n *nsight) ranges() {
	const pushPop, startEnd = 59, 60 // ENUM_NSYS_EVENT_TYPE
	steps := map[uint32]bool{}
	n.each("NVTX_EVENTS", []string{"start", "end", "eventType", "text", "textId", "globalTid"}, func(v []sqlite.Value) {
		n.t.Read++
		if v[2].Int != pushPop && v[2].Int != startEnd {
			return
		}
		if v[0].Kind != sqlite.Integer || v[1].Kind != sqlite.Integer || v[1].Int < v[0].Int {
			n.t.drop("NVTX range without end")
			return
		}
		name := n.nameOf(v[4], v[3])
		step, known := steps[name]
		if !known {
			step = isStep(n.names.all[name])
			steps[name] = step
		}
		kind := Named
		if step {
			kind = Step
		}
		n.t.Ranges = append(n.t.Ranges, Range{Start: v[0].Int, End: v[1].Int, Name: name, Thread: n.thread(v[5].Int), Kind: kind})
	})
	n.spans("OSRT_API", []string{"globalTid", "nameId"}, func(start, end int64, v []sqlite.Value) {
		n.t.Ranges = append(n.t.Ranges, Range{Start: start, End: end, Name: n.nameOf(v[1]), Thread: n.thread(v[0].Int), Kind: System})
	})
}

// nameOf is the name in the first of the values that has one: the id of a string, or the string itself.
func (n *nsight) nameOf(values ...sqlite.Value) uint32 {
	for _, v := range values {
		switch v.Kind {
		case sqlite.Integer:
			if id, ok := n.strings[v.Int]; ok {
				return id
			}
		case sqlite.Text:
			return n.names.raw(v.Bytes)
		}
	}
	return n.names.text("(no name)")
}

func corr(v sqlite.Value) int64 {
	if v.Kind != sqlite.Integer {
		return noCorr
	}
	return v.Int
}

func (n *nsight) stream(device, stream, bytes int64) uint32 {
	n.key = strconv.AppendInt(append(strconv.AppendInt(n.key[:0], device, 10), '/'), stream, 10)
	id, fresh := n.streams.at(n.key)
	if fresh {
		n.t.Streams = append(n.t.Streams, Stream{Device: int(device), Name: strconv.FormatInt(stream, 10)})
	}
	n.t.Streams[id].Bytes += bytes
	return id
}

func (n *nsight) thread(globalTid int64) uint32 {
	n.key = strconv.AppendInt(n.key[:0], globalTid, 10)
	id, fresh := n.threads.at(n.key)
	if fresh {
		pid, tid := globalTid>>24&0xffffff, globalTid&0xffffff
		n.t.Threads = append(n.t.Threads, Thread{Process: process(globalTid), Name: fmt.Sprintf("process %d thread %d", pid, tid)})
	}
	return id
}
