package analyze

import (
	"fmt"
	"strconv"
	"strings"

	"heddle/trace"
)

// finish resolves what needed the whole file: names, JAX's devices, the time that all times are relative to.
func (c *chrome) finish(scan *trace.Scan) {
	t := c.t
	t.Format = "Kineto"
	switch {
	case c.heddle:
		t.Format = heddleFormat
	case c.resolvePlain():
		t.Format = "JAX"
	case len(t.Work) == 0 && len(t.Calls) == 0:
		t.Format = "Chrome trace"
	}
	t.Names = c.names.all
	t.Groups = append([]string{""}, c.groups.keys[:min(len(c.groups.keys), 1<<16-2)]...)
	t.Groups = append(t.Groups, "groups beyond 65534")
	for i := range t.Threads {
		key := t.Threads[i].Name
		pid, _, _ := strings.Cut(key, "/")
		switch {
		case c.thread[key] != "":
			t.Threads[i].Name = c.thread[key]
		case c.process[pid] != "":
			t.Threads[i].Name = c.process[pid] + " " + key
		}
	}
	if c.heddle {
		for i := range t.Streams {
			key := strconv.Itoa(t.Streams[i].Device) + "/" + t.Streams[i].Name
			if name := c.thread[key]; name != "" {
				t.Streams[i].Name = name
			}
		}
	}
	if rank, ok := trace.ParseInt([]byte(scan.Meta["distributedInfo.rank"])); ok {
		t.Rank = int(rank)
	}
	if base, ok := trace.ParseInt([]byte(scan.Meta["baseTimeNanoseconds"])); ok && base > 0 {
		t.shift(base)
	}
	for _, stack := range c.open {
		for range stack {
			t.drop("begin without end")
		}
	}
	if scan.Malformed > 0 {
		t.Warnings = append(t.Warnings, fmt.Sprintf("%d malformed pieces skipped, the first at byte %d", scan.Malformed, scan.FirstBad))
	}
	if scan.Truncated {
		t.Warnings = append(t.Warnings, fmt.Sprintf("the file ends in the middle, at byte %d, after %d events; what follows is of that part", scan.Offset, scan.Events))
	}
}

// shift moves all times. A base that would overflow is ignored.
func (t *Timeline) shift(by int64) {
	const far = 1 << 62
	for _, w := range t.Work {
		if by > far || w.End > far || w.Start < -far {
			return
		}
	}
	for i := range t.Work {
		t.Work[i].Start += by
		t.Work[i].End += by
	}
	for i := range t.Calls {
		t.Calls[i].Start += by
		t.Calls[i].End += by
	}
	for i := range t.Ranges {
		t.Ranges[i].Start += by
		t.Ranges[i].End += by
	}
	for i := range t.Waits {
		t.Waits[i].Start += by
	}
}
