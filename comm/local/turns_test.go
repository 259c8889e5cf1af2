package local

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/comm"
)

// taking runs f on p ranks that take turns.
func taking(p int, deadline time.Duration, sim *Sim, f func(rank int, l *Leaf) error) (*World, []error) {
	w := NewSeeded(p, deadline, sim)
	errs := make([]error, p)
	done := make(chan int)
	for r := range p {
		go func() {
			w.Enter(r)
			errs[r] = f(r, w.Leaf(r))
			w.Exit(r)
			done <- r
		}()
	}
	for range p {
		<-done
	}
	return w, errs
}

// rounds are all-reduces of all ranks, one after the other.
func rounds(p, n int) func(me int, l *Leaf) error {
	return func(me int, l *Leaf) error {
		for k := range n {
			o := reduceOp(me, p, 8, fmt.Sprint("round ", k))
			o.Seq = uint64(k)
			if err := do(l, o); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestASeedIsOneInterleaving(t *testing.T) {
	orders := map[string]bool{}
	for seed := range uint64(20) {
		var first []uint8
		for range 3 {
			sim := &Sim{Seed: seed, Delay: time.Millisecond}
			_, errs := taking(4, time.Second, sim, rounds(4, 5))
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = sim.Order()
			}
			if !slices.Equal(sim.Order(), first) {
				t.Fatalf("seed %d: order %v, then %v", seed, first, sim.Order())
			}
		}
		orders[fmt.Sprint(first)] = true
	}
	if len(orders) != 20 {
		t.Errorf("20 seeds give %d orders", len(orders))
	}
}

// Only one rank runs between two calls: these writes to shared memory need no lock, as -race agrees.
func TestOneRankRunsAtATime(t *testing.T) {
	shared := 0
	_, errs := taking(4, time.Second, &Sim{Seed: 3, Delay: time.Millisecond}, func(me int, l *Leaf) error {
		for k := range 10 {
			shared++
			o := reduceOp(me, 4, 8, "x")
			o.Seq = uint64(k)
			if err := do(l, o); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil || shared != 40 {
		t.Errorf("%v, %d", err, shared)
	}
}

// Two pairs wait for each other across two groups: no rank can go on. The report comes at once, though the deadline is an hour,
// and has every rank's call and site.
func TestAHangIsReportedAtOnceWithEveryPendingCall(t *testing.T) {
	start := time.Now()
	w, errs := taking(3, time.Hour, &Sim{Seed: 1}, func(me int, l *Leaf) error {
		at := []struct {
			ranks []int
			me    int
			site  string
		}{{[]int{0, 1}, 0, "attention exit"}, {[]int{1, 2}, 0, "weights"}, {[]int{0, 2}, 1, "gradients"}}[me]
		o := reduceOp(at.me, 2, 8, at.site)
		o.Ranks = at.ranks
		return do(l, o)
	})
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	for r, err := range errs {
		h, ok := errors.AsType[*Hang](err)
		if !ok || h.Rank != -1 || err != w.Cause() {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
	for r, site := range []string{"attention exit", "weights", "gradients"} {
		if want := fmt.Sprintf("rank %d: in all-reduce of 8 f32 at %q over tp, call 0", r, site); !strings.Contains(errs[0].Error(), want) {
			t.Errorf("%v: want %q", errs[0], want)
		}
	}
}

func TestARankThatEndsEarlyIsNamed(t *testing.T) {
	_, errs := taking(3, time.Hour, &Sim{Seed: 1}, func(me int, l *Leaf) error {
		if me == 1 {
			return nil
		}
		return do(l, reduceOp(me, 3, 8, "loss"))
	})
	h, ok := errors.AsType[*Hang](errs[0])
	if !ok || h.Rank != 1 || h.Op.Site != "loss" || !slices.Equal(h.Missing, []int{1}) || !strings.Contains(errs[0].Error(), "rank 1 is the odd one: the end where ranks 0, 2: all-reduce") {
		t.Errorf("%v", errs[0])
	}
}

// A stall is late on the virtual clock: an hour of deadline passes in no time, and the rank that does not come is named, also to
// those who wait for others.
func TestDeadlinesRunOnTheVirtualClock(t *testing.T) {
	start := time.Now()
	sim := &Sim{Seed: 5, Fault: Fault{Kind: Stall, Rank: 2, Call: 3}}
	_, errs := taking(4, time.Hour, sim, rounds(4, 6))
	h, ok := errors.AsType[*Hang](errs[0])
	if !ok || h.Rank != 2 || h.Op.Site != "round 3" || !strings.Contains(errs[0].Error(), "waited 1h0m0s") {
		t.Errorf("%v", errs[0])
	}
	if took := time.Since(start); took > 10*time.Second || sim.Took() < time.Hour {
		t.Errorf("took %v, on the virtual clock %v", took, sim.Took())
	}
}

// Where calls differ, the rank is named that differs from two others or more; of two ranks no one can tell.
func TestTheOddRankIsNamed(t *testing.T) {
	for kind := Skip; kind < FaultKinds; kind++ {
		for seed := range uint64(10) {
			for p, named := range map[int]bool{2: false, 4: true} {
				sim := &Sim{Seed: seed, Delay: time.Millisecond, Fault: Fault{Kind: kind, Rank: 1, Call: 2, Next: comm.Signature{Kind: comm.AllReduceSum, Elems: 8, Site: "round 3"}}}
				_, errs := taking(p, time.Second, sim, rounds(p, 6))
				m, ok := errors.AsType[*Mismatch](errs[0])
				if !ok || len(m.Sides) != 2 || m.Seq < 2 || m.Seq > 3 {
					t.Fatalf("%s, %d ranks, seed %d: %v", kind, p, seed, errs[0])
				}
				if want := map[bool]int{true: 1, false: -1}[named]; m.Odd != want {
					t.Errorf("%s, %d ranks, seed %d: odd one %d, want %d: %v", kind, p, seed, m.Odd, want, errs[0])
				}
			}
		}
	}
}

// A call that a rank leaves out shows at the next, though site, size and ranks are the same in every layer.
func TestLayersArePartOfASignature(t *testing.T) {
	_, errs := taking(4, time.Second, &Sim{Fault: Fault{Kind: Skip, Rank: 3, Call: 1}}, func(me int, l *Leaf) error {
		for layer := range 4 {
			o := reduceOp(me, 4, 8, "mlp exit")
			o.Seq, o.Phase, o.Layer = uint64(layer), "forward", layer
			if err := do(l, o); err != nil {
				return err
			}
		}
		return nil
	})
	if m, ok := errors.AsType[*Mismatch](errs[0]); !ok || m.Odd != 3 || m.Seq != 1 {
		t.Errorf("%v", errs[0])
	}
}

// A rank that has started a call and then stalls elsewhere keeps the others from leaving it: it is named, though its call is there.
func TestARankThatStartedAndDoesNotWaitIsNamed(t *testing.T) {
	_, errs := taking(3, time.Second, &Sim{Seed: 2, Fault: Fault{Kind: Stall, Rank: 1, Call: 1}}, func(me int, l *Leaf) error {
		a, b := reduceOp(me, 3, 8, "first"), reduceOp(me, 3, 8, "second")
		b.Seq = 1
		l.Start(a)
		if me == 1 {
			l.Start(b) // stalls here
		}
		if err := l.Wait(a); err != nil {
			return err
		}
		if me != 1 {
			l.Start(b)
		}
		return l.Wait(b)
	})
	h, ok := errors.AsType[*Hang](errs[0])
	if !ok || h.Rank != 1 || h.Op.Site != "first" || !slices.Equal(h.Missing, []int{1}) {
		t.Errorf("%v", errs[0])
	}
}
