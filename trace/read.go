package trace

import (
	"fmt"
	"io"
	"strings"
)

// Read reads a file that Write has made, whole and unharmed. Traces of other programs, and broken ones, are for
// trace/analyze.
func Read(r io.Reader) ([]Event, error) {
	var events []Event
	var rows []string // "pid/tid" of each event
	var fault error
	tracks := map[string]Track{}
	scan, err := ScanEvents(r, nil, func(raw *Raw) {
		row := string(raw.Pid) + "/" + string(raw.Tid)
		if raw.Ph == 'M' {
			if string(raw.Name) == "thread_name" {
				name, _, _ := strings.Cut(Unescape(raw.Arg("name")), " +") // further threads of a track
				tracks[row] = Track(name)
			}
			return
		}
		rank, ok := ParseInt(raw.Pid)
		if (!ok || !raw.HasStart || !raw.HasDur || raw.Ph != 'X') && fault == nil {
			fault = fmt.Errorf("trace: event %q: ph %q, pid %q, time or duration missing", raw.Name, raw.Ph, raw.Pid)
		}
		e := Event{Name: Unescape(raw.Name), Cat: Unescape(raw.Cat), Rank: int(rank), Start: raw.Start, Dur: raw.Dur}
		for _, a := range raw.Args() {
			if n, ok := ParseInt(a.Value); ok {
				e.Args = append(e.Args, Int(Unescape(a.Key), n))
			} else {
				e.Args = append(e.Args, Text(Unescape(a.Key), Unescape(a.Value)))
			}
		}
		events, rows = append(events, e), append(rows, row)
	})
	switch {
	case err != nil:
		return nil, err
	case scan.Meta["heddle"] != "1":
		return nil, fmt.Errorf("trace: heddle format %q, want \"1\"; hint: heddle trace reads traces of other programs", scan.Meta["heddle"])
	case fault != nil:
		return nil, fault
	case scan.Truncated || scan.Malformed > 0:
		return nil, fmt.Errorf("trace: %d malformed pieces, ends at byte %d, truncated: %v", scan.Malformed, scan.Offset, scan.Truncated)
	}
	base, _ := ParseInt([]byte(scan.Meta["baseTimeNanoseconds"]))
	for i := range events {
		events[i].Start += base
		events[i].Track = tracks[rows[i]]
	}
	return events, nil
}
