package analyze

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func zipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return z.Bytes()
}

// A file cut anywhere gives the kernels before the cut and a warning, or, if nothing can be read, an error. A cut
// behind the list of events loses none.
func TestACutFileGivesWhatIsThereAndAWarning(t *testing.T) {
	r := newRun()
	for range 40 {
		r.launch(7, "gemm", 50)
	}
	json := r.kineto()
	end := bytes.Index(json, []byte("\n  ],"))
	for form, file := range map[string][]byte{"json": json, "gzip": zipped(t, json), "nsight": r.nsight(t, "")} {
		best := 0
		for cut := 0; cut < len(file); cut += 1 + len(file)/60 {
			tl, err := Read(bytes.NewReader(file[:cut]), int64(cut))
			if err != nil {
				continue
			}
			rep := Bubbles([]*Timeline{tl}, Options{})
			kernels := 0
			for _, d := range rep.Devices {
				kernels += d.Kernels
			}
			if len(rep.Warnings) == 0 {
				t.Errorf("%s cut at %d of %d: no warning", form, cut, len(file))
			}
			if want := bytes.Count(json[:min(cut, end)], []byte(`"cat": "kernel"`)); form == "json" && (kernels > want || kernels < want-1) {
				t.Errorf("json cut at %d: %d kernels, want %d or one less", cut, kernels, want)
			}
			best = max(best, kernels)
		}
		if best < 30 {
			t.Errorf("%s: at best %d of 40 kernels", form, best)
		}
	}
}

// Events that make no sense are counted and left out; the good ones around them stay.
func TestSenselessEventsAreCounted(t *testing.T) {
	const kernel = `{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":10,"dur":5,"args":{"device":0,"stream":7}}`
	file := `[` + kernel + `,
		{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":20,"dur":-5,"args":{"device":0,"stream":7}},
		{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":-9223372036854775808,"dur":1},
		{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":NaN,"dur":5,"args":{"device":0}},
		{"ph":"X","cat":"kernel","name":"k","pid":"x","tid":7,"ts":30,"dur":5},
		{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":9007199254740992,"dur":9007199254740992},
		{"ph":"X","cat":"kernel","name":"late","pid":0,"tid":7,"ts":40,"args":{"device":0,"stream":7}},
		{"ph":"E","pid":1,"tid":1,"ts":3},{"ph":"B","pid":1,"tid":1,"ts":3,"name":"open"},
		{"ph":"B","pid":2,"tid":1,"ts":10,"name":"phase"},{"ph":"E","pid":2,"tid":1,"ts":30},
		{"name":"no ph"}` + `]`
	tl := readBytes(t, []byte(file))
	want := map[string]int64{"negative duration": 1, "no time": 2, "no device": 1, "time beyond all bounds": 1, "no duration, taken as 0": 1, "end without begin": 1, "begin without end": 1, "no ph": 1}
	for reason, n := range want {
		if tl.Dropped[reason] != n {
			t.Errorf("%s: %d, want %d", reason, tl.Dropped[reason], n)
		}
	}
	if len(tl.Dropped) != len(want) || len(tl.Ranges) != 1 || tl.Ranges[0].End != 30_000 {
		t.Errorf("dropped %v, ranges %v", tl.Dropped, tl.Ranges)
	}
	rep := Bubbles([]*Timeline{tl}, Options{})
	if len(rep.Warnings) != 1 || !strings.Contains(rep.Warnings[0], "9 events made no sense (begin without end: 1, end without begin: 1, negative duration: 1, no device: 1") {
		t.Errorf("warnings %q", rep.Warnings)
	}
	d := rep.Devices[0]
	if d.Kernels != 2 || ns(d.SpanUS) != 30_000 || ns(d.BusyUS) != 5_000 {
		t.Errorf("got %+v", d)
	}
}

func TestOtherFilesAreErrors(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "text": "hello", "broken gzip": "\x1f\x8b\x08\x00", "other sqlite": "SQLite format 3\x00 and no more"} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, nil); err == nil || !strings.HasPrefix(err.Error(), "trace: "+path+": ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := Open(t.TempDir(), nil); err == nil {
		t.Error("a folder: no error")
	}
	if _, err := Open(filepath.Join(t.TempDir(), "absent"), nil); err == nil {
		t.Error("no file: no error")
	}
}

