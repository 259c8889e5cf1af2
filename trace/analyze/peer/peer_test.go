// Package peer measures the readers of timelines against Python, in one run, and checks that both find the same:
//
//	go test ./trace/analyze/peer -run Python -events 1000000 -results ../../../bench/results/trace-read.json
//
// Without flags the files are small, and only what is found counts.
package peer

import (
	"bufio"
	"compress/gzip"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/trace/analyze"
	"heddle/trace/sqlite"

	_ "modernc.org/sqlite" // writes the export
)

var (
	events  = flag.Int("events", 5_000, "events in the files that are read")
	rounds  = flag.Int("rounds", 1, "how often each is measured; the best counts")
	large   = flag.Int("large", 0, "with -results: also measure the command on a JSON file of so many events")
	results = flag.String("results", "", "write the measurements to this file")
)

// made is the n-th kernel of a run and what belongs to it: an operator, a call and two arrows. Now and then the host
// is late.
type made struct{ op, call, kernel, dur int64 }

func run(n int) []made {
	out := make([]made, n)
	at, free := int64(0), int64(0)
	for i := range out {
		m := made{op: at, call: at + 3000, dur: 5000 + int64(i%7)*1000}
		m.kernel = max(free+900, at+9000)
		free = m.kernel + m.dur
		out[i] = m
		at += 10_000
		if i%100 == 99 {
			at += 500_000
		}
	}
	return out
}

func kernelName(i int) string {
	return fmt.Sprintf("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, at::detail::Array<char*, 3>>(int, float, at::detail::Array<char*, 3>)%d", i%50)
}

// kineto is the layout that PyTorch's profiler writes.
func kineto(w io.Writer, kernels []made) {
	const day = 1_700_000_000_000_000_000
	us := func(t int64) string { return fmt.Sprintf("%d.%03d", (day+t)/1000, (day+t)%1000) }
	fmt.Fprint(w, "{\n  \"schemaVersion\": 1,\n  \"distributedInfo\": {\"rank\": 0},\n  \"traceEvents\": [")
	for i, m := range kernels {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		fmt.Fprintf(w, "\n  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::add_\", \"pid\": 77, \"tid\": 77,\n    \"ts\": %s, \"dur\": 9.500,\n    \"args\": {\n      \"External id\": %d,\"Record function id\": 0, \"Concrete Inputs\": [\"\", \"\", \"1\"], \"Input type\": [\"float\", \"float\", \"Scalar\"], \"Input Strides\": [[1024, 1], [1024, 1], []], \"Input Dims\": [[16, 1024], [16, 1024], []], \"Ev Idx\": %d\n    }\n  },", us(m.op), i, i)
		fmt.Fprintf(w, "\n  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 77, \"tid\": 77,\n    \"ts\": %s, \"dur\": 4.250,\n    \"args\": {\n      \"External id\": %d, \"cbid\": 211, \"correlation\": %d\n    }\n  },", us(m.call), i, i)
		fmt.Fprintf(w, "\n  {\n    \"ph\": \"s\", \"id\": %d, \"pid\": 77, \"tid\": 77, \"ts\": %s,\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  },\n  {\n    \"ph\": \"f\", \"id\": %d, \"pid\": 0, \"tid\": 7, \"ts\": %s,\n    \"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"\n  },", i, us(m.call), i, us(m.kernel))
		fmt.Fprintf(w, "\n  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": %q, \"pid\": 0, \"tid\": 7,\n    \"ts\": %s, \"dur\": %d.000,\n    \"args\": {\n      \"External id\": %d, \"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": 7, \"correlation\": %d, \"registers per thread\": 16, \"shared memory\": 0, \"blocks per SM\": 0.5, \"warps per SM\": 2.5, \"grid\": [64, 1, 1], \"block\": [128, 1, 1], \"est. achieved occupancy %%\": 4\n    }\n  }", kernelName(i), us(m.kernel), m.dur/1000, i, i)
	}
	fmt.Fprint(w, "\n  ],\n  \"displayTimeUnit\": \"ms\"\n}\n")
}

