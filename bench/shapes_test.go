package bench

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The list has every product of three models' training once for each length, each with the layouts that its place wants.
func TestListOfShapes(t *testing.T) {
	all, err := ReadShapes("shapes.json")
	if err != nil || len(all) != 3*2*7*3 {
		t.Fatalf("%d shapes, %v", len(all), err)
	}
	names := map[string]bool{}
	for _, x := range all {
		if names[x.Name] {
			t.Errorf("%s is there twice", x.Name)
		}
		names[x.Name] = true
		if wgrad := strings.HasSuffix(x.Name, "wgrad"); x.TransA != wgrad || x.TransB == strings.HasSuffix(x.Name, "forward") {
			t.Errorf("%+v has the wrong layouts", x)
		}
	}
	for _, text := range []string{"{}", `[{"name": "", "m": 1, "n": 1, "k": 1}]`, `[{"name": "x", "m": -1, "n": 1, "k": 1}]`} {
		path := filepath.Join(t.TempDir(), "x.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadShapes(path); err == nil {
			t.Errorf("%s passes", text)
		}
	}
}

// Shapes run on the kernel chosen for them; one whose output differs from the peer's is not timed.
func TestShapesOnStandIns(t *testing.T) {
	for _, defines := range [][]string{nil, {"-DWRONG"}} {
		g := standIns(t, defines...)
		g.PTX, g.Sizes, g.Sustained, g.Graphs, g.Pairs = "", nil, nil, nil, 2
		g.Shapes = []Shape{{Name: "square", M: 256, N: 256, K: 256}}
		r, err := g.Run(context.Background())
		if err != nil || len(r.Rows) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		var w bytes.Buffer
		PrintShapes(&w, r)
		row := r.Rows[0]
		if defines != nil {
			if row.Mode != "failed" || !strings.Contains(row.Failure, "elements differ from the peer's") || w.Len() != 0 {
				t.Errorf("a wrong kernel gives %+v\n%s", row, w.String())
			}
			continue
		}
		if row.Mode != "single" || len(row.Samples) != 3 || len(row.Samples[0].Micros) != 2 || !strings.Contains(w.String(), "1 shapes: geometric mean") {
			t.Errorf("got %+v\n%s", row, w.String())
		}
	}
}
