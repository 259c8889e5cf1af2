package local

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unsafe"

	"heddle/comm"
	"heddle/num"
	"heddle/tensor"
)

type number interface{ float32 | float64 | int32 }

func dtype[T number]() tensor.DType {
	switch any(T(0)).(type) {
	case float64:
		return tensor.F64
	case int32:
		return tensor.I32
	}
	return tensor.F32
}

// data is a tensor over x.
func data[T number](x []T) tensor.Tensor {
	t := tensor.Tensor{Letters: "x", Dims: []int{len(x)}, Type: dtype[T](), Mem: tensor.Mem{Ptr: unsafe.Pointer(&append(x, 0)[0])}}
	if len(x) > 0 {
		t.Mem.Ptr = unsafe.Pointer(&x[0])
	}
	return t
}

// draw is n numbers of a rank; integers in floats, so that sums in any order are exact.
func draw[T number](rank, n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(int(num.Uniform(uint64(rank), 5, uint64(i))*2000) - 1000)
	}
	return x
}

// together runs f on p ranks of a new world and returns their errors.
func together(p int, deadline time.Duration, f func(rank int, l *Leaf) error) []error {
	w := NewWorld(p, deadline)
	errs := make([]error, p)
	done := make(chan int)
	for r := range p {
		go func() {
			errs[r] = f(r, w.Leaf(r))
			done <- r
		}()
	}
	for range p {
		<-done
	}
	return errs
}

func ranks(p int) (r []int) {
	for i := range p {
		r = append(r, i)
	}
	return r
}

func do(l *Leaf, o *comm.Op) error {
	l.Start(o)
	return l.Wait(o)
}

// plain is what rank me gets, by the definitions in comm.Op, one loop each.
func plain[T number](kind comm.Kind, in [][]T, me, n int) (out []T) {
	p := len(in)
	switch kind {
	case comm.AllReduceSum, comm.AllReduceMax:
		for i := range n {
			v := in[0][i]
			for _, x := range in[1:] {
				if kind == comm.AllReduceSum {
					v += x[i]
				} else if x[i] > v {
					v = x[i]
				}
			}
			out = append(out, v)
		}
	case comm.AllGather:
		for _, x := range in {
			out = append(out, x...)
		}
	case comm.ReduceScatter:
		for i := range n / p {
			var v T
			for _, x := range in {
				v += x[me*(n/p)+i]
			}
			out = append(out, v)
		}
	case comm.AllToAll:
		for _, x := range in {
			out = append(out, x[me*(n/p):(me+1)*(n/p)]...)
		}
	case comm.Broadcast:
		out = append(out, in[p-1]...)
	}
	return out
}

func collectives[T number](t *testing.T, p, n int) {
	for _, kind := range []comm.Kind{comm.AllReduceSum, comm.AllReduceMax, comm.AllGather, comm.ReduceScatter, comm.AllToAll, comm.Broadcast} {
		size := n
		if kind == comm.ReduceScatter || kind == comm.AllToAll {
			size = n * p
		}
		in := make([][]T, p)
		for r := range in {
			in[r] = draw[T](r, size)
		}
		for _, inPlace := range []bool{false, true} {
			if inPlace && kind > comm.AllReduceMax && kind != comm.Broadcast {
				continue
			}
			errs := together(p, time.Minute, func(rank int, l *Leaf) error {
				want := plain(kind, in, rank, size)
				src := append([]T(nil), in[rank]...)
				dst := make([]T, len(want))
				if inPlace {
					dst = src
				}
				o := &comm.Op{Kind: kind, Site: "test", Axes: "x", Ranks: ranks(p), Me: rank, Src: data(src), Dst: data(dst), Root: p - 1}
				if err := do(l, o); err != nil {
					return err
				}
				for i := range want {
					if dst[i] != want[i] {
						return fmt.Errorf("element %d is %v, want %v", i, dst[i], want[i])
					}
				}
				if o.Received != o.Wire() {
					return fmt.Errorf("received %d bytes, by definition %d", o.Received, o.Wire())
				}
				return nil
			})
			for r, err := range errs {
				if err != nil {
					t.Fatalf("%s of %d %s over %d ranks, in place %v: rank %d: %v", kind, n, dtype[T](), p, inPlace, r, err)
				}
			}
		}
	}
}

func TestEveryCollectiveAgreesWithItsDefinition(t *testing.T) {
	for _, p := range []int{1, 2, 3, 5} {
		for _, n := range []int{0, 1, 2, 7, 1025, 3000} {
			collectives[float32](t, p, n)
			collectives[float64](t, p, n)
			collectives[int32](t, p, n)
		}
	}
}

