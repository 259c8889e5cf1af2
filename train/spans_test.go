package train

import (
	"strings"
	"testing"
	"time"

	"heddle/compute"
	"heddle/trace"
)

// heard writes ranges as brackets.
type heard struct{ strings.Builder }

func (h *heard) Push(name string) { h.WriteString("(" + name) }
func (h *heard) Pop()             { h.WriteString(")") }

func TestProfilerHearsStepsPhasesAndLayersNested(t *testing.T) {
	h := new(heard)
	s := &spans{ranges: h}
	for _, step := range []int{1, 2} {
		s.step(step)
		s.Enter("forward", -1)
		s.Enter("forward", 0)
		s.Enter("forward", 1)
		s.Enter("forward", -1)
		s.Enter("backward", 1)
		s.Enter("", -1)
		s.stepEnd()
	}
	once := "(step 1(forward(forward layer 0)(forward layer 1))(backward(backward layer 1)))"
	if want := once + strings.Replace(once, "step 1", "step 2", 1); h.String() != want {
		t.Errorf("got  %s\nwant %s", h.String(), want)
	}
	s.Span(compute.Span{Track: "compute"}) // no recorder: nothing
	if (&spans{}).recorder() != nil {
		t.Error("a device reports to nobody")
	}
}

func TestCollectivesCarryBytesAndGroup(t *testing.T) {
	rec := trace.NewRecorder(2)
	s := &spans{into: rec}
	s.Span(compute.Span{Track: "collectives", Name: "all-reduce tp exit", Start: time.Unix(1, 0), Dur: time.Millisecond, Bytes: 4096, Group: "[2 3]"})
	s.Span(compute.Span{Track: "host", Name: "forward", Start: time.Unix(1, 0), Dur: time.Second})
	e := rec.Events()
	if len(e) != 2 || e[0].Cat != trace.Collective || len(e[0].Args) != 2 || e[0].Args[0] != trace.Int("bytes", 4096) || e[0].Args[1] != trace.Text("group", "[2 3]") || e[1].Cat != trace.Phase || len(e[1].Args) != 0 {
		t.Errorf("%+v", e)
	}
}

// Beside a timeline of the device, operations are ranges of the rank's thread: the kernels are the timeline's, or they would count twice.
func TestOperationsBesideATimelineAreRangesOfTheThread(t *testing.T) {
	rec := trace.NewRecorder(0)
	s := &spans{into: rec, thread: "thread 7"}
	for _, track := range []string{"compute", "host", "collectives"} {
		s.Span(compute.Span{Track: track, Name: track, Start: time.Unix(1, 0)})
	}
	rec.Add([]trace.Event{{Name: "gemm", Cat: trace.Kernel, Track: "stream 13", Start: 5, Dur: 6, Args: []trace.Arg{trace.Int("correlation", 1)}}})
	e := rec.Events()
	if len(e) != 4 || e[0].Cat != trace.Phase || e[0].Track != "thread 7" || e[1].Cat != trace.Phase || e[1].Track != "thread 7" || e[2].Cat != trace.Collective || e[2].Track != trace.Collectives {
		t.Errorf("%+v", e)
	}
	if e[3].Cat != trace.Kernel || e[3].Track != "stream 13" || e[3].Dur != 6 || len(e[3].Args) != 1 || s.row() != "thread 7" || (&spans{}).row() != trace.Host {
		t.Errorf("%+v", e[3])
	}
}
