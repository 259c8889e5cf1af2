package launch

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// made are the stamps of chains whose bodies are 1, 2, 10, 20 µs, gaps 0.5, 0.25, 0.125 and holes 3 µs, on a clock that starts far from zero; kernels begin 0.1 µs before their
// waits end.
func made(chains int) []byte {
	raw := make([]byte, chains*kernelsPerChain*stampBytes)
	t := uint64(1) << 60
	for i := range chains * kernelsPerChain {
		j := i % kernelsPerChain
		at := raw[i*stampBytes:]
		binary.LittleEndian.PutUint64(at, t-100)
		binary.LittleEndian.PutUint64(at[8:], t)
		t += []uint64{1000, 2000, 10000, 20000}[j]
		binary.LittleEndian.PutUint64(at[16:], ^t)
		t += []uint64{500, 250, 125, 3000}[j]
	}
	return raw
}

func TestChainsAreTakenApartExactly(t *testing.T) {
	x, err := spans(made(6), 24)
	if err != nil {
		t.Fatal(err)
	}
	var a apart
	a.add(x)
	st := a.stamped()
	if st.Period.Median != 36.875 || st.Period.Count != 3 || st.Hole.Median != 3 || st.Hole.P90 != 3 {
		t.Errorf("period %+v, hole %+v", st.Period, st.Hole)
	}
	for j, want := range []float64{1, 2, 10, 20} {
		if st.Bodies[j].Median != want {
			t.Errorf("body %d: %v", j, st.Bodies[j])
		}
	}
	for j, want := range []float64{0.5, 0.25, 0.125} {
		if st.Gaps[j].Median != want {
			t.Errorf("gap %d: %v", j, st.Gaps[j])
		}
	}
	if total := st.bodies() + st.gaps() + st.Hole.Median; math.Abs(total-st.Period.Median) > 1e-9 {
		t.Errorf("parts add up to %v", total)
	}
	if k := st.Timeline[4]; k.Begin != 36.875 || k.Wait != 36.975 || st.Timeline[0].Begin != 0 {
		t.Errorf("timeline %+v", st.Timeline)
	}
}

func TestStampsOfKernelsThatDidNotRun(t *testing.T) {
	for at, word := range map[int]uint64{0: ^uint64(0), 16: ^uint64(0), 8: 5} { // no begin; no end; a wait that ended before the begin
		raw := made(1)
		binary.LittleEndian.PutUint64(raw[stampBytes+at:], word)
		if _, err := spans(raw, 4); err == nil || !strings.Contains(err.Error(), "kernel 1 ") {
			t.Errorf("word at %d: got %v", at, err)
		}
	}
}

func result(t *testing.T) *Result {
	t.Helper()
	x, err := spans(made(6), 24)
	if err != nil {
		t.Fatal(err)
	}
	var a apart
	a.add(x)
	plain, early := a.stamped(), a.stamped()
	early.Period.Median -= 2
	early.Gaps[2].Median -= 0.1
	early.Hole.Median -= 1.9
	plain.Live, early.Live = plain.Timeline, early.Timeline
	return &Result{Sizes: []Size{{N: 256, Config: "c", Ways: []Way{{Name: "handle", Stamped: &plain}, {Name: "handle-pdl", Stamped: &early}, {Name: "naive"}},
		Controls: []Control{{Name: "no kernel waits", Bursts: 8, Caught: 7, Wrong: 99}}, Peers: []Peer{{Name: "torch eager"}}}}, Host: []Host{{Name: "c"}}}
}

func TestGainIsSplitIntoBodiesGapsAndHole(t *testing.T) {
	g, ok := result(t).Sizes[0].Gain("handle", "handle-pdl")
	if !ok || math.Abs(g.Total-2) > 1e-9 || math.Abs(g.Gaps-0.1) > 1e-9 || math.Abs(g.Hole-1.9) > 1e-9 || math.Abs(g.Bodies) > 1e-9 || math.Abs(g.Other) > 1e-9 {
		t.Errorf("%+v", g)
	}
	if _, ok := result(t).Sizes[0].Gain("handle", "naive"); ok {
		t.Error("a way without stamps was compared")
	}
}

func TestResultComesBackFromItsFileAndPrints(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	if err := result(t).Write(path); err != nil {
		t.Fatal(err)
	}
	r, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	var was, is bytes.Buffer
	result(t).Print(&was)
	r.Print(&is)
	if was.String() != is.String() || !strings.Contains(is.String(), "handle → handle-pdl saves 2.00 µs of 36.88 (5.4 %): bodies 0.00, gaps 0.10, hole between chains 1.90") ||
		!strings.Contains(is.String(), "no kernel waits: wrong results in 7 of 8 bursts") {
		t.Errorf("%s", is.String())
	}
	if _, err := Read(path + "x"); err == nil {
		t.Error("a missing file was read")
	}
}

// The picture is well-formed XML, has a full bar for each kernel of each way that has stamps, and bars stay inside.
func TestPictureHasEveryKernel(t *testing.T) {
	for _, live := range []bool{false, true} {
		var b bytes.Buffer
		if err := result(t).Sizes[0].Picture(&b, live); err != nil {
			t.Fatal(err)
		}
		bars := 0
		for d := xml.NewDecoder(&b); ; {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "title" {
				bars++
			}
		}
		if bars != 2*5 {
			t.Errorf("%d full bars, want 10", bars)
		}
	}
	if err := (&Size{}).Picture(io.Discard, false); err == nil {
		t.Error("an empty size was drawn")
	}
}