// Sums are taken in rank order whatever the chunks: the bits are those of one loop.
func TestSumsAreInRankOrder(t *testing.T) {
	const p, n = 4, 1337
	in := make([][]float32, p)
	for r := range in {
		for i := range n {
			in[r] = append(in[r], float32(num.Normal(1, uint64(r), uint64(i)))*float32(math.Pow(10, float64(r))))
		}
	}
	want := plain(comm.AllReduceSum, in, 0, n)
	errs := together(p, time.Minute, func(rank int, l *Leaf) error {
		dst := make([]float32, n)
		if err := do(l, &comm.Op{Kind: comm.AllReduceSum, Site: "test", Ranks: ranks(p), Me: rank, Src: data(in[rank]), Dst: data(dst)}); err != nil {
			return err
		}
		for i := range want {
			if math.Float32bits(dst[i]) != math.Float32bits(want[i]) {
				return fmt.Errorf("element %d is %v, want %v", i, dst[i], want[i])
			}
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestVariableAllToAllMovesEveryPairsCount(t *testing.T) {
	const p = 4
	count := func(from, to int) int { return (3*from + 5*to + from*to) % 4 } // 0 included
	errs := together(p, time.Minute, func(me int, l *Leaf) error {
		var src, want []float64
		o := &comm.Op{Kind: comm.AllToAll, Site: "test", Axes: "x", Ranks: ranks(p), Me: me, SendCounts: []int{}, RecvCounts: []int{}}
		for j := range p {
			for k := range count(me, j) {
				src = append(src, float64(100*me+10*j+k))
			}
			for k := range count(j, me) {
				want = append(want, float64(100*j+10*me+k))
			}
			o.SendCounts, o.RecvCounts = append(o.SendCounts, count(me, j)), append(o.RecvCounts, count(j, me))
		}
		dst := make([]float64, len(want))
		o.Src, o.Dst = data(src), data(dst)
		if err := do(l, o); err != nil {
			return err
		}
		for i := range want {
			if dst[i] != want[i] {
				return fmt.Errorf("got %v, want %v", dst, want)
			}
		}
		if o.Received != o.Wire() || o.Received != int64(8*(len(want)-count(me, me))) {
			return fmt.Errorf("received %d, wire %d, of %d", o.Received, o.Wire(), len(want))
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Pairs count their calls apart, so that a ring of sends and receives needs no order among pairs.
func TestSendReceiveAroundARing(t *testing.T) {
	const p, rounds = 3, 5
	errs := together(p, time.Minute, func(me int, l *Leaf) error {
		next, prev := (me+1)%p, (me+p-1)%p
		pair := func(peer int) ([]int, int) {
			if me < peer {
				return []int{me, peer}, 0
			}
			return []int{peer, me}, 1
		}
		v := []int32{int32(me)}
		for round := range rounds {
			got := []int32{-1}
			sr, si := pair(next)
			rr, ri := pair(prev)
			send := &comm.Op{Kind: comm.SendRecv, Site: "ring", Ranks: sr, Me: si, Src: data(v), Dst: data([]int32{}), Seq: uint64(round)}
			recv := &comm.Op{Kind: comm.SendRecv, Site: "ring", Ranks: rr, Me: ri, Src: data([]int32{}), Dst: data(got), Seq: uint64(round)}
			l.Start(send)
			l.Start(recv)
			if err := errors.Join(l.Wait(send), l.Wait(recv)); err != nil {
				return err
			}
			if want := int32((me + p - round - 1 + p*rounds) % p); got[0] != want || recv.Received != 4 || send.Received != 0 {
				return fmt.Errorf("round %d: got %d, want %d", round, got[0], want)
			}
			v = got
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestManyOpsInFlightKeepTheirOrder(t *testing.T) {
	const p, flights = 3, 20
	errs := together(p, time.Minute, func(me int, l *Leaf) error {
		ops := make([]*comm.Op, flights)
		out := make([][]float64, flights)
		for k := range ops {
			out[k] = make([]float64, 1)
			ops[k] = &comm.Op{Kind: comm.AllReduceSum, Site: "flight", Ranks: ranks(p), Me: me, Seq: uint64(k), Src: data([]float64{float64(k * (me + 1))}), Dst: data(out[k])}
			l.Start(ops[k])
		}
		for k, o := range ops {
			if err := l.Wait(o); err != nil {
				return err
			}
			if out[k][0] != float64(k*6) {
				return fmt.Errorf("op %d is %v, want %d", k, out[k][0], k*6)
			}
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestBarrierHoldsUntilAllHaveCome(t *testing.T) {
	const p = 4
	came := make([]bool, p)
	errs := together(p, time.Minute, func(me int, l *Leaf) error {
		time.Sleep(time.Duration(me) * time.Millisecond)
		came[me] = true
		if err := do(l, &comm.Op{Kind: comm.Barrier, Site: "b", Ranks: ranks(p), Me: me}); err != nil {
			return err
		}
		for r, ok := range came { // the barrier orders these writes and reads; -race agrees
			if !ok {
				return fmt.Errorf("rank %d passed before rank %d came", me, r)
			}
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func reduceOp(me, p, n int, site string) *comm.Op {
	return &comm.Op{Kind: comm.AllReduceSum, Site: site, Axes: "tp", Ranks: ranks(p), Me: me, Src: data(make([]float32, n)), Dst: data(make([]float32, n))}
}

func TestADeadlineNamesTheMissingRankAndTheSiteInTime(t *testing.T) {
	const deadline = 50 * time.Millisecond
	start := time.Now()
	errs := together(3, deadline, func(me int, l *Leaf) error {
		if me == 1 {
			return nil // never comes
		}
		return do(l, reduceOp(me, 3, 8, "attention exit"))
	})
	if took := time.Since(start); took > deadline+150*time.Millisecond {
		t.Errorf("took %v", took)
	}
	for _, r := range []int{0, 2} {
		if err := errs[r]; err == nil || !strings.Contains(err.Error(), "rank 1 is missing") || !strings.Contains(err.Error(), `"attention exit"`) || !strings.Contains(err.Error(), "over tp") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func TestADeadlineTellsWhereTheMissingRankIs(t *testing.T) {
	errs := together(3, 50*time.Millisecond, func(me int, l *Leaf) error {
		if me == 2 { // waits elsewhere, for rank 1 who never comes there
			o := reduceOp(1, 2, 8, "other place")
			o.Ranks = []int{1, 2}
			return do(l, o)
		}
		return do(l, reduceOp(me, 3, 8, "mlp exit"))
	})
	joined := errors.Join(errs...).Error()
	if !strings.Contains(joined, "is missing (in all-reduce of 8 f32 at ") {
		t.Error(joined)
	}
}

func TestCallsThatDifferAreRefusedShowingBothSides(t *testing.T) {
	for name, c := range map[string]struct {
		alter func(o *comm.Op)
		want  []string
	}{
		"size":   {func(o *comm.Op) { o.Src, o.Dst = data(make([]float32, 9)), data(make([]float32, 9)) }, []string{"of 8 f32", "of 9 f32"}},
		"type":   {func(o *comm.Op) { o.Src, o.Dst = data(make([]float64, 8)), data(make([]float64, 8)) }, []string{"of 8 f32", "of 8 f64"}},
		"op":     {func(o *comm.Op) { o.Kind = comm.AllReduceMax }, []string{"all-reduce of", "all-reduce max of"}},
		"order":  {func(o *comm.Op) { o.Site = "b" }, []string{`at "a"`, `at "b"`}},
		"sites'": {func(o *comm.Op) { o.Kind, o.Site = comm.Barrier, "c" }, []string{"all-reduce", "barrier"}},
	} {
		errs := together(2, time.Minute, func(me int, l *Leaf) error {
			o := reduceOp(me, 2, 8, "a")
			if me == 1 {
				c.alter(o)
			}
			return do(l, o)
		})
		for r, err := range errs {
			if err == nil {
				t.Errorf("%s: rank %d has no error", name, r)
				continue
			}
			for _, want := range append(c.want, "rank 0 calls", "rank 1 calls") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: rank %d: %v, want %q in it", name, r, err, want)
				}
			}
		}
	}
}

func TestCountsThatDifferAreRefused(t *testing.T) {
	errs := together(2, time.Minute, func(me int, l *Leaf) error {
		o := &comm.Op{Kind: comm.AllToAll, Site: "experts", Ranks: ranks(2), Me: me, Src: data(make([]float32, 2)), Dst: data(make([]float32, 3)), SendCounts: []int{1, 1}, RecvCounts: []int{1, 2}}
		if me == 1 {
			o.RecvCounts = []int{1, 1}
		}
		return do(l, o)
	})
	if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), "rank 1 sends 1 elements to rank 0, which expects 2") {
		t.Error(err)
	}
}

func TestAbortEndsEveryWaitWithTheFirstCause(t *testing.T) {
	cause := errors.New("disk on fire")
	start := time.Now()
	errs := together(4, time.Minute, func(me int, l *Leaf) error {
		if me == 3 {
			time.Sleep(5 * time.Millisecond)
			l.Abort(cause)
			l.Abort(errors.New("second"))
			return do(l, reduceOp(3, 4, 8, "after")) // also later ones
		}
		return do(l, reduceOp(me, 4, 8, "x"))
	})
	for r, err := range errs {
		if !errors.Is(err, cause) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestMeetingsAreForgotten(t *testing.T) {
	w := NewWorld(2, time.Minute)
	done := make(chan error)
	for r := range 2 {
		go func() {
			l := w.Leaf(r)
			for k := range 50 {
				o := reduceOp(r, 2, 8, "x")
				o.Seq = uint64(k)
				if err := do(l, o); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	if err := errors.Join(<-done, <-done); err != nil {
		t.Fatal(err)
	}
	if len(w.meetings) != 0 || w.past[0].op != nil || w.past[1].op != nil {
		t.Errorf("%d meetings are left", len(w.meetings))
	}
}
