package analyze

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heddle/trace"

	_ "modernc.org/sqlite" // makes Nsight-like files
)

// run is a made-up recording: one host thread, streams of one device, times in µs. Each bubble is known because the
// run was written around it.
type run struct {
	at     float64 // the host's clock
	thread int     // that calls
	free   map[int]float64
	corr   int
	events []made
}

type made struct {
	table, name string // table as in Nsight's exports: KERNEL, RUNTIME, MEMCPY, NVTX, SYNC
	start, dur  float64
	stream      int
	corr        int
	on          int // the stream waited for
	thread      int
}

func newRun() *run { return &run{free: map[int]float64{}, corr: 100} }

// call is a call of the host.
func (r *run) call(name string, dur float64) (corr int) {
	r.corr++
	r.events = append(r.events, made{table: "RUNTIME", name: name, start: r.at, dur: dur, corr: r.corr, thread: r.thread})
	r.at += dur
	return r.corr
}

// launch calls for a kernel that starts 2 µs after the call returned, or 1 µs after its stream is free.
func (r *run) launch(stream int, name string, dur float64) {
	corr := r.call("cudaLaunchKernel", 3)
	start := max(r.at+2, r.free[stream]+1)
	r.events = append(r.events, made{table: "KERNEL", name: name, start: start, dur: dur, stream: stream, corr: corr})
	r.free[stream] = start + dur
}

// copies starts a copy; a host that waits for it returns with its end.
func (r *run) copies(stream int, dur float64, waits bool) {
	corr := r.call("cudaMemcpyAsync", 4)
	start := max(r.at+2, r.free[stream]+1)
	r.events = append(r.events, made{table: "MEMCPY", name: "Memcpy HtoD (Pageable -> Device)", start: start, dur: dur, stream: stream, corr: corr})
	r.free[stream] = start + dur
	if waits {
		last := &r.events[len(r.events)-2]
		last.dur = r.free[stream] + 1 - last.start
		r.at = r.free[stream] + 1
	}
}

func (r *run) sync(stream int) {
	r.call("cudaStreamSynchronize", max(1, r.free[stream]+2-r.at))
}

// wait makes a stream wait for what another has queued.
func (r *run) wait(stream, on int) {
	corr := r.call("cudaStreamWaitEvent", 1)
	r.events = append(r.events, made{table: "SYNC", name: "Stream Wait Event", start: r.at - 1, dur: 1, stream: stream, corr: corr, on: on})
	r.free[stream] = max(r.free[stream], r.free[on]+3)
}

// within names what the host does meanwhile.
func (r *run) within(name string, do func()) {
	start := r.at
	do()
	r.events = append(r.events, made{table: "NVTX", name: name, start: start, dur: r.at - start})
}

// kineto writes the run as PyTorch would.
func (r *run) kineto() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n  \"schemaVersion\": 1,\n  \"distributedInfo\": {\"rank\": 0},\n  \"traceEvents\": [")
	for i, e := range r.events {
		if i > 0 {
			b.WriteString(",")
		}
		cat := map[string]string{"KERNEL": "kernel", "RUNTIME": "cuda_runtime", "MEMCPY": "gpu_memcpy", "NVTX": "user_annotation", "SYNC": "cuda_sync"}[e.table]
		pid, tid := 77, 77+e.thread
		args := fmt.Sprintf(`"External id": 1, "correlation": %d`, e.corr)
		if e.table != "RUNTIME" && e.table != "NVTX" {
			pid, tid = 0, e.stream
			args += fmt.Sprintf(`, "device": 0, "stream": %d, "wait_on_stream": %d, "grid": [1, 2, 3]`, e.stream, e.on)
		}
		fmt.Fprintf(&b, "\n  {\n    \"ph\": \"X\", \"cat\": %q, \"name\": %q, \"pid\": %d, \"tid\": %d,\n    \"ts\": %.3f, \"dur\": %.3f,\n    \"args\": {\n      %s\n    }\n  }", cat, e.name, pid, tid, 1700000000000000+e.start, e.dur, args)
	}
	b.WriteString("\n  ],\n  \"displayTimeUnit\": \"ms\"\n}\n")
	return b.Bytes()
}

