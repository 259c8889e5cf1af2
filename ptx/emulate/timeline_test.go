package emulate_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"heddle/kernel/gemm"
	"heddle/ptx/emulate"
)

// In the model's time nothing on one track overlaps, products fill the tensor cores for exactly their work, and no wait is shorter than what it waits for.
func TestTimelineAddsUp(t *testing.T) {
	g, err := gemm.New(gemm.Config{BM: 128, BN: 128, BK: 64, Stages: 3, Consumers: 2, ClusterM: 2, ClusterN: 1})
	if err != nil {
		t.Fatal(err)
	}
	k, sms, err := g.FaultCase()
	if err != nil {
		t.Fatal(err)
	}
	line := &emulate.Timeline{}
	if err := (emulate.Emulator{SMs: sms, Dry: true, Async: emulate.Early, Timeline: line}).Run(g.Module(), k.Launch, k.Args); err != nil {
		t.Fatal(err)
	}
	end, work := map[[2]int]float64{}, 0.0
	for _, s := range line.Slices {
		at := [2]int{s.CTA, s.Track}
		if s.Start < end[at] {
			t.Errorf("%v starts before the slice in front of it has ended, %v", s, end[at])
		}
		end[at] = s.End
		if s.Track == emulate.TensorTrack {
			work += s.End - s.Start
		}
	}
	// Two CTAs × two tiles × five k steps × 128×128×64 multiply-adds, 2,048 a clock.
	if want := float64(2*2*5*128*128*64) / 2048; work != want {
		t.Errorf("products take %v clocks, want %v", work, want)
	}
	if least := float64(2*5*128*128*64)/2048 + 600; line.End() < least {
		t.Errorf("the launch takes %v clocks, at least %v are products and the first load", line.End(), least)
	}
	var b bytes.Buffer
	if err := line.WritePerfetto(&b); err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []struct{ Name, Ph string }
	}
	if err := json.Unmarshal(b.Bytes(), &trace); err != nil || len(trace.TraceEvents) <= len(line.Slices) {
		t.Errorf("%d events for %d slices and their names, %v", len(trace.TraceEvents), len(line.Slices), err)
	}
}
