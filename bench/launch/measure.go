package launch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"heddle/bench"
	"heddle/kernel/gemm"
)

// burstTime is how long the chains of one burst may take: enough to drown the events around them, little enough to take turns often.
const burstTime = 25 * time.Millisecond

// size measures every way at n.
func (s *session) size(ctx context.Context, n int) (Size, error) {
	c, err := s.config(n)
	if err != nil {
		return Size{}, err
	}
	m, err := s.allocate(n)
	if err != nil {
		return Size{}, err
	}
	defer s.dev.Free(m.block)
	k, err := s.newChecker(m, c)
	if err != nil {
		return Size{}, err
	}
	defer k.close()
	size := Size{N: n, Config: c.String(), Sets: len(m.chains), Chains: s.chains(n)}
	for _, v := range Variants() {
		if len(s.Only) == 0 || slices.Contains(s.Only, v.Name) {
			size.Ways = append(size.Ways, Way{Name: v.Name, Doc: v.Doc})
		}
	}
	if err := s.times(ctx, &size, c, m, k); err != nil {
		return size, err
	}
	if err := s.insides(ctx, &size, c, m); err != nil {
		return size, err
	}
	size.Controls, err = s.controls(c, m, k)
	return size, err
}

// chains is how many chains a burst has: what fits in burstTime at 600 TFLOP/s, an even number of 4 at least.
func (s *session) chains(n int) int {
	us := 8 + 4*float64(n)*float64(n)*float64(n)/600e6
	return max(4, min(s.Chains, int(burstTime.Seconds()*1e6/us)))
}

// times checks each way, then measures all in turn, their order rotating, with kernels that take no stamps.
func (s *session) times(ctx context.Context, size *Size, c gemm.Config, m *memory, k *checker) error {
	if err := s.check(size, c, m, k); err != nil {
		return err
	}
	all, err := s.bursts(size, c, m, size.Chains, false)
	if err != nil {
		return err
	}
	live, queued, host := make([][]float64, len(all)), make([][]float64, len(all)), make([][]float64, len(all))
	for round := range s.Rounds + 1 {
		for turn := range all {
			if err := ctx.Err(); err != nil {
				return err
			}
			i := (turn + round) % len(all)
			l, _, err := s.timed(all[i], false)
			if err != nil {
				return err
			}
			q, h, err := s.timed(all[i], true)
			if err != nil {
				return err
			}
			if round > 0 { // the first one warms up
				live[i], queued[i], host[i] = append(live[i], l), append(queued[i], q), append(host[i], h)
			}
		}
	}
	for i := range all {
		w := &size.Ways[i]
		w.Calls = all[i].calls()
		if g := all[i].graphs; len(g) > 0 {
			w.Edges = [2]int{g[0].Edges, g[0].Programmatic}
		}
		w.Live, w.Queued, w.Host = spread(live[i]), spread(queued[i]), spread(host[i])
		s.Progress("%6d %-22s chain %s µs live, %s queued, host %s a call", size.N, w.Name, w.Live, w.Queued, w.Host)
	}
	return closeAll(all)
}

// checkBursts is how often each way's results are compared.
const checkBursts = 3

// check compares each way's results with those of plain launches, every set used once a burst.
func (s *session) check(size *Size, c gemm.Config, m *memory, k *checker) error {
	all, err := s.bursts(size, c, m, len(m.chains), false)
	if err != nil {
		return err
	}
	for i, u := range all {
		for range checkBursts {
			wrong, err := k.wrong(u)
			if err != nil {
				return fmt.Errorf("%w (%s)", err, u.Name)
			}
			size.Ways[i].Wrong += wrong
		}
		if w := size.Ways[i].Wrong; w > 0 {
			return fmt.Errorf("launch: %s: %d words of the results differ from those of plain launches", u.Name, w)
		}
	}
	return closeAll(all)
}

func closeAll(all []*burst) error {
	for _, u := range all {
		if err := u.close(); err != nil {
			return err
		}
	}
	return nil
}

// bursts are the ways of a size, ready.
func (s *session) bursts(size *Size, c gemm.Config, m *memory, chains int, stamped bool) ([]*burst, error) {
	var all []*burst
	for _, w := range size.Ways {
		at := slices.IndexFunc(Variants(), func(v Variant) bool { return v.Name == w.Name })
		u, err := s.ready(Variants()[at], c, m, chains, stamped)
		if err != nil {
			return nil, fmt.Errorf("%w (%s)", err, w.Name)
		}
		if err := u.queue(); err != nil { // sets of sizes are met, functions loaded
			return nil, fmt.Errorf("%w (%s)", err, w.Name)
		}
		all = append(all, u)
	}
	return all, s.stream.Synchronize()
}

// timed gives a chain's time on the device and a call's on the host, in µs. Where held, the device is kept busy until all is queued.
func (s *session) timed(u *burst, held bool) (chain, call float64, err error) {
	if held {
		if err := s.hold(u.holdFor()); err != nil {
			return 0, 0, err
		}
	}
	if err := s.start.Record(s.stream); err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	if err := u.queue(); err != nil {
		return 0, 0, err
	}
	host := time.Since(begin)
	if err := s.end.Record(s.stream); err != nil {
		return 0, 0, err
	}
	if err := s.end.Synchronize(); err != nil {
		return 0, 0, err
	}
	d, err := s.end.Since(s.start)
	return d.Seconds() * 1e6 / float64(u.chains), host.Seconds() * 1e6 / float64(u.calls()), err
}

