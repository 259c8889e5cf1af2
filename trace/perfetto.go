package trace

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"io"
	"slices"
	"strconv"
)

// WritePerfetto writes events as a Perfetto trace (protobuf), which ui.perfetto.dev opens and which is smaller than
// JSON. Field numbers are of perfetto's protos/perfetto/trace: trace_packet, track_descriptor, track_event.
func WritePerfetto(w io.Writer, events []Event) error {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.Dur, a.Dur))
	})
	p := packets{w: bufio.NewWriterSize(w, 1<<16)}
	rows := rows{lanes: map[rowKey][]int{}, tracks: map[int]int{}}
	type lane struct {
		uuid uint64
		ends []int64 // of open spans, outermost first
	}
	lanes := map[[2]int]*lane{}
	for _, e := range events {
		at, fresh := rows.place(e)
		key := [2]int{e.Rank, at.id}
		l := lanes[key]
		if fresh {
			if rows.tracks[e.Rank] == 1 {
				p.process(e.Rank)
			}
			l = &lane{uuid: uint64(len(lanes) + 1)}
			lanes[key] = l
			p.thread(l.uuid, e, at)
		}
		for len(l.ends) > 0 && l.ends[len(l.ends)-1] <= e.Start {
			p.end(l.uuid, l.ends[len(l.ends)-1])
			l.ends = l.ends[:len(l.ends)-1]
		}
		p.begin(l.uuid, e)
		l.ends = append(l.ends, e.Start+e.Dur)
	}
	keys := make([][2]int, 0, len(lanes))
	for k := range lanes {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for _, k := range keys {
		for l := lanes[k]; len(l.ends) > 0; l.ends = l.ends[:len(l.ends)-1] {
			p.end(l.uuid, l.ends[len(l.ends)-1])
		}
	}
	return p.w.Flush() // bufio keeps the first error
}

// packets writes TracePackets. Messages are built inside out in two buffers that are used again.
type packets struct {
	w            *bufio.Writer
	inner, outer []byte
	note         []byte
}

const sequence = 1 // trusted_packet_sequence_id: any, but one

// processUUID keeps tracks of processes apart from those of threads, which count from 1.
func processUUID(rank int) uint64 { return 1<<32 + uint64(uint32(rank)) }

func (p *packets) process(rank int) {
	m := appendInt(nil, 1, uint64(rank)+1) // pid; 0 is the idle process
	m = appendText(m, 6, "rank "+strconv.Itoa(rank))
	d := appendInt(nil, 1, processUUID(rank)) // uuid
	d = appendBytes(d, 3, m)                  // process
	p.packet(0, 60, d)
}

func (p *packets) thread(uuid uint64, e Event, at row) {
	name := string(e.Track)
	if at.lane > 0 {
		name += " +" + strconv.Itoa(at.lane)
	}
	d := appendInt(nil, 1, uuid)
	d = appendText(d, 2, name)
	d = appendInt(d, 5, processUUID(e.Rank)) // parent_uuid
	p.packet(0, 60, d)
}

func (p *packets) begin(uuid uint64, e Event) {
	m := appendInt(p.inner[:0], 9, 1) // type: slice begin
	m = appendInt(m, 11, uuid)        // track_uuid
	m = appendText(m, 22, e.Cat)      // categories
	m = appendText(m, 23, e.Name)
	for _, a := range e.Args {
		p.note = appendText(p.note[:0], 10, a.Key) // debug annotation: name
		if a.Text != "" {
			p.note = appendText(p.note, 6, a.Text)
		} else {
			p.note = appendInt(p.note, 4, uint64(a.Value))
		}
		m = appendBytes(m, 4, p.note)
	}
	p.inner = m
	p.packet(e.Start, 11, m)
}

func (p *packets) end(uuid uint64, time int64) {
	m := appendInt(p.inner[:0], 9, 2)
	p.inner = appendInt(m, 11, uuid)
	p.packet(time, 11, p.inner)
}

// packet writes one TracePacket that holds message m in field number field.
func (p *packets) packet(time int64, field uint64, m []byte) {
	b := p.outer[:0]
	if time > 0 {
		b = appendInt(b, 8, uint64(time)) // timestamp
	}
	b = appendInt(b, 10, sequence)
	b = appendBytes(b, field, m)
	p.outer = b
	var head [16]byte
	h := binary.AppendUvarint(append(head[:0], 1<<3|2), uint64(len(b))) // Trace.packet
	p.w.Write(h)
	p.w.Write(b)
}

func appendInt(b []byte, field, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, field<<3), v)
}

func appendBytes(b []byte, field uint64, m []byte) []byte {
	b = binary.AppendUvarint(b, field<<3|2)
	return append(binary.AppendUvarint(b, uint64(len(m))), m...)
}

func appendText(b []byte, field uint64, s string) []byte {
	b = binary.AppendUvarint(b, field<<3|2)
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