// nsight writes the same run as an export of Nsight Systems, with a copy at every tenth kernel.
func nsight(t testing.TB, name string, kernels []made) {
	db, err := sql.Open("sqlite", name)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	exec := func(q string, args ...any) {
		if _, err := db.Exec(q, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`PRAGMA synchronous = OFF; BEGIN;
		CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
		CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER);
		CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL);
		CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL);
		CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER, textId INTEGER);
		INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000')`)
	for i := range 50 {
		exec(`INSERT INTO StringIds VALUES (?, ?)`, i+2, kernelName(i))
	}
	const pid, tid = 77 << 24, 77<<24 | 77
	kernel, err1 := db.Prepare(`INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,0,1,7,?,?,?,?,16,64,1,1,128,1,1)`)
	call, err2 := db.Prepare(`INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,0,?,?,1,0)`)
	nvtx, err3 := db.Prepare(`INSERT INTO NVTX_EVENTS VALUES (?,?,59,?,?,NULL)`)
	copies, err4 := db.Prepare(`INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?,?,0,9,?,?,4096,1)`)
	for i, m := range kernels {
		do := func(s *sql.Stmt, args ...any) {
			if _, err := s.Exec(args...); err != nil {
				t.Fatal(err)
			}
		}
		if err := firstOf(err1, err2, err3, err4); err != nil {
			t.Fatal(err)
		}
		do(nvtx, m.op, m.op+9500, "aten::add_", tid)
		do(call, m.call, m.call+4250, tid, i)
		do(kernel, m.kernel, m.kernel+m.dur, i, pid, i%50+2, i%50+2)
		if i%10 == 0 {
			do(copies, m.kernel, m.kernel+500, len(kernels)+i, pid)
		}
	}
	exec(`COMMIT`)
}

func firstOf(errs ...error) error {
	for _, e := range errs {
		if e != nil {
			return e
		}
	}
	return nil
}

// found is what either side says.
type found struct {
	Seconds float64 `json:"seconds"`
	Events  int64   `json:"events"`
	Rows    int64   `json:"rows"`
	Kernels int     `json:"kernels"`
	Busy    int64   `json:"busy_ns"`
	Idle    int64   `json:"idle_ns"`
	Gaps    int     `json:"gaps"`
}

func python(t testing.TB, work, file string) (f found) {
	out, err := exec.Command("python3", "peer.py", work, file).Output()
	if err != nil {
		t.Fatalf("python3 peer.py %s: %v", work, err)
	}
	if err := json.Unmarshal(out, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func load(t testing.TB, file string) (f found) {
	began := time.Now()
	tl, err := analyze.Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return found{Seconds: time.Since(began).Seconds(), Events: tl.Read}
}

func scan(t testing.TB, name string) (f found) {
	began := time.Now()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(file, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	for table, columns := range map[string]string{
		"CUPTI_ACTIVITY_KIND_KERNEL":  "start end deviceId streamId correlationId globalPid demangledName",
		"CUPTI_ACTIVITY_KIND_RUNTIME": "start end globalTid correlationId nameId",
		"CUPTI_ACTIVITY_KIND_MEMCPY":  "start end deviceId streamId correlationId globalPid bytes copyKind",
		"NVTX_EVENTS":                 "start end eventType text globalTid textId",
	} {
		if err := db.Scan(db.Table(table), strings.Fields(columns), func([]sqlite.Value) error { f.Rows++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	f.Seconds = time.Since(began).Seconds()
	return f
}

func report(t testing.TB, file string) found {
	began := time.Now()
	tl, err := analyze.Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := analyze.Bubbles([]*analyze.Timeline{tl}, analyze.Options{}).Devices[0]
	ns := func(us float64) int64 { return int64(math.Round(us * 1000)) }
	return found{Seconds: time.Since(began).Seconds(), Kernels: d.Kernels, Busy: ns(d.BusyUS), Idle: ns(d.IdleUS), Gaps: d.GapCount}
}

// measurement is one line of the results: times are the best of the rounds.
type measurement struct {
	Name     string  `json:"name"`
	Events   int64   `json:"events"`
	Bytes    int64   `json:"bytes"`
	Heddle   float64 `json:"heddle_seconds"`
	Python   float64 `json:"python_seconds"`
	Ratio    float64 `json:"python_over_heddle"`
	HeddleMB float64 `json:"heddle_mb_per_second"`
}

func TestSameAsPythonAndHowMuchFaster(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skipf("no peer: %v", err)
	}
	dir := t.TempDir()
	kernels := run(*events / 5)
	plain, packed, export := filepath.Join(dir, "t.json"), filepath.Join(dir, "t.json.gz"), filepath.Join(dir, "t.sqlite")
	write(t, plain, packed, kernels)
	nsight(t, export, kernels)
	var all []measurement
	for _, c := range []struct {
		name, work, file string
		own              func(testing.TB, string) found
	}{
		{"JSON read into a timeline, against json.load", "load", plain, load},
		{"gzipped JSON, against gzip.open and json.load", "load", packed, load},
		{"SQLite: all rows of four tables, against sqlite3", "scan", export, scan},
		{"SQLite: the whole report", "report", export, report},
	} {
		best := measurement{Name: c.name, Heddle: math.Inf(1), Python: math.Inf(1)}
		st, err := os.Stat(c.file)
		if err != nil {
			t.Fatal(err)
		}
		for range *rounds {
			own, peer := c.own(t, c.file), python(t, c.work, c.file)
			best.Heddle, best.Python = min(best.Heddle, own.Seconds), min(best.Python, peer.Seconds)
			own.Seconds, peer.Seconds = 0, 0
			if own != peer {
				t.Errorf("%s: got %+v, Python %+v", c.name, own, peer)
			}
			best.Events = max(own.Events, own.Rows, int64(own.Kernels))
		}
		best.Bytes, best.Ratio, best.HeddleMB = st.Size(), best.Python/best.Heddle, float64(st.Size())/best.Heddle/1e6
		t.Logf("%-50s heddle %.3f s, Python %.3f s, ratio %.1f", c.name, best.Heddle, best.Python, best.Ratio)
		all = append(all, best)
	}
	if *results != "" {
		save(t, all, plain)
	}
}

// write writes the run as JSON, and gzipped if packed has a name.
func write(t testing.TB, plain, packed string, kernels []made) {
	f, err := os.Create(plain)
	if err != nil {
		t.Fatal(err)
	}
	if packed == "" {
		b := bufio.NewWriterSize(f, 1<<20)
		kineto(b, kernels)
		if err := firstOf(b.Flush(), f.Close()); err != nil {
			t.Fatal(err)
		}
		return
	}
	g, err := os.Create(packed)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(g)
	b := bufio.NewWriterSize(io.MultiWriter(f, z), 1<<20)
	kineto(b, kernels)
	if err := firstOf(b.Flush(), z.Close(), f.Close(), g.Close()); err != nil {
		t.Fatal(err)
	}
}

// save also measures what the command needs of memory for the JSON file: time and peak resident size of a process.
func save(t *testing.T, all []measurement, file string) {
	binary := filepath.Join(t.TempDir(), "heddle")
	if out, err := exec.Command("go", "build", "-o", binary, "heddle/cmd/heddle").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out := struct {
		Command      string        `json:"command"`
		Date         string        `json:"date"`
		Machine      string        `json:"machine"`
		Load         string        `json:"load_average"` // others at work make all times longer
		Go           string        `json:"go"`
		Python       string        `json:"python"`
		Rounds       int           `json:"rounds"`
		Measurements []measurement `json:"measurements"`
		Commands     []commandCost `json:"heddle_trace_bubbles"`
	}{
		Command: fmt.Sprintf("go test ./trace/analyze/peer -run Python -timeout 60m -events %d -rounds %d -large %d -results %s", *events, *rounds, *large, *results),
		Date:    time.Now().UTC().Format("2006-01-02"), Machine: machine(), Go: runtime.Version(), Rounds: *rounds, Measurements: all,
		Commands: []commandCost{cost(t, binary, *events, file), cost(t, binary, *events, file, "--json")},
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		out.Load = strings.Join(strings.Fields(string(b))[:3], " ")
	}
	if *large > 0 {
		big := filepath.Join(t.TempDir(), "large.json")
		write(t, big, "", run(*large/5))
		out.Commands = append(out.Commands, cost(t, binary, *large, big), cost(t, binary, *large, big, "--json"))
	}
	if v, err := exec.Command("python3", "-V").Output(); err == nil {
		out.Python = strings.TrimSpace(string(v))
	}
	b, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(*results), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*results, append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// commandCost is what one run of the command took, as a process.
type commandCost struct {
	Flags   []string `json:"flags,omitempty"`
	Events  int      `json:"events"`
	Bytes   int64    `json:"bytes"`
	Seconds float64  `json:"seconds"`
	CPU     float64  `json:"cpu_seconds"`
	PeakMB  float64  `json:"peak_mb"` // resident
}

func cost(t *testing.T, binary string, events int, file string, flags ...string) commandCost {
	st, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, append([]string{"trace", "bubbles", file}, flags...)...)
	began := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began).Seconds()
	s := cmd.ProcessState
	c := commandCost{Flags: flags, Events: events, Bytes: st.Size(), Seconds: took, CPU: (s.UserTime() + s.SystemTime()).Seconds(),
		PeakMB: float64(s.SysUsage().(*syscall.Rusage).Maxrss) / 1024}
	t.Logf("%+v", c)
	return c
}

func machine() string {
	model := runtime.GOARCH
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		lines := strings.Split(string(b), "\n")
		if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "model name") }); i >= 0 {
			_, model, _ = strings.Cut(lines[i], ": ")
		}
	}
	return fmt.Sprintf("%s, %d CPUs", model, runtime.NumCPU())
}
