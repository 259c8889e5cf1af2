package checkpoint

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"heddle/checkpoint/safetensors"
	"heddle/internal/mangle"
)

const soundManifest = `{"format": "heddle checkpoint 1",
"meta": {"run":"r","step":3,"world":2,"layout":"fsdp 2","identity":{"seed":"1"},"state":{}},
"tensors": [{"name":"a","dtype":"F32","shape":[4,2]},{"name":"b","dtype":"F64","shape":[]}],
"shards": [
{"rank": 0, "file": "rank-00000.safetensors", "bytes": 100, "sha256": "00", "held": [{"name":"a","boxes":[[0,1,0,2],[1,2,0,1]]},{"name":"b","boxes":[[]]}]},
{"rank": 1, "file": "rank-00001.safetensors", "bytes": 100, "sha256": "00", "held": [{"name":"a","boxes":[[1,2,1,2],[2,4,0,2]]}]}]}`

func TestSoundManifestIsReadAndWrittenBack(t *testing.T) {
	m, err := parseManifest([]byte(soundManifest))
	if err != nil {
		t.Fatal(err)
	}
	if m.Run != "r" || m.Step != 3 || m.World != 2 || m.Layout != "fsdp 2" || m.Identity["seed"] != "1" || fmt.Sprint(m.Tensors) != "[{a F32 [4 2]} {b F64 []}]" ||
		fmt.Sprint(m.Shards[1].Held[0].Boxes) != "[{[1 1] [2 2]} {[2 0] [4 2]}]" {
		t.Errorf("got %+v", m)
	}
	text, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := parseManifest(text)
	if err != nil || fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", m) {
		t.Errorf("got %+v, %v", again, err)
	}
}

func TestMalformedManifestsAreRefused(t *testing.T) {
	cases := []struct{ old, new, says string }{
		{"checkpoint 1", "checkpoint 2", "format is"},
		{`"step":3`, `"step":-1`, "-1 is not within 0"},
		{`"step":3`, `"step":3.0`, "not a 64-bit integer"},
		{`"step":3`, `"step":"3"`, "want a number"},
		{`"step":3`, `"step":3,"step":4`, "occurs twice"},
		{`"step":3`, `"Step":3`, `unknown field "Step"`},
		{`"step":3,`, ``, "got 5 fields, want 6"},
		{`"world":2`, `"world":3`, "2 shards for 3 ranks"},
		{`"world":2`, `"world":1000000`, "1000000 is not within"},
		{`"seed":"1"`, `"seed":1`, "want a string"},
		{`"dtype":"F32"`, `"dtype":"f32"`, "is no tensor"},
		{`[4,2]`, `[4,-2]`, "-2 is not within"},
		{`[4,2]`, `[1099511627776,1099511627776]`, "is no tensor"},
		{`[4,2]`, `[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]`, "is no tensor"},
		{`"a","dtype"`, `"c","dtype"`, `"a" is not in the list`},
		{`{"name":"a","dtype":"F32","shape":[4,2]},`, ``, `"a" is not in the list`},
		{`"shape":[]}]`, `"shape":[]},{"name":"c","dtype":"F32","shape":[1]}]`, "no rank holds"},
		{`"shape":[]}]`, `"shape":[]},{"name":"b","dtype":"F64","shape":[]}]`, "no rank holds"},
		{`"rank": 1,`, `"rank": 0,`, "rank-00001"},
		{`"rank-00001.safetensors"`, `"../rank-00001.safetensors"`, "file of rank 1"},
		{`[0,1,0,2]`, `[0,1,0]`, "has not 2 dimensions"},
		{`[0,1,0,2]`, `[0,1,0,2,0,1]`, "has not 2 dimensions"},
		{`[0,1,0,2]`, `[1,0,0,2]`, "is no box"},
		{`[0,1,0,2]`, `[0,1,0,3]`, "ends outside"},
		{`[0,1,0,2]`, `[0,1,0,1]`, "hold 7 of 8"},
		{`[0,1,0,2]`, `[0,2,0,2]`, "both hold"},
		{`[2,4,0,2]`, `[2,4,0,2],[0,1,0,1]`, "both hold"},
		{`"b","boxes":[[]]`, `"b","boxes":[[],[]]`, "both hold"},
		{`"b","boxes":[[]]`, `"b","boxes":[]`, "hold 0 of 1"},
	}
	for _, c := range cases {
		text := strings.Replace(soundManifest, c.old, c.new, 1)
		if text == soundManifest {
			t.Errorf("%q is not in the manifest", c.old)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := parseManifest([]byte(text))
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.new, err, c.says)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s: allocated %d bytes", c.new, n)
		}
	}
	for n := range soundManifest {
		if _, err := parseManifest([]byte(soundManifest[:n])); err == nil {
			t.Errorf("cut after %d bytes: accepted", n)
		}
	}
	if _, err := parseManifest([]byte(soundManifest + "{}")); err == nil {
		t.Error("a second object was accepted")
	}
}

// FuzzManifest: nothing panics, and what is accepted is written back to the same.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(soundManifest))
	small, err := assemble(meta(1, 1), []Shard{{Held: []Held{{Tensor{"a", safetensors.U8, []int{2}}, []Box{Whole([]int{2})}}}}})
	if err != nil {
		f.Fatal(err)
	}
	text, _ := small.encode()
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseManifest(text)
		if err != nil {
			return
		}
		once, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		m, err = parseManifest(once)
		if err != nil {
			t.Fatalf("own manifest refused: %v\n%s", err, once)
		}
		if twice, _ := m.encode(); !bytes.Equal(once, twice) {
			t.Fatalf("%s\n%s", once, twice)
		}
	})
}

// Broken copies of a manifest: an error or a manifest whose boxes cover its tensors, never a panic.
func TestMangledManifestsDoNotPanic(t *testing.T) {
	mangle.Run(t, [][]byte{[]byte(soundManifest)}, func(in []byte) {
		if m, err := parseManifest(in); err == nil && m.cover() != nil {
			panic("does not cover")
		}
	})
}