// JAX has no categories: a process named /device:GPU:n is a device, its threads named Stream are its streams, and its
// other threads repeat the same work.
const jaxTrace = `{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[
{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:1"}},
{"ph":"M","pid":1,"tid":14,"name":"thread_name","args":{"name":"Stream #14(Compute)"}},
{"ph":"M","pid":1,"tid":20,"name":"thread_name","args":{"name":"Stream #20(MemcpyH2D)"}},
{"ph":"M","pid":1,"tid":9999,"name":"thread_name","args":{"name":"XLA Ops"}},
{"ph":"M","pid":701,"name":"process_name","args":{"name":"/host:CPU"}},
{"ph":"M","pid":701,"tid":5,"name":"thread_name","args":{"name":"python"}},
{"ph":"X","pid":1,"tid":14,"ts":100,"dur":10.5,"name":"gemm_fusion","args":{"hlo_op":"dot.1","correlation_id":"5"}},
{"ph":"X","pid":1,"tid":14,"ts":400,"dur":10,"name":"loop_add_fusion","args":{"hlo_op":"add.2","correlation_id":"6"}},
{"ph":"X","pid":1,"tid":20,"ts":120,"dur":200,"name":"MemcpyH2D","args":{"memcpy_details":"kind_src:pageable size:1"}},
{"ph":"X","pid":1,"tid":9999,"ts":100,"dur":10.5,"name":"dot.1"},
{"ph":"X","pid":701,"tid":5,"ts":90,"dur":5,"name":"cuLaunchKernel","args":{"correlation_id":"5"}},
{"ph":"X","pid":701,"tid":5,"ts":390,"dur":5,"name":"cuLaunchKernel","args":{"correlation_id":"6"}},
{"ph":"X","pid":701,"tid":5,"ts":80,"dur":400,"name":"train_step 3"},
{"ph":"X","pid":701,"tid":5,"ts":96,"dur":290,"name":"input pipeline"}
]}`

func TestJAX(t *testing.T) {
	tl := readBytes(t, zipped(t, []byte(jaxTrace)))
	r := Bubbles([]*Timeline{tl}, Options{})
	if tl.Format != "JAX" || len(r.Devices) != 1 {
		t.Fatalf("%s, devices %+v", tl.Format, r.Devices)
	}
	d := r.Devices[0]
	if d.Device != 1 || d.Kernels != 2 || d.Streams != 1 || d.Copies != 1 || d.Linked != 2 || ns(d.BusyUS) != 20_500 || ns(d.SpanUS) != 310_000 {
		t.Errorf("got %+v", d)
	}
	g := d.Gaps[0]
	if g.Cause != CauseCopy || g.Step != "train_step 3" || *g.Corr != 6 || ns(g.DurUS) != 289_500 {
		t.Errorf("got %+v", g)
	}
	without := strings.Replace(jaxTrace, `"dur":200,`, `"dur":2,`, 1)
	if g := Bubbles([]*Timeline{readBytes(t, []byte(without))}, Options{}).Devices[0].Gaps[0]; g.Cause != CauseHost || g.Range != "input pipeline" {
		t.Errorf("without the copy: got %+v", g)
	}
}

// What heddle writes of any file reads back with the same devices, gaps and causes.
func TestConvertedFilesTellTheSame(t *testing.T) {
	for _, w := range truth(t) {
		if w.Kernels > 4100 {
			continue // these take most of the time and hold nothing new
		}
		tl, err := Open(filepath.Join(shared, w.File), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := Bubbles([]*Timeline{tl}, Options{})
		var b bytes.Buffer
		if _, err := WriteChrome(&b, []*Timeline{tl}); err != nil {
			t.Fatal(err)
		}
		got := Bubbles([]*Timeline{readBytes(t, b.Bytes())}, Options{})
		if len(got.Devices) != len(want.Devices) {
			t.Fatalf("%s: %d devices, want %d", w.File, len(got.Devices), len(want.Devices))
		}
		for i, g := range got.Devices {
			d := want.Devices[i]
			if g.Kernels != d.Kernels || ns(g.BusyUS) != ns(d.BusyUS) || ns(g.SpanUS) != ns(d.SpanUS) || g.GapCount != d.GapCount || g.Linked != d.Linked || g.Comm != d.Comm || ns(g.OverlapUS) != ns(d.OverlapUS) || ns(g.CopyUS) != ns(d.CopyUS) {
				t.Errorf("%s device %d: got %d kernels, busy %v, %d gaps, %d linked; want %d, %v, %d, %d", w.File, d.Device, g.Kernels, g.BusyUS, g.GapCount, g.Linked, d.Kernels, d.BusyUS, d.GapCount, d.Linked)
			}
		}
	}
}