// nsight writes the run as an export of Nsight Systems has it, with suffix behind the names of tables.
func (r *run) nsight(t testing.TB, suffix string) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "made.sqlite")
	db, err := sql.Open("sqlite", name)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	exec := func(q string, args ...any) {
		if _, err := db.Exec(strings.ReplaceAll(q, "$", suffix), args...); err != nil {
			t.Fatal(q, err)
		}
	}
	exec(`PRAGMA synchronous = OFF; PRAGMA page_size = 512; BEGIN;
		CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
		CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL$ (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);
		CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY$ (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER);
		CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION$ (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER);
		CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME$ (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
		CREATE TABLE NVTX_EVENTS$ (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER)`)
	const pid, tid = 77 << 24, 77<<24 | 78
	ids := map[string]int{}
	id := func(s string) int {
		if _, ok := ids[s]; !ok {
			ids[s] = len(ids) + 1
			exec(`INSERT INTO StringIds VALUES (?, ?)`, ids[s], s)
		}
		return ids[s]
	}
	for _, e := range r.events {
		start, end := ns(e.start), ns(e.start+e.dur)
		switch e.table {
		case "KERNEL":
			exec(`INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL$ VALUES (?,?,0,?,?,?,?,?)`, start, end, e.stream, e.corr, pid, id(e.name), id(e.name))
		case "RUNTIME":
			exec(`INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME$ VALUES (?,?,?,?,?)`, start, end, tid+e.thread, e.corr, id(e.name+"_v7000"))
		case "MEMCPY":
			exec(`INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY$ VALUES (?,?,0,?,?,?,4096,1)`, start, end, e.stream, e.corr, pid)
		case "SYNC":
			exec(`INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION$ VALUES (?,?,0,?,?,?,2)`, start, end, e.stream, e.corr, pid)
		case "NVTX":
			exec(`INSERT INTO NVTX_EVENTS$ VALUES (?,?,59,?,?,NULL)`, start, end, e.name, tid)
		}
	}
	exec(`COMMIT`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// bubbles are runs with one kind of bubble in each, so large that the most time must go to it.
var bubbles = []struct {
	name     string
	run      func(*run)
	cause    Cause
	busy     bool   // the device communicates meanwhile
	evidence string // what the longest gap's evidence must hold
}{
	{"sleep on the host", func(r *run) {
		for range 5 {
			r.launch(7, "gemm", 50)
			r.within("load batch", func() { r.at += 900 })
		}
	}, CauseHost, false, "load batch"},
	{"allocation on the host", func(r *run) {
		for range 5 {
			r.launch(7, "gemm", 50)
			r.call("cudaMalloc", 400)
		}
	}, CauseHost, false, "cudaMalloc"},
	{"wait after each step", func(r *run) {
		for range 5 {
			r.launch(7, "gemm", 300)
			r.sync(7)
			r.within("next", func() { r.at += 20 })
		}
	}, CauseSync, false, "cudaStreamSynchronize"},
	{"wait on another thread each time", func(r *run) {
		for range 5 {
			r.launch(7, "gemm", 300)
			r.sync(7)
			r.thread++ // as a goroutine may that is not locked to a thread
			r.at += 20
		}
	}, CauseSync, false, "cudaStreamSynchronize"},
	{"tiny kernels", func(r *run) {
		for range 50 {
			r.launch(7, "add", 1.5)
			r.at += 1
		}
	}, CauseLaunch, false, "cudaLaunchKernel"},
	{"tiny kernels of a framework", func(r *run) {
		for range 50 {
			r.within("aten::add", func() { r.at += 20; r.launch(7, "add", 3) })
		}
	}, CauseLaunch, false, "after the previous launch call"},
	{"copy that the host waits for", func(r *run) {
		for range 5 {
			r.launch(7, "gemm", 40)
			r.copies(7, 500, true)
		}
	}, CauseCopy, false, "copies took"},
	{"copy with a wait behind it", func(r *run) {
		for range 5 {
			r.launch(7, "gemm", 40)
			r.copies(7, 500, false)
			r.sync(7)
		}
	}, CauseCopy, false, "copies took"},
	{"copy in the queue", func(r *run) {
		for range 5 {
			r.launch(7, "gemm", 40)
			r.copies(7, 500, false)
		}
	}, CauseCopy, false, "in its own stream"},
	{"copy in another stream", func(r *run) {
		for range 5 {
			r.launch(7, "gemm", 40)
			r.copies(9, 500, false)
			r.wait(7, 9)
		}
	}, CauseDependency, false, "copies in another stream"},
	{"other stream with a slow event", func(r *run) {
		for range 5 {
			r.launch(7, "gemm", 100)
			r.wait(9, 7)
			r.launch(9, "other", 60)
			r.wait(7, 9)
		}
	}, CauseDependency, false, "waited for stream"},
	{"communication not overlapped", func(r *run) {
		for range 5 {
			r.launch(7, "gemm", 100)
			r.wait(13, 7)
			r.launch(13, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 800)
			r.wait(7, 13)
		}
	}, CauseComm, true, "only ncclDevKernel_AllReduce_Sum_bf16_RING_LL ran"},
	{"back to back", func(r *run) {
		for range 50 {
			r.launch(7, "gemm", 100)
		}
	}, CauseLaunchGap, false, "before the last kernel ended"},
	{"code loaded at first use", func(r *run) {
		for i := range 5 {
			r.launch(7, "gemm", 20)
			r.at += 5
			corr := r.call("cudaLaunchKernel", 700)
			r.events = append(r.events, made{table: "KERNEL", name: fmt.Sprint("fresh", i), start: r.at - 1, dur: 20, stream: 7, corr: corr})
			r.free[7] = r.at + 19
		}
	}, CauseStartup, false, "its code was loaded"},
}

// The report names the one bubble that each run was made around, read as PyTorch's file, as Nsight's, under the table
// names of a later version, and after a round trip through heddle's own format.
func TestReportNamesTheBubbleThatWasMade(t *testing.T) {
	for _, b := range bubbles {
		r := newRun()
		b.run(r)
		kineto := r.kineto()
		again := readBytes(t, kineto)
		for _, e := range r.events {
			if e.table == "SYNC" && len(again.Waits) == 0 {
				t.Errorf("%s: no stream waits, though one was told to", b.name)
			}
		}
		var own bytes.Buffer
		if _, err := WriteChrome(&own, []*Timeline{again}); err != nil {
			t.Fatal(err)
		}
		for form, file := range map[string][]byte{"Kineto": kineto, "Nsight": r.nsight(t, ""), "Nsight _V2": r.nsight(t, "_V2"), "heddle": own.Bytes()} {
			tl := readBytes(t, file)
			if len(tl.Waits) != len(again.Waits) {
				t.Errorf("%s as %s: %d waits of streams, want %d", b.name, form, len(tl.Waits), len(again.Waits))
			}
			rep := Bubbles([]*Timeline{tl}, Options{})
			if len(rep.Devices) != 1 || len(rep.Causes) == 0 {
				t.Errorf("%s as %s: %d devices, causes %v", b.name, form, len(rep.Devices), rep.Causes)
				continue
			}
			top, gaps := rep.Causes[0], rep.Devices[0].Gaps
			if b.busy {
				gaps = rep.Devices[0].Exposed
			}
			if top.Cause != string(b.cause) || top.Busy != b.busy || gaps[0].Cause != b.cause || !strings.Contains(gaps[0].Evidence, b.evidence) {
				t.Errorf("%s as %s: most time to %+v, longest gap %s (%s)\nwant %s (…%s…)", b.name, form, top, gaps[0].Cause, gaps[0].Evidence, b.cause, b.evidence)
			}
			if len(rep.Advice) == 0 || rep.Advice[0].Cause != b.cause || rep.Advice[0].US != top.US {
				t.Errorf("%s as %s: advice %+v", b.name, form, rep.Advice)
			}
		}
	}
}

func readBytes(t testing.TB, b []byte) *Timeline {
	t.Helper()
	tl, err := Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	tl.Source = "made"
	return tl
}

// A rank without a GPU has no launches: its own phases are the evidence.
func TestACPURankIsIdleInItsPhases(t *testing.T) {
	rec := trace.NewRecorder(2)
	rec.Span(trace.Host, "step 1", trace.Step, 0, 1000_000)
	rec.Span(trace.Host, "load batch", trace.Phase, 100_000, 700_000)
	rec.Span(trace.Compute, "matmul", trace.Kernel, 10_000, 80_000)
	rec.Span(trace.Compute, "softmax", trace.Kernel, 810_000, 50_000)
	rec.Span(trace.Collectives, "all-reduce", trace.Collective, 850_000, 100_000, trace.Int("bytes", 4096))
	var b bytes.Buffer
	if err := trace.Write(&b, rec); err != nil {
		t.Fatal(err)
	}
	d := Bubbles([]*Timeline{readBytes(t, b.Bytes())}, Options{}).Devices[0]
	if d.Device != 2 || *d.Rank != 2 || d.Kernels != 3 || d.Streams != 2 || ns(d.BusyUS) != 220_000 || ns(d.IdleUS) != 720_000 || ns(d.CommUS) != 100_000 || ns(d.OverlapUS) != 10_000 {
		t.Errorf("got %+v", d)
	}
	if g := d.Gaps[0]; len(d.Gaps) != 1 || g.Cause != CauseHost || g.Range != "load batch" || g.Step != "step 1" || g.Before != "matmul" || g.After != "softmax" {
		t.Errorf("got %+v", g)
	}
}

// Rank 1 comes 400 µs late to each collective, and its clock is 5 s ahead.
func TestWhoWaitedForWhom(t *testing.T) {
	var files []*Timeline
	for rank, late := range []float64{0, 400, 100} {
		r := newRun()
		r.at = float64(rank%2) * 5e6
		begin := r.at
		for i := range 10 {
			r.at = begin + float64(i)*2000 + late
			corr := r.call("cudaLaunchKernel", 3)
			r.events = append(r.events,
				made{table: "KERNEL", name: "gemm", start: begin + float64(i)*2000 - 50, dur: 40 + late, stream: 7, corr: 0},
				made{table: "KERNEL", name: "ncclAllReduce", start: r.at, dur: 1000 - late, stream: 13, corr: corr})
		}
		tl := readBytes(t, bytes.Replace(r.kineto(), []byte(`{"rank": 0}`), fmt.Appendf(nil, `{"rank": %d}`, rank), 1))
		tl.Source = fmt.Sprint("rank", rank)
		files = append(files, tl)
	}
	got := Bubbles(files, Options{}).Ranks
	if got == nil || got.Collectives != 10 || got.Straggler != 1 || got.Ranks[1].Last != 10 || ns(got.Ranks[1].ClockUS) != -5e9 ||
		ns(got.Ranks[0].WaitUS) != 4_000_000 || ns(got.Ranks[2].WaitUS) != 3_000_000 || ns(got.Ranks[1].CausedUS) != 7_000_000 || ns(got.Ranks[1].WaitUS) != 0 {
		t.Errorf("got %+v", got)
	}
	if len(got.Waits) != 2 || got.Waits[0] != (WaitFor{Rank: 0, For: 1, Count: 10, US: 4000}) || got.Ranks[1].Label != "rank 1" {
		t.Errorf("got %+v", got.Waits)
	}
}

// Two groups of two among four ranks: kernels of one name match within their group. Ranks 1 and 3 come late, rank 3
// later; the groups share no rank, so each has a clock of its own.
func TestGroupsMatchWithinThemselves(t *testing.T) {
	var b bytes.Buffer
	var recs []*trace.Recorder
	for rank := range 4 {
		rec := trace.NewRecorder(rank)
		group := fmt.Sprint("[", rank/2*2, ", ", rank/2*2+1, "]")
		clock := int64(rank/2) * 1_000_000_000
		for i := range int64(5) {
			late := int64(rank%2) * int64(rank) * 100_000
			rec.Span(trace.Collectives, "all-reduce", trace.Collective, clock+i*2_000_000+late, 1_000_000-late, trace.Text("group", group))
		}
		recs = append(recs, rec)
	}
	if err := trace.Write(&b, recs...); err != nil {
		t.Fatal(err)
	}
	got := Bubbles([]*Timeline{readBytes(t, b.Bytes())}, Options{}).Ranks
	want := []WaitFor{{Rank: 2, For: 3, Count: 5, US: 1500}, {Rank: 0, For: 1, Count: 5, US: 500}}
	if got == nil || got.Collectives != 10 || got.Unmatched != 0 || got.Straggler != 3 || !slices.Equal(got.Waits, want) {
		t.Errorf("got %+v", got)
	}
}

func TestShortNames(t *testing.T) {
	for name, want := range map[string]string{
		"void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::F<float>, at::detail::Array<char*, 3>>(int, F)": "vectorized_elementwise_kernel",
		"void (anonymous namespace)::elementwise_kernel_with_index<int>(int)":                                                                 "elementwise_kernel_with_index",
		"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)":                                                          "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
		"void cutlass::Kernel<cutlass_80_tensorop_bf16_s16816gemm<x>>(Params)":                                                                "cutlass_80_tensorop_bf16_s16816gemm",
		"nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NTT":                                                                                           "nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NTT",
		"torch/nn/modules/module.py(1743): _call_impl":                                                                                        "torch/nn/modules/module.py(1743): _call_impl",
		"<string>(1): <module>":            "<string>(1): <module>",
		"Memcpy HtoD (Pageable -> Device)": "Memcpy HtoD (Pageable -> Device)",
		"":                                 "", "(": "(", "a::": "a::", "<<<": "<<<",
	} {
		if got := Short(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
