package trace

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// scanned is a flat form of a trace that both readers can make.
func scanned(t testing.TB, r io.Reader) (lines []string, scan *Scan) {
	scan, err := ScanEvents(r, nil, func(e *Raw) {
		lines = append(lines, fmt.Sprintf("%q %q %q %q %q %d %d %d", []byte{e.Ph}, Unescape(e.Name), Unescape(e.Cat), e.Pid, e.Tid, e.Start, e.Dur, len(e.Args())))
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines, scan
}

// decoded is the same by encoding/json, with times shifted by hand.
func decoded(t testing.TB, file []byte) (lines []string) {
	var v any
	d := json.NewDecoder(bytes.NewReader(file))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	list, ok := v.([]any)
	if !ok {
		list = v.(map[string]any)["traceEvents"].([]any)
	}
	text := func(v any) string {
		if v == nil {
			return ""
		}
		return fmt.Sprint(v)
	}
	time := func(v any) int64 {
		if v == nil {
			return 0
		}
		whole, frac, _ := strings.Cut(fmt.Sprint(v), ".")
		ns, err := strconv.ParseInt(whole+(frac + "000")[:3], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return ns
	}
	for _, x := range list {
		e := x.(map[string]any)
		scalars := 0
		if args, ok := e["args"].(map[string]any); ok {
			for _, v := range args {
				switch v.(type) {
				case map[string]any, []any:
				default:
					scalars++
				}
			}
		}
		lines = append(lines, fmt.Sprintf("%q %q %q %q %q %d %d %d", text(e["ph"]), text(e["name"]), text(e["cat"]), text(e["pid"]), text(e["tid"]), time(e["ts"]), time(e["dur"]), scalars))
	}
	return lines
}

const sample = `{"schemaVersion": 1, "distributedInfo": {"rank": 3, "backend": "nccl", "groups": [1, {"a": "}"}]},
 "traceEvents": [
  {"ph": "X", "cat": "kernel", "name": "a<\"b\\\\\", c>", "pid": 0, "tid": "stream 7", "ts": 1712195495505582.988, "dur": 0.001,
   "args": {"correlation": 7, "grid": [1, 2, {"x": "]"}], "name": "q\\", "nothing": null, "bw": 1.5e3}},
  {"name": "process_name", "ph": "M", "pid": 3, "args": {"name": "py\u0074hon \ud83d\ude00"}}
 ,{"ph":"i","ts":12,"pid":"Traces","tid":-1,"s":"g"}],
 "baseTimeNanoseconds": 1711964646000000000, "displayTimeUnit": "ms"}`

func TestScannerAgreesWithEncodingJSON(t *testing.T) {
	files := map[string][]byte{"sample": []byte(sample)}
	real, _ := filepath.Glob("../../shared/traces/*/*.json*")
	for _, name := range real {
		if b := contents(t, name); len(b) < 5<<20 { // encoding/json takes a second for the largest
			files[name] = b
		}
	}
	if len(real) == 0 {
		t.Log("only the sample: no shared traces here")
	}
	for name, b := range files {
		want := decoded(t, b)
		got, scan := scanned(t, bytes.NewReader(b))
		if !reflect.DeepEqual(got, want) || scan.Truncated || scan.Malformed != 0 || scan.Events != int64(len(want)) || scan.Offset > int64(len(b)) {
			t.Errorf("%s: %d events, want %d; %+v", name, len(got), len(want), scan)
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Fatalf("event %d:\n got %s\nwant %s", i, got[i], want[i])
				}
			}
		}
	}
}

func contents(t testing.TB, name string) []byte {
	b, err := os.ReadFile(name)
	if err == nil && strings.HasSuffix(name, ".gz") {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(b)); err == nil {
			b, err = io.ReadAll(z)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Skipping leaves out what was skipped, nothing else.
func TestSkippingLeavesTheRestUnchanged(t *testing.T) {
	const file = `[{"ph":"f","id":1,"name":"_y}"},{"ph":"X","cat":"cpu_op","name":"a","args":{"s":"}\\\"{","d":[[1],{"Y":"_"}]},"ts":5,"dur":1},
		{"ph":"X","cat":"kernel","name":"b","args":{"stream":7},"ts":6}]`
	var got []string
	if _, err := ScanEvents(strings.NewReader(file), skipFlows, func(e *Raw) {
		got = append(got, fmt.Sprintf("%c %s %d %d", e.Ph, e.Name, e.Start, len(e.Args())))
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"f  0 0", "X a 5000 1", "X b 6000 1"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestArgumentsAreFoundByKey(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{`{"stream": 7, "correlation": 12}`, "7"},
		{`{"to":"stream","stream" : "0x1" }`, "0x1"},
		{`{"to":"a \"stream","stream":5}`, "5"},
		{`{"my\"stream":4,"stream":5}`, "5"},
		{`{"inner":{"stream":4},"stream":5}`, "5"},
		{`{"streams":4}`, ""},
		{`{"wait_on_stream":4, "stream":[3]}`, "[3]"},
		{`{}`, ""}, {`"stream"`, ""},
	} {
		_, err := ScanEvents(strings.NewReader(`[{"ph":"X","args":`+c.args+`}]`), nil, func(e *Raw) {
			if got := string(e.Arg("stream")); got != c.want {
				t.Errorf("%s: got %q, want %q", c.args, got, c.want)
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestMetadataBesideEventsIsKept(t *testing.T) {
	_, scan := scanned(t, strings.NewReader(sample))
	want := map[string]string{"schemaVersion": "1", "distributedInfo.rank": "3", "distributedInfo.backend": "nccl",
		"baseTimeNanoseconds": "1711964646000000000", "displayTimeUnit": "ms"}
	if !reflect.DeepEqual(scan.Meta, want) {
		t.Errorf("got %v, want %v", scan.Meta, want)
	}
}

// However the input arrives, with windows that end anywhere, the events are the same.
func TestWindowsMayEndAnywhere(t *testing.T) {
	flow := `[{"id":1,"ph":"f" ,"pid":3,"ts":5},{"ph":"s","x":{"y":"}"}},{"ph":"X","args":{"a":"\\\"}","b":[1,{}]}} , x}, {"ph":"X"},]`
	for _, file := range []string{sample, flow} {
		read := func(window int) (lines []string) {
			scan, err := scanEvents(iotest.OneByteReader(strings.NewReader(file)), window, skipFlows, func(e *Raw) {
				lines = append(lines, fmt.Sprintf("%c %q %d %d %q", e.Ph, e.Name, e.Start, e.Dur, e.Args()))
			})
			return append(lines, fmt.Sprint(err, scan.Malformed, scan.Truncated, scan.Meta, scan.Offset))
		}
		want := read(scanBuffer)
		for window := 1; window < len(file); window++ {
			if got := read(window); !reflect.DeepEqual(got, want) {
				t.Fatalf("window of %d:\n got %q\nwant %q", window, got, want)
			}
		}
	}
	n := 0
	event := `{"ph":"X","name":"` + strings.Repeat("k", 100_000) + `","ts":1,"dur":2,"pid":1,"tid":2},`
	n = 5 * scanBuffer / len(event)
	lines, scan := scanned(t, strings.NewReader("["+strings.Repeat(event, n)+"]"))
	if len(lines) != n || scan.Malformed != 0 || scan.Truncated {
		t.Errorf("got %d events, want %d: %+v", len(lines), n, scan)
	}
	huge := `[{"ph":"X","name":"` + strings.Repeat("k", 3*scanBuffer) + `","ts":1}]`
	if lines, scan = scanned(t, strings.NewReader(huge)); len(lines) != 1 || scan.Malformed != 0 {
		t.Errorf("an event longer than the window: got %d events, %+v", len(lines), scan)
	}
}

// What an event looks like where it is cut or spoiled; the two good events around it must survive.
func TestBrokenFilesGiveWhatCanBeRead(t *testing.T) {
	const good = `{"ph":"X","name":"a","ts":1,"dur":2}`
	for _, c := range []struct {
		name, file        string
		events, malformed int64
		truncated         bool
	}{
		{"trailing comma", "[" + good + "," + good + ",]", 2, 0, false},
		{"commas missing", "[" + good + " " + good + "]", 2, 0, false},
		{"cut in an event", "[" + good + "," + good + `,{"ph":"X","na`, 2, 0, true},
		{"cut in a string ending in an escape", "[" + good + "," + good + `,{"ph":"X","name":"\`, 2, 0, true},
		{"cut between events", `{"traceEvents":[` + good + "," + good, 2, 0, true},
		{"cut behind the list", `{"traceEvents":[` + good + "," + good + "]", 2, 0, true},
		{"bare quote in a name", "[" + good + `,{"ph":"X","name":"a"b","ts":1},` + good + "]", 2, 1, false},
		{"no colon", "[" + good + `,{"ph" "X"},` + good + "]", 2, 1, false},
		{"value missing", "[" + good + `,{"ph":"X","ts":,"dur":1},` + good + "]", 2, 1, false},
		{"garbage", "[" + good + `,@@@},` + good + "]", 2, 1, false},
		{"control character in a name", "[" + good + ",{\"ph\":\"X\",\"name\":\"\x01\",\"ts\":3}]", 2, 0, false},
		{"lone escape", "[" + good + `,{"ph":"X","name":"C:\U","ts":3}]`, 2, 0, false},
		{"byte order mark", "\xef\xbb\xbf[" + good + "," + good + "]", 2, 0, false},
		{"garbage to the end", "[" + good + "," + good + `, x`, 2, 1, true},
	} {
		lines, scan := scanned(t, strings.NewReader(c.file))
		if int64(len(lines)) != c.events || scan.Malformed != c.malformed || scan.Truncated != c.truncated {
			t.Errorf("%s: got %d events, %+v, want %d, malformed %d, truncated %v", c.name, len(lines), *scan, c.events, c.malformed, c.truncated)
		}
	}
	for _, file := range []string{"", "   ", "SQLite format 3\x00", "<html>"} {
		if _, err := ScanEvents(strings.NewReader(file), nil, func(*Raw) {}); err == nil {
			t.Errorf("%q: no error", file)
		}
	}
}

func TestTimesAreReadExactly(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "7": 7000, "-7": -7000, "1712195495505582.988": 1712195495505582988, "4203669603771.648": 4203669603771648,
		"2.5": 2500, "0.0004": 0, "0.0005": 1, "2.3040000000000003": 2304, "1e3": 1_000_000, "1.5e-3": 2, "9007199254740993": 9007199254740993000,
	} {
		if got, ok := parseMicros([]byte(text)); !ok || got != want {
			t.Errorf("%s: got %d %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-", "NaN", "Infinity", "-Infinity", "null", "true", "99999999999999999999", "1e300", "abc", "1.2.3", "0x10"} {
		if got, ok := parseMicros([]byte(text)); ok {
			t.Errorf("%q: got %d, want none", text, got)
		}
	}
}

func TestWrittenFilesReadBack(t *testing.T) {
	events := []Event{
		{Name: "matmul \"q\" \\ \n µ", Cat: Kernel, Rank: 0, Track: Compute, Start: 1_796_000_000_000_000_001, Dur: 1234, Args: []Arg{Int("correlation", -5), Text("shape", "[2, 3]")}},
		{Name: "overlaps", Cat: Kernel, Rank: 0, Track: Compute, Start: 1_796_000_000_000_000_500, Dur: 5000},
		{Name: "all-reduce", Cat: Collective, Rank: 3, Track: Collectives, Start: 1_796_000_000_000_000_999, Dur: 0, Args: []Arg{Int("bytes", 1<<40)}},
	}
	var b bytes.Buffer
	if err := WriteEvents(&b, events); err != nil {
		t.Fatal(err)
	}
	got, err := Read(bytes.NewReader(b.Bytes()))
	if err != nil || !reflect.DeepEqual(got, events) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, events)
	}
	if _, err := Read(bytes.NewReader(b.Bytes()[:b.Len()-20])); err == nil {
		t.Error("a cut file was read without an error")
	}
	if _, err := Read(strings.NewReader(sample)); err == nil {
		t.Error("another program's trace was taken for heddle's")
	}
}

// FuzzScan: no input panics or hangs, and what was read from a window of any size is the same.
func FuzzScan(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(`[{"ph":"X","name":"a"b","ts":1},{"ph":"X"}]`))
	f.Add([]byte(`{"traceEvents":[{"ph":"B","args":{"a":[}]}}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		var whole, pieces []string
		line := func(e *Raw) string {
			return fmt.Sprintf("%q %q %d %d %q", Unescape(e.Name), e.Pid, e.Start, e.Dur, e.Args())
		}
		s1, err1 := ScanEvents(bytes.NewReader(file), skipFlows, func(e *Raw) { whole = append(whole, line(e)) })
		s2, err2 := scanEvents(bytes.NewReader(file), 1, skipFlows, func(e *Raw) { pieces = append(pieces, line(e)) })
		if (err1 == nil) != (err2 == nil) || !reflect.DeepEqual(whole, pieces) || s1.Malformed != s2.Malformed {
			t.Errorf("whole: %v %q %+v\npieces: %v %q %+v", err1, whole, s1, err2, pieces, s2)
		}
	})
}

func skipFlows(ph byte) bool { return ph == 's' || ph == 'f' }

func BenchmarkScan(b *testing.B) {
	file := []byte("[" + strings.Repeat(sample[strings.Index(sample, "{\"ph"):strings.Index(sample, "\n ,")]+",\n  ", 20000) + "]")
	if shared := "../../shared/traces/hta/test.json.gz"; exists(shared) {
		file = contents(b, shared)
	}
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		n := 0
		if _, err := ScanEvents(bytes.NewReader(file), skipFlows, func(e *Raw) { n += len(e.Name) + len(e.Arg("correlation")) }); err != nil {
			b.Fatal(err)
		}
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
