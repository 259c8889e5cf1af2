package launch

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heddle/bench"
	"heddle/cuda"
	"heddle/cuda/timeline"
	"heddle/internal/atomicfile"
	"heddle/trace"
)

// Bubble is a run with one known reason for the device to wait, made on purpose: what a report of its trace must name.
type Bubble struct {
	Name   string  `json:"name"`
	Doc    string  `json:"doc"`
	Cause  string  `json:"cause"`  // as trace/analyze calls it
	Count  int     `json:"count"`  // gaps of it, at least
	Micros float64 `json:"us"`     // of it in all, at least
	File   string  `json:"file"`   // the trace, beside this list
	How    string  `json:"how"`    // what recorded it
	Kernel string  `json:"kernel"` // in front of each gap

	run    func(*maker) error
	queues bool // events between its kernels would end what it shows: CUPTI only
}

// Bubbles are all of them.
func Bubbles() []Bubble {
	return []Bubble{
		{Name: "host", Doc: "the host sleeps 2 ms in a range called load batch before each launch", Cause: "host", Count: 6, Micros: 6 * 1800, run: hostSleeps},
		{Name: "sync", Doc: "the host waits for every kernel before it launches the next", Cause: "sync", Count: 12, Micros: 12 * 3, run: hostWaits},
		{Name: "launch", Doc: "kernels of 2 µs, whose launches the host takes 20 µs to prepare", Cause: "launch", Count: 30, Micros: 30 * 10, run: tinyLaunches},
		{Name: "copy", Doc: "8 MB from pageable memory before each kernel", Cause: "copy", Count: 6, Micros: 6 * 300, run: pageableCopies},
		{Name: "overlap", Doc: "a second stream moves 256 MB while the first waits for it instead of working", Cause: "dependency", Count: 6, Micros: 6 * 80, run: noOverlap, queues: true},
		{Name: "launch-gap", Doc: "kernels of 20 µs queued back to back without programmatic launch", Cause: "launch-gap", Count: 30, Micros: 30 * 0.3, run: backToBack, queues: true},
		{Name: "start-up", Doc: "a module is compiled between kernels", Cause: "start-up", Count: 3, Micros: 3 * 500, run: modulesBetween},
	}
}

// maker makes the bubbles of one trace.
type maker struct {
	*session
	rec   *timeline.Recorder
	other *cuda.Stream
	block cuda.Ptr // of copies
}

// copyBytes is what moves between streams; host copies take a part of it.
const copyBytes = 256 << 20

// Bubbles records every bubble into a folder, with a list of what each must be found to be. candidates are places of libcupti.
func (l Lab) Bubbles(dir string, candidates []string) ([]Bubble, error) {
	s, err := l.open()
	if err != nil {
		return nil, err
	}
	m := &maker{session: s, rec: timeline.Open(s.dev, 0, candidates)}
	l.Progress("recording by %s", m.rec.How)
	if m.other, err = s.dev.NewStream(); err != nil {
		return nil, err
	}
	if m.block, err = s.dev.Alloc(2 * copyBytes); err != nil {
		return nil, err
	}
	all := Bubbles()
	if !m.rec.Whole() {
		all = slices.DeleteFunc(all, func(b Bubble) bool { return b.queues })
	}
	for i := range all {
		if err := m.make(&all[i], dir); err != nil {
			return nil, fmt.Errorf("%w (bubble %s)", err, all[i].Name)
		}
		l.Progress("%-11s %s", all[i].Name, all[i].Doc)
	}
	return all, atomicfile.Write(atomicfile.OS{}, filepath.Join(dir, "bubbles.json"), func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		return e.Encode(all)
	})
}

// make runs a bubble twice in one recording and writes the second time: the first launch while CUPTI records takes a millisecond, most of it CUPTI's.
func (m *maker) make(b *Bubble, dir string) error {
	if err := m.rec.Start(); err != nil {
		return err
	}
	if err := b.run(m); err != nil {
		return err
	}
	if err := m.dev.Synchronize(); err != nil {
		return err
	}
	warm := time.Now().UnixNano()
	if err := b.run(m); err != nil {
		return err
	}
	events, err := m.rec.Stop()
	if err != nil {
		return err
	}
	events = since(events, warm)
	b.File, b.How, b.Kernel = b.Name+".json", strings.SplitN(m.rec.How, ":", 2)[0], "delay"
	return atomicfile.Write(atomicfile.OS{}, filepath.Join(dir, b.File), func(w io.Writer) error { return trace.WriteEvents(w, events) })
}