// insides measures with stamped kernels.
func (s *session) insides(ctx context.Context, size *Size, c gemm.Config, m *memory) error {
	all, err := s.bursts(size, c, m, size.Chains, true)
	if err != nil {
		return err
	}
	queued, live := make([]apart, len(all)), make([]apart, len(all))
	for round := range max(3, s.Rounds/2) {
		for turn := range all {
			if err := ctx.Err(); err != nil {
				return err
			}
			i := (turn + round) % len(all)
			for held, into := range map[bool]*apart{true: &queued[i], false: &live[i]} {
				x, err := s.stamps(all[i], held)
				if err != nil {
					return fmt.Errorf("%w (%s)", err, all[i].Name)
				}
				into.add(x)
			}
		}
	}
	for i := range all {
		st := queued[i].stamped()
		st.Live = live[i].stamped().Timeline
		size.Ways[i].Stamped = &st
		s.Progress("%6d %-22s stamped %s µs; gaps %.2f %.2f %.2f, hole %.2f; bodies %.2f %.2f %.2f %.2f", size.N, all[i].Name, st.Period, st.Gaps[0].Median, st.Gaps[1].Median, st.Gaps[2].Median,
			st.Hole.Median, st.Bodies[0].Median, st.Bodies[1].Median, st.Bodies[2].Median, st.Bodies[3].Median)
	}
	return closeAll(all)
}

// stamps runs a burst of stamped kernels and reads what they left.
func (s *session) stamps(u *burst, held bool) ([]span, error) {
	bytes := u.chains * kernelsPerChain * stampBytes
	if err := s.stream.Fill(u.b.stamps.at, 0xff, bytes); err != nil {
		return nil, err
	}
	if !held {
		if err := s.stream.Synchronize(); err != nil {
			return nil, err
		}
	}
	if _, _, err := s.timed(u, held); err != nil {
		return nil, err
	}
	raw := make([]byte, bytes)
	if err := s.dev.CopyOut(raw, u.b.stamps.at); err != nil {
		return nil, err
	}
	return spans(raw, u.chains*kernelsPerChain)
}

// apart collects chains taken apart.
type apart struct {
	period, hole []float64
	bodies       [4][]float64
	gaps         [3][]float64
	chains       [][5]Times
}

// add takes a burst. Its first two chains and its last, which nothing follows, count for nothing.
func (a *apart) add(x []span) {
	between := func(from, to uint64) float64 { return float64(int64(to-from)) / 1e3 }
	for i := 2 * kernelsPerChain; i+kernelsPerChain < len(x); i += kernelsPerChain {
		c := x[i : i+kernelsPerChain+1]
		a.period = append(a.period, between(c[0].wait, c[4].wait))
		a.hole = append(a.hole, between(c[3].end, c[4].wait))
		var t [5]Times
		for j, k := range c {
			t[j] = Times{between(c[0].begin, k.begin), between(c[0].begin, k.wait), between(c[0].begin, k.end)}
			if j < 4 {
				a.bodies[j] = append(a.bodies[j], between(k.wait, k.end))
			}
			if j < 3 {
				a.gaps[j] = append(a.gaps[j], between(k.end, c[j+1].wait))
			}
		}
		a.chains = append(a.chains, t)
	}
}

// stamped is the medians, and the chain with the median period.
func (a *apart) stamped() Stamped {
	st := Stamped{Period: spread(a.period), Hole: spread(a.hole)}
	for j := range a.bodies {
		st.Bodies[j] = spread(a.bodies[j])
	}
	for j := range a.gaps {
		st.Gaps[j] = spread(a.gaps[j])
	}
	middle := bench.Median(a.period)
	nearest := 0
	for i, p := range a.period {
		if d := p - middle; d*d < (a.period[nearest]-middle)*(a.period[nearest]-middle) {
			nearest = i
		}
	}
	if len(a.chains) > 0 {
		st.Timeline = a.chains[nearest]
	}
	return st
}

// controls are builds that are wrong on purpose: kernels that trigger early and do not wait. Where the check finds nothing wrong with them, it is worth nothing.
func (s *session) controls(c gemm.Config, m *memory, k *checker) ([]Control, error) {
	var all []Control
	for _, w := range []struct {
		name  string
		waits waits
	}{{"no kernel waits", noneWaits}, {"zeros do not wait", zerosDoNot}} {
		b, err := s.build(c, how{overlap: gemm.Invites, pdl: true, waits: w.waits})
		if err != nil {
			return nil, err
		}
		u := &burst{Variant: Variant{Name: w.name}, s: s, b: b, m: m, chains: len(m.chains)}
		if err := u.queue(); err != nil {
			return nil, err
		}
		ctl := Control{Name: w.name, Must: w.waits == noneWaits}
		for range 8 {
			wrong, err := k.wrong(u)
			if err != nil {
				return nil, err
			}
			ctl.Bursts++
			ctl.Wrong += wrong
			if wrong > 0 {
				ctl.Caught++
			}
		}
		s.Progress("       control: %s: caught in %d of %d bursts", w.name, ctl.Caught, ctl.Bursts)
		all = append(all, ctl)
	}
	return all, nil
}
