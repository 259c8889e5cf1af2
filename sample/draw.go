package sample

import (
	"fmt"
	"math"
	"runtime"
	"sync"

	"heddle/compute/cpu/vec"
	"heddle/num"
)

// drawn is one token and what is known of it.
type drawn struct {
	id                      int32
	logProb, drawn, entropy float64
	top                     []Candidate
}

// drawer turns logits into tokens; it holds the memory that takes.
type drawer struct {
	e    []float32 // [V] exp(x·scale − shift)
	heap likeliest
}

// choice is what one draw depends on beside the logits.
type choice struct {
	temperature, topP float64
	topK, top         int
	u                 float64 // in (0, 1)
}

// draw gives every active sequence its token; sequences are independent, so they are spread over the processors.
func (g *Generator) draw() error {
	threads := min(runtime.GOMAXPROCS(0), len(g.active))
	if len(g.active)*g.dec.Vocab() < 1<<16 { // tens of µs: not worth waking anybody
		threads = 1
	}
	for len(g.drawers) < threads {
		g.drawers = append(g.drawers, drawer{})
	}
	errs := make([]error, threads)
	share := func(w int) {
		for i := w; i < len(g.active) && errs[w] == nil; i += threads {
			errs[w] = g.drawOne(&g.drawers[w], g.active[i])
		}
	}
	var wait sync.WaitGroup
	for w := 1; w < threads; w++ {
		wait.Go(func() { share(w) })
	}
	share(0)
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *Generator) drawOne(d *drawer, r *running) (err error) {
	at := len(g.roots[r.Prompt].ids) + len(r.Tokens) // position of the new token
	c := choice{temperature: r.temp, topK: g.o.TopK, topP: g.o.TopP, top: g.o.Top, u: num.Uniform(g.o.Seed, r.Stream, uint64(at))}
	if r.at, err = d.draw(r.logits, c); err != nil {
		return fmt.Errorf("sample: prompt %d, position %d: %w", r.Prompt, at, err)
	}
	return nil
}

// draw measures the distribution and takes a token from it.
//
// The log-probability is (x − m) − ln Σ exp(x − m) with the sum in the order of training's loss, so that a policy's ratio to
// itself is exactly 1.
func (d *drawer) draw(x []float32, c choice) (t drawn, err error) {
	m := vec.Max(x)
	sum := float64(vec.SumExp(x, m))
	if !(sum >= 1) || math.IsInf(sum, 1) {
		return t, fmt.Errorf("the logits are not finite (largest %g): the weights have diverged or are damaged", m)
	}
	lse := math.Log(sum)
	t.entropy = d.entropy(x, m)
	if c.top > 0 {
		t.top = d.likeliest(x, m, lse, c.top)
	}
	if c.temperature == 0 {
		t.id = first(x, m)
	} else {
		t.id, t.drawn = d.pick(x, m, c)
	}
	t.logProb = float64(x[t.id]-m) - lse
	return t, nil
}

// LogProb is ln p(id) under softmax(logits), to the bit what Token.LogProb is.
func LogProb(logits []float32, id int32) float64 {
	m := vec.Max(logits)
	return float64(logits[id]-m) - math.Log(float64(vec.SumExp(logits, m)))
}

func first(x []float32, v float32) int32 {
	for i := range x {
		if x[i] == v {
			return int32(i)
		}
	}
	return 0
}

// entropy is ln S − Σ e·(x−m) ÷ S with e = exp(x − m), S = Σ e: blocks of 256 in float32, their sums in float64. What it
// leaves out by that is below 2⁻²¹ of the mean |x − m|: eight additions a lane and five to fold it, ½ ulp each, and 2 ulp of exp.
func (d *drawer) entropy(x []float32, m float32) float64 {
	var e, shifted [256]float32
	sum, weighted := 0.0, 0.0
	for len(x) > 0 {
		n := min(len(e), len(x))
		sum += float64(vec.ExpSum(e[:n], x[:n], 1, m))
		for i, v := range x[:n] {
			// exp is 0 long before, and 0·∞ must not be NaN where a logit is −∞
			shifted[i] = max(v-m, -200)
		}
		weighted += float64(vec.Dot(e[:n], shifted[:n]))
		x = x[n:]
	}
	return max(0, math.Log(sum)-weighted/sum)
}

