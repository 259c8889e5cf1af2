package emulate

import (
	"encoding/binary"
	"fmt"
	"strings"

	"heddle/ptx"
)

// Kind is the kind of a fault.
type Kind string

const (
	Deadlock      Kind = "deadlock"      // a warp waits for what cannot come
	Endless       Kind = "endless"       // the launch does not end
	Race          Kind = "race"          // two accesses that nothing orders
	Proxy         Kind = "proxy"         // the async proxy reads what no fence made visible to it
	Uninitialised Kind = "uninitialised" // memory that nothing has written
	Bounds        Kind = "bounds"        // outside a buffer or shared memory
	Alignment     Kind = "alignment"
	Barrier       Kind = "barrier" // an mbarrier or named barrier used wrongly
	Phase         Kind = "phase"   // a phase that completes before its bytes are there
	Exit          Kind = "exit"    // shared memory touched after its CTA may have ended
	Diverged      Kind = "diverged"
	Accumulator   Kind = "accumulator" // registers touched while wgmma owns them
	Operand       Kind = "operand"     // a matrix operand that is not the tile it should be
	Registers     Kind = "registers"
)

// Fault is one thing that the kernel does wrong.
type Fault struct {
	Kind   Kind
	Line   string // of the instruction that shows it
	Other  string // of the instruction it collides with, or ""
	Object string // barrier or shared region concerned, or ""
	Role   string
	CTA    int // in the grid
	Warp   int // in the CTA; −1 where no warp does it
	Lanes  uint32
	Text   string
}

func (f Fault) String() string {
	who := ""
	if f.Warp >= 0 {
		who = fmt.Sprintf(" CTA %d %s warp %d lanes %08x:", f.CTA, f.Role, f.Warp, f.Lanes)
	}
	return fmt.Sprintf("%s: %s:%s %s", f.Line, f.Kind, who, f.Text)
}

// Report is the faults of one launch, in the order they were found; for a deadlock its causes first.
type Report struct {
	Kernel string
	Faults []Fault
	seen   map[string]bool
	limit  int
}

func (r *Report) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "emulate: %s: %d faults", r.Kernel, len(r.Faults))
	for _, f := range r.Faults {
		b.WriteString("\n\t" + f.String())
	}
	return b.String()
}

func (f Fault) key() string {
	if f.Kind == Deadlock {
		return string(f.Kind) + f.Line + f.Object
	}
	return string(f.Kind) + f.Line + f.Other
}

func (r *Report) has(f Fault) bool { return r.seen[f.key()] }

// add keeps the first fault of each kind and pair of lines.
func (r *Report) add(f Fault) {
	if r.has(f) || len(r.Faults) >= r.limit {
		return
	}
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	r.seen[f.key()] = true
	r.Faults = append(r.Faults, f)
}

// line is where the author wrote the instruction at pc.
func (m *machine) line(pc int32) string {
	if pc < 0 || m.code[pc].in == nil {
		return ""
	}
	if m.lines == nil {
		m.lines = make([]string, len(m.code))
	}
	if m.lines[pc] == "" {
		m.lines[pc] = m.code[pc].in.Line.String()
	}
	return m.lines[pc]
}

func (m *machine) full() bool { return len(m.report.Faults) >= m.opt.Stop }

// fault reports what the warp's current instruction does wrong.
func (w *warp) fault(k Kind, other int32, object, format string, args ...any) {
	w.m.report.add(Fault{
		Kind: k, Line: w.m.line(w.at), Other: w.m.line(other), Object: object, Role: w.m.role(w.id), CTA: w.t.index, Warp: w.id, Lanes: w.mask,
		Text: fmt.Sprintf(format, args...),
	})
}

// faultAt reports what an asynchronous operation, issued at pc, does wrong.
func (m *machine) faultAt(k Kind, t *cta, pc, other int32, object, format string, args ...any) {
	m.report.add(Fault{Kind: k, Line: m.line(pc), Other: m.line(other), Object: object, CTA: t.index, Warp: -1, Text: fmt.Sprintf(format, args...)})
}

// role is the name of the role that a warp plays.
func (m *machine) role(warp int) string {
	for _, r := range m.entry.Roles {
		if warp/4 >= r.Warpgroups[0] && warp/4 < r.Warpgroups[1] {
			return r.Name
		}
	}
	return ""
}

// object names the place in shared memory: a barrier or the region.
func (m *machine) object(off int) string {
	if n, ok := m.entry.Bars[off&^7]; ok {
		return n
	}
	for _, r := range m.entry.Regions {
		if off >= r.Off && off < r.Off+r.Bytes {
			return r.Name
		}
	}
	return ""
}

// trace remembers that the instruction at pc touches the place.
func (m *machine) trace(pc int32, off int) {
	if m.opt.Trace != nil {
		m.traceName(pc, m.object(off))
	}
}

func (m *machine) traceName(pc int32, object string) {
	if m.opt.Trace == nil {
		return
	}
	in := m.code[pc].in
	if m.opt.Trace[in] == nil {
		m.opt.Trace[in] = map[string]bool{}
	}
	m.opt.Trace[in][object] = true
}

// place is a shared offset for people: region and byte.
func (m *machine) place(off int) string {
	if n, ok := m.entry.Bars[off]; ok {
		return n
	}
	for _, r := range m.entry.Regions {
		if off >= r.Off && off < r.Off+r.Bytes {
			return fmt.Sprintf("%s+%d", r.Name, off-r.Off)
		}
	}
	return fmt.Sprintf("shared byte %d", off)
}

// Counts is what a launch did.
type Counts struct {
	Executed  map[ptx.Op]int64 `json:"executed"`        // warp instructions, by opcode
	Steps     int64            `json:"steps"`           // warp instructions and steps of constructs in all
	MMAs      int64            `json:"wgmma"`           // by warpgroup
	LoadBytes int64            `json:"tma_load_bytes"`  // into shared memory, a multicast counted once
	TileBytes int64            `json:"tma_tile_bytes"`  // … and once for each CTA that received it
	SaveBytes int64            `json:"tma_store_bytes"` // to global memory
	Waits     int64            `json:"mbarrier_waits"`  // that found their phase incomplete
	Shared    int64            `json:"shared_accesses"` // by warps: ld, st and their matrix forms
	Wavefront int64            `json:"wavefronts"`      // they took
	Least     int64            `json:"wavefronts_without_conflicts"`
}

// watch tells the watcher what the lane's instruction under way did.
func (w *warp) watch(lane, off int, at [5]int, words []uint32) {
	if w.m.opt.Watch != nil {
		w.m.opt.Watch(Event{w.m.code[w.at].in, w.id, lane, off, words, at})
	}
}

// watchBytes is watch of bytes that the lane has just written to its CTA's shared memory.
func (w *warp) watchBytes(lane int, addr uint32, p []byte) {
	if w.m.opt.Watch == nil {
		return
	}
	words := make([]uint32, len(p)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(p[4*i:])
	}
	off, _ := w.own(addr)
	w.watch(lane, off, [5]int{}, words)
}
