package trace

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// chromeFile is a trace file as encoding/json sees it: the oracle of the writer.
type chromeFile struct {
	Base   int64 `json:"baseTimeNanoseconds"`
	Events []struct {
		Ph, Name, Cat string
		Pid, Tid      int
		Ts, Dur       json.Number
		Args          map[string]any
	} `json:"traceEvents"`
}

func written(t *testing.T, events []Event) chromeFile {
	t.Helper()
	var b bytes.Buffer
	if err := WriteEvents(&b, events); err != nil {
		t.Fatal(err)
	}
	var f chromeFile
	if err := json.Unmarshal(b.Bytes(), &f); err != nil {
		t.Fatalf("%v in %s", err, b.Bytes())
	}
	return f
}

// nanos reads µs with three decimals by moving the point.
func nanos(t *testing.T, n json.Number) int64 {
	t.Helper()
	whole, frac, _ := strings.Cut(string(n), ".")
	v, err := strconv.ParseInt(whole+(frac + "000")[:3], 10, 64)
	if err != nil {
		t.Fatalf("time %q: %v", n, err)
	}
	return v
}

func TestWrittenTimesAreExactToTheNanosecond(t *testing.T) {
	starts := []int64{1_796_000_000_123_456_789, 1_796_000_000_123_456_790, 1_796_000_001_000_000_001, 1_796_000_009_999_999_999}
	var events []Event
	for i, s := range starts {
		events = append(events, Event{Name: "k", Cat: Kernel, Track: Compute, Start: s, Dur: int64(i)})
	}
	f := written(t, events)
	i := 0
	for _, e := range f.Events {
		if e.Ph != "X" {
			continue
		}
		if got := f.Base + nanos(t, e.Ts); got != starts[i] || nanos(t, e.Dur) != int64(i) {
			t.Errorf("event %d: got start %d dur %s, want %d %d", i, got, e.Dur, starts[i], i)
		}
		i++
	}
	if i != len(starts) {
		t.Errorf("got %d events, want %d", i, len(starts))
	}
}

func TestStringsOfAnyBytesAreWrittenAsValidJSON(t *testing.T) {
	for _, s := range []string{"", `C:\U "x"`, "\x00\x01\x1f\x7f", "µs → Ω", "\xff\xfe", "</script>", "line\nline"} {
		var back string
		if err := json.Unmarshal(AppendString(nil, s), &back); err != nil {
			t.Errorf("%q: %v", s, err)
		}
		if want := strings.ToValidUTF8(s, "\uFFFD"); len(s) < 2 || s[0] != 0xff {
			if back != want {
				t.Errorf("got %q, want %q", back, want)
			}
		} else if back != "\uFFFD\uFFFD" { // encoding/json and viewers: one mark a bad byte
			t.Errorf("got %q", back)
		}
	}
}

// Spans of one thread nest or lie apart: what viewers demand, whatever was recorded.
func TestOverlappingSpansGoToFurtherThreads(t *testing.T) {
	f := written(t, []Event{
		{Name: "a", Track: Compute, Start: 0, Dur: 10},
		{Name: "b", Track: Compute, Start: 5, Dur: 10},  // overlaps a
		{Name: "c", Track: Compute, Start: 7, Dur: 20},  // overlaps both
		{Name: "d", Track: Compute, Start: 2, Dur: 3},   // inside a
		{Name: "e", Track: Compute, Start: 30, Dur: 10}, // free again
		{Name: "a", Track: Compute, Start: 5, Dur: 10, Rank: 1},
	})
	tid, names := map[string]int{}, map[int]string{}
	for _, e := range f.Events {
		switch {
		case e.Ph == "X" && e.Pid == 0:
			tid[e.Name] = e.Tid
		case e.Name == "thread_name" && e.Pid == 0:
			names[e.Tid] = e.Args["name"].(string)
		}
	}
	if tid["a"] != tid["d"] || tid["a"] != tid["e"] || tid["a"] == tid["b"] || tid["b"] == tid["c"] || tid["a"] == tid["c"] {
		t.Errorf("threads: %v", tid)
	}
	if names[tid["a"]] != "compute" || names[tid["b"]] != "compute +1" || names[tid["c"]] != "compute +2" {
		t.Errorf("names: %v", names)
	}
}

func TestRecorderKeepsEverySpanOfEveryGoroutine(t *testing.T) {
	const goroutines, spans = 4, 3 * blockLen / 2
	rec := NewRecorder(7)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range spans {
				rec.Span(Compute, "k", Kernel, int64(i), 1, Int("g", int64(g)), Text("t", "x"), Int("i", int64(i)))
			}
		})
	}
	wg.Wait()
	events := rec.Events()
	next := [goroutines]int64{}
	for _, e := range events {
		g := e.Args[0].Value
		if e.Rank != 7 || e.Start != next[g] || e.Args[2] != Int("i", next[g]) || e.Args[1] != Text("t", "x") {
			t.Fatalf("goroutine %d: got %+v, want number %d", g, e, next[g])
		}
		next[g]++
	}
	if len(events) != goroutines*spans {
		t.Errorf("got %d events, want %d", len(events), goroutines*spans)
	}
}

func TestNilRecorderRecordsNothing(t *testing.T) {
	var rec *Recorder
	rec.Span(Compute, "k", Kernel, rec.Now(), 1)
	rec.Since(Compute, "k", Kernel, 0)
	if e := rec.Events(); e != nil {
		t.Errorf("got %v", e)
	}
}

// Blocks of blockLen spans make a few allocations in thousands of spans, which the average rounds down to 0.
func TestSpanAllocatesOnlyBlocks(t *testing.T) {
	rec := NewRecorder(0)
	if n := testing.AllocsPerRun(4*blockLen, func() { rec.Span(Compute, "k", Kernel, 1, 2, Int("bytes", 3)) }); n != 0 {
		t.Errorf("got %.0f allocations a span", n)
	}
}

func BenchmarkSpan(b *testing.B) {
	b.ReportAllocs()
	rec := NewRecorder(0)
	for b.Loop() {
		rec.Since(Compute, "k", Kernel, rec.Now(), Int("bytes", 3))
	}
}