// pick draws from softmax(x/temperature), cut to the top k and of those to the top p.
func (d *drawer) pick(x []float32, m float32, c choice) (id int32, logProb float64) {
	if cap(d.e) < len(x) {
		d.e = make([]float32, len(x))
	}
	e := d.e[:len(x)]
	scale := float32(1 / c.temperature)
	if math.IsInf(float64(scale), 1) { // as cold as 0
		return first(x, m), 0
	}
	for i, v := range x {
		e[i] = (v - m) * scale
	}
	vec.Exp(e, e)
	if 0 < c.topK && c.topK < len(x) || 0 < c.topP && c.topP < 1 {
		return d.pickCut(e, c)
	}
	sum := 0.0
	for _, v := range e {
		sum += float64(v)
	}
	return take(c.u*sum, len(e), func(i int) (int32, float64) { return int32(i), float64(e[i]) }, sum)
}

// take walks weights until u of them are passed. Rounding may leave u above the last: then it is the last that has weight.
func take(u float64, n int, at func(i int) (int32, float64), sum float64) (id int32, logProb float64) {
	weight := 0.0
	for i := range n {
		k, w := at(i)
		if w == 0 {
			continue
		}
		id, weight = k, w
		if u -= w; u < 0 {
			break
		}
	}
	return id, math.Log(weight / sum)
}

// pickCut draws from the likeliest tokens: at most k of them, and no more than it takes to reach p of those k's probability.
func (d *drawer) pickCut(e []float32, c choice) (id int32, logProb float64) {
	k := c.topK
	if k == 0 || k > len(e) {
		k = len(e)
	}
	all := 0.0
	d.heap.fill(e)
	if k == len(e) {
		for _, v := range e {
			all += float64(v)
		}
	}
	var kept []int32
	mass := 0.0
	grow := func(enough func() bool) {
		for len(kept) < k && !enough() {
			id := d.heap.pop()
			kept, mass = append(kept, id), mass+float64(e[id])
		}
	}
	p := c.topP
	if p == 0 {
		p = 1
	}
	if k < len(e) { // p is of the k, so all k must be known
		grow(func() bool { return false })
		all = mass
		for n, part := 0, 0.0; n < len(kept); n++ {
			if part += float64(e[kept[n]]); part >= p*all {
				kept, mass = kept[:n+1], part
				break
			}
		}
	} else {
		grow(func() bool { return len(kept) > 0 && mass >= p*all })
	}
	return take(c.u*mass, len(kept), func(i int) (int32, float64) { return kept[i], float64(e[kept[i]]) }, mass)
}

// likeliest are the n likeliest tokens; of equals the one with the smaller id.
func (d *drawer) likeliest(x []float32, m float32, lse float64, n int) []Candidate {
	d.heap.fill(x)
	out := make([]Candidate, min(n, len(x)))
	for i := range out {
		id := d.heap.pop()
		out[i] = Candidate{id, float64(x[id]-m) - lse}
	}
	return out
}

// likeliest is a heap of ids, the largest value on top; of equals the smaller id.
type likeliest struct {
	ids []int32
	x   []float32
}

func (h *likeliest) fill(x []float32) {
	h.x, h.ids = x, h.ids[:0]
	for i := range x {
		h.ids = append(h.ids, int32(i))
	}
	for i := len(x)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
}

func (h *likeliest) before(a, b int32) bool {
	return h.x[a] > h.x[b] || h.x[a] == h.x[b] && a < b
}

func (h *likeliest) sink(i int) {
	for {
		best := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h.ids); c++ {
			if h.before(h.ids[c], h.ids[best]) {
				best = c
			}
		}
		if best == i {
			return
		}
		h.ids[i], h.ids[best] = h.ids[best], h.ids[i]
		i = best
	}
}

func (h *likeliest) pop() int32 {
	top, last := h.ids[0], len(h.ids)-1
	h.ids[0], h.ids = h.ids[last], h.ids[:last]
	h.sink(0)
	return top
}
