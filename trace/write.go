package trace

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Write writes what the recorders hold as one trace file.
func Write(w io.Writer, recs ...*Recorder) error {
	var all []Event
	for _, r := range recs {
		all = append(all, r.Events()...)
	}
	return WriteEvents(w, all)
}

// WriteEvents writes events, sorted by start, as one trace file.
//
// Times are written in µs relative to the first event, because viewers read them as float64, which cannot tell
// ns apart in µs since 1970; baseTimeNanoseconds says what to add. Viewers also drop spans of a thread that overlap
// without one holding the other (two kernels under PDL do): such spans go to a further thread "track +1".
func WriteEvents(w io.Writer, events []Event) error {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.Dur, a.Dur)) // parents before children
	})
	var base int64
	if len(events) > 0 {
		base = events[0].Start
	}
	b := bufio.NewWriterSize(w, 1<<16)
	fmt.Fprintf(b, "{\"heddle\":1,\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":%d,\"traceEvents\":[", base)
	rows := rows{lanes: map[rowKey][]int{}, tracks: map[int]int{}}
	line := make([]byte, 0, 512)
	for i, e := range events {
		line = line[:0]
		if i > 0 {
			line = append(line, ',')
		}
		tid, fresh := rows.place(e)
		if fresh {
			line = appendNames(line, e, tid, rows.tracks[e.Rank] == 1)
		}
		line = appendEvent(line, e, tid, base)
		if _, err := b.Write(line); err != nil {
			return err
		}
	}
	b.WriteString("\n]}\n")
	return b.Flush()
}

func appendEvent(b []byte, e Event, tid row, base int64) []byte {
	b = append(b, "\n{\"ph\":\"X\",\"name\":"...)
	b = AppendString(b, e.Name)
	b = append(b, ",\"cat\":"...)
	b = AppendString(b, e.Cat)
	b = append(b, ",\"pid\":"...)
	b = strconv.AppendInt(b, int64(e.Rank), 10)
	b = append(b, ",\"tid\":"...)
	b = strconv.AppendInt(b, int64(tid.id), 10)
	b = append(b, ",\"ts\":"...)
	b = appendMicros(b, e.Start-base)
	b = append(b, ",\"dur\":"...)
	b = appendMicros(b, max(e.Dur, 0))
	for i, a := range e.Args {
		if i == 0 {
			b = append(b, ",\"args\":{"...)
		} else {
			b = append(b, ',')
		}
		b = AppendString(b, a.Key)
		b = append(b, ':')
		if a.Text != "" {
			b = AppendString(b, a.Text)
		} else {
			b = strconv.AppendInt(b, a.Value, 10)
		}
	}
	if len(e.Args) > 0 {
		b = append(b, '}')
	}
	return append(b, '}')
}

// appendNames names a row that appears for the first time, and its process if it is that one's first row.
func appendNames(b []byte, e Event, tid row, first bool) []byte {
	if first {
		b = fmt.Appendf(b, "\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"rank %d\"}},", e.Rank, e.Rank)
		b = fmt.Appendf(b, "\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%d,\"args\":{\"sort_index\":%d}},", e.Rank, e.Rank)
	}
	name := string(e.Track)
	if tid.lane > 0 {
		name += " +" + strconv.Itoa(tid.lane)
	}
	b = fmt.Appendf(b, "\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":", e.Rank, tid.id)
	return append(AppendString(b, name), "}},"...)
}

// appendMicros writes ns as µs with three decimals, exactly.
func appendMicros(b []byte, ns int64) []byte {
	u := uint64(ns)
	if ns < 0 {
		b, u = append(b, '-'), -u
	}
	b = strconv.AppendUint(b, u/1000, 10)
	if f := u % 1000; f != 0 {
		b = append(b, '.', byte('0'+f/100), byte('0'+f/10%10), byte('0'+f%10))
	}
	return b
}

// AppendString writes s as a JSON string that every viewer reads: control characters are escaped, bytes that are
// no UTF-8 become U+FFFD.
func AppendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			b, i = append(b, '\\', c), i+1
		case c < 0x20 || c == 0x7f:
			b, i = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15]), i+1
		case c < utf8.RuneSelf:
			b, i = append(b, c), i+1
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			b, i = utf8.AppendRune(b, r), i+n
		}
	}
	return append(b, '"')
}

// rows gives every track of every rank its thread numbers, from 1 on within a rank.
type rows struct {
	open   []laneState      // lanes of all ranks
	lanes  map[rowKey][]int // a track's lanes, as indices into open
	tracks map[int]int      // threads so far, by rank
}

type rowKey struct {
	rank  int
	track Track
}

type row struct{ id, lane int }

type laneState struct {
	ends []int64 // ends of the spans that are open, outermost first
	id   int
}

// place finds the first lane of e's track where e overlaps no span without being held by it. Events come by start,
// longer first, so an open span either holds e or ends in the middle of it.
func (r *rows) place(e Event) (tid row, fresh bool) {
	key := rowKey{e.Rank, e.Track}
	for lane, at := range r.lanes[key] {
		l := &r.open[at]
		for len(l.ends) > 0 && l.ends[len(l.ends)-1] <= e.Start {
			l.ends = l.ends[:len(l.ends)-1]
		}
		if len(l.ends) == 0 || l.ends[len(l.ends)-1] >= e.Start+e.Dur {
			l.ends = append(l.ends, e.Start+e.Dur)
			return row{l.id, lane}, false
		}
	}
	r.tracks[e.Rank]++
	id := r.tracks[e.Rank]
	r.lanes[key] = append(r.lanes[key], len(r.open))
	r.open = append(r.open, laneState{ends: []int64{e.Start + e.Dur}, id: id})
	return row{id, len(r.lanes[key]) - 1}, true
}
