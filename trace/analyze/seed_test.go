package analyze

import (
	"bytes"
	"flag"
	"os"
	"reflect"
	"testing"
)

var update = flag.Bool("update", false, "write the seed of the fuzz targets anew")

// The seed of the fuzz targets for exports is made here, where SQLite is linked.
func TestFuzzSeedIsTheRunItWasMadeOf(t *testing.T) {
	const name = "fuzz/testdata/made.sqlite"
	r := newRun()
	for _, b := range bubbles {
		if b.name == "sleep on the host" || b.name == "copy in another stream" {
			b.run(r)
		}
	}
	want := r.nsight(t, "")
	if *update {
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	a, b := readBytes(t, got), readBytes(t, want) // not the bytes, which SQLite's version may change
	if !reflect.DeepEqual(a.Work, b.Work) || !reflect.DeepEqual(a.Calls, b.Calls) || !reflect.DeepEqual(a.Ranges, b.Ranges) || len(a.Work) == 0 || !bytes.HasPrefix(got, []byte("SQLite format 3")) {
		t.Errorf("%s is of another run; hint: go test ./trace/analyze -run FuzzSeed -update", name)
	}
}