// since leaves what the host did from a moment on, and what that launched: the device's clock is another.
func since(events []trace.Event, moment int64) []trace.Event {
	called := map[int64]bool{}
	for _, e := range events {
		if e.Cat == trace.Launch && e.Start >= moment {
			called[correlation(e)] = true
		}
	}
	return slices.DeleteFunc(events, func(e trace.Event) bool {
		switch e.Cat {
		case trace.Kernel, trace.Copy, trace.Fill, trace.Wait:
			return !called[correlation(e)]
		}
		return e.Start < moment
	})
}

func correlation(e trace.Event) int64 {
	for _, a := range e.Args {
		if a.Key == "correlation" {
			return a.Value
		}
	}
	return -1
}

// work queues a kernel that takes d.
func (m *maker) work(d time.Duration) error {
	return m.rec.Launch(m.stream, "delay", func() error { return m.hold(d) })
}

func hostSleeps(m *maker) error {
	for range 7 {
		err := m.rec.Range("load batch", func() error { time.Sleep(2 * time.Millisecond); return nil })
		if err != nil {
			return err
		}
		if err := m.work(100 * time.Microsecond); err != nil {
			return err
		}
	}
	return nil
}

func hostWaits(m *maker) error {
	for range 13 {
		if err := m.work(50 * time.Microsecond); err != nil {
			return err
		}
		if err := m.wait(); err != nil {
			return err
		}
	}
	return nil
}

// wait holds the host up until the stream is empty.
func (m *maker) wait() error { return m.rec.Call("cuStreamSynchronize", m.stream.Synchronize) }

func tinyLaunches(m *maker) error {
	for range 40 {
		for begin := time.Now(); time.Since(begin) < 20*time.Microsecond; { // a framework's dispatch
		}
		if err := m.work(2 * time.Microsecond); err != nil {
			return err
		}
	}
	return nil
}

func pageableCopies(m *maker) error {
	data := make([]byte, 8<<20)
	for range 7 {
		if err := m.rec.Call("cuMemcpyHtoD_v2", func() error { return m.dev.CopyIn(m.block, data) }); err != nil {
			return err
		}
		if err := m.work(50 * time.Microsecond); err != nil {
			return err
		}
	}
	return nil
}

func noOverlap(m *maker) error {
	before, after := make([]*cuda.Event, 7), make([]*cuda.Event, 7)
	for i := range before {
		var err error
		if before[i], err = m.dev.NewEvent(); err != nil {
			return err
		}
		if after[i], err = m.dev.NewEvent(); err != nil {
			return err
		}
	}
	if err := m.work(3 * time.Millisecond); err != nil { // all is queued before any of it runs
		return err
	}
	for i := range before {
		if err := before[i].Record(m.stream); err != nil {
			return err
		}
		if err := m.other.Wait(before[i]); err != nil {
			return err
		}
		if err := m.other.Copy(m.block, m.block+copyBytes, copyBytes); err != nil {
			return err
		}
		if err := after[i].Record(m.other); err != nil {
			return err
		}
		if err := m.stream.Wait(after[i]); err != nil {
			return err
		}
		if err := m.work(50 * time.Microsecond); err != nil {
			return err
		}
	}
	return nil
}

func backToBack(m *maker) error {
	if err := m.work(3 * time.Millisecond); err != nil {
		return err
	}
	for range 32 {
		if err := m.work(20 * time.Microsecond); err != nil {
			return err
		}
	}
	return nil
}

func modulesBetween(m *maker) error {
	for i := range 4 {
		if err := m.work(100 * time.Microsecond); err != nil {
			return err
		}
		if err := m.wait(); err != nil {
			return err
		}
		// Another text each time, so that the driver finds nothing in its own cache.
		text := fmt.Sprintf("%s\n// %d %d\n", bench.HelpersPTX(), i, time.Now().UnixNano())
		err := m.rec.Call("cuModuleLoadData", func() error { _, err := m.dev.Compile(text, nil); return err })
		if err != nil {
			return err
		}
	}
	return m.work(100 * time.Microsecond)
}
