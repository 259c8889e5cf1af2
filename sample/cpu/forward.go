package cpu

import (
	"fmt"
	"math"

	"heddle/compute/cpu/attention"
	"heddle/compute/cpu/blas"
	"heddle/compute/cpu/vec"
	"heddle/model/hf"
	"heddle/sample"
)

// Decoder implements sample.Decoder. It serves one caller at a time.
type Decoder struct {
	cfg     hf.Config
	pool    *blas.Pool
	w       weights
	version uint64

	cache   attention.Cache
	pageLen int
	pages   int // made
	free    []*page
	seqs    []sequence // by handle

	cos, sin []float32 // [positions so far, D/2]
	buf      buffers
	scratch  []float32 // of attention
}

// buffers hold the activations of at most maxRows tokens, M at a time.
type buffers struct {
	x, n, y  []float32 // [M, H] residual stream, normed, what a sub-block adds
	rstd     []float32 // [M·A]
	qkv      []float32 // [M, A·D + 2·G·D]
	o        []float32 // [M, A·D]
	gateUp   []float32 // [M, 2·F]
	act      []float32 // [M, F]
	last     []float32 // [feeds, H] rows that go to the head
	logits   []float32 // [feeds, V]
	queries  []attention.Queries[float32]
	tables   [][]float32
	position []int // [M]
}

// maxRows is the most tokens of one pass: longer prompts come in pieces, so that activations stay in the caches and memory is bounded.
const maxRows = 256

// Error is a misuse of this package by its caller.
type Error struct{ What string }

func (e *Error) Error() string { return "sample/cpu: " + e.What }

func fail(format string, args ...any) { panic(&Error{fmt.Sprintf(format, args...)}) }

// New makes a decoder without weights: Load follows. Its pool is not closed with it.
func New(c hf.Config, pool *blas.Pool) (*Decoder, error) {
	if err := check(c); err != nil {
		return nil, err
	}
	cache := attention.Cache{G: c.KVHeads, D: c.HeadDim}
	return &Decoder{cfg: c, pool: pool, cache: cache, pageLen: attention.PageLen[float32](pool, cache), scratch: make([]float32, attention.CachedScratch(pool, cache))}, nil
}

// Vocab is V.
func (d *Decoder) Vocab() int { return d.cfg.Vocab }

// Hidden is H.
func (d *Decoder) Hidden() int { return d.cfg.Hidden }

// Context is how many tokens the model was trained for.
func (d *Decoder) Context() int { return d.cfg.Positions }

// Version is that of Load.
func (d *Decoder) Version() uint64 { return d.version }

// Forward puts tokens at the end of sequences, in passes of at most maxRows tokens.
func (d *Decoder) Forward(feeds []sample.Feed) error {
	for _, f := range feeds {
		if s := d.at(f.Seq); len(f.Tokens) == 0 || s.n+len(f.Tokens) > d.Context() {
			return fmt.Errorf("sample: %d tokens after %d, want at least 1 and at most %d in all", len(f.Tokens), s.n, d.Context())
		}
		for _, id := range f.Tokens {
			if id < 0 || int(id) >= d.cfg.Vocab {
				return fmt.Errorf("sample: token %d is outside the vocabulary of %d", id, d.cfg.Vocab)
			}
		}
	}
	var pass []sample.Feed
	rows := 0
	for _, f := range feeds {
		for len(f.Tokens) > 0 {
			n := min(len(f.Tokens), maxRows-rows)
			part := sample.Feed{Seq: f.Seq, Tokens: f.Tokens[:n]}
			if f.Tokens = f.Tokens[n:]; len(f.Tokens) == 0 {
				part.Logits, part.Hidden = f.Logits, f.Hidden
			}
			pass, rows = append(pass, part), rows+n
			if rows == maxRows {
				d.pass(pass, rows)
				pass, rows = pass[:0], 0
			}
		}
	}
	if rows > 0 {
		d.pass(pass, rows)
	}
	return nil
}

func grow(buf *[]float32, n int) []float32 {
	if cap(*buf) < n {
		*buf = make([]float32, n)
	}
	return (*buf)[:n]
}

// pass is the forward pass over m rows.
func (d *Decoder) pass(feeds []sample.Feed, m int) {
	c, b := &d.cfg, &d.buf
	x := grow(&b.x, m*c.Hidden)
	b.position = b.position[:0]
	row := 0
	for _, f := range feeds {
		s := d.at(f.Seq)
		for i, id := range f.Tokens {
			d.w.embed.Column(d.pool, int(id), x[row*c.Hidden:][:c.Hidden])
			b.position = append(b.position, s.n+i)
			row++
		}
		for len(s.pages)*attention.PageTokens < s.n+len(f.Tokens) {
			s.pages = append(s.pages, d.newPage())
		}
		d.turnTo(s.n + len(f.Tokens))
	}
	for l := range d.w.layers {
		d.attend(feeds, l, x, m)
		d.mlp(&d.w.layers[l], x, m)
	}
	for _, f := range feeds {
		d.at(f.Seq).n += len(f.Tokens)
	}
	d.head(feeds, x)
}

// turnTo makes the RoPE tables long enough for n positions; the angles are compute/cpu's.
func (d *Decoder) turnTo(n int) {
	half := d.cfg.HeadDim / 2
	for i := len(d.cos) / half; i < n; i++ {
		for j := range half {
			a := float64(i) * math.Pow(d.cfg.Rope.Theta, -float64(j)/float64(half))
			d.cos, d.sin = append(d.cos, float32(math.Cos(a))), append(d.sin, float32(math.Sin(a)))
		}
	}
}

// rows runs f over m rows of width elements in one part a thread, like compute/cpu's leaf.
func (d *Decoder) rows(m, width int, f func(lo, hi int)) {
	parts := min(d.pool.Threads(), m)
	if parts <= 1 || m*width < 1<<15 {
		f(0, m)
		return
	}
	d.pool.Run(parts, func(_, i int) { f(m*i/parts, m*(i+1)/parts) })
}

// norm is model's: RMSNorm of x [m, H].
func (d *Decoder) norm(y, x, w []float32, m int) {
	h := len(w)
	rstd := grow(&d.buf.rstd, m)
	d.rows(m, h, func(lo, hi int) { vec.RMSNorm(y[lo*h:hi*h], x[lo*h:hi*h], w, rstd[lo:hi], float32(d.cfg.Eps)) })
}

// apply is y [m, out] = x [m, in]·Wᵀ.
func (d *Decoder) apply(l *linear, y, x []float32, m int) {
	blas.Gemm(d.pool, &blas.Params[float32]{M: m, N: l.out, K: l.w.K, A: x, LDA: l.w.K, Packed: &l.w, C: y, LDC: l.out})
}

// attend adds attention of norm(x) to x [m, H] and caches the new keys and values.
func (d *Decoder) attend(feeds []sample.Feed, l int, x []float32, m int) {
	c, b, w := &d.cfg, &d.buf, &d.w.layers[l]
	n := grow(&b.n, m*c.Hidden)
	d.norm(n, x, w.norm1, m)
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	wide := q + 2*kv
	qkv, o := grow(&b.qkv, m*wide), grow(&b.o, m*q)
	d.apply(&w.qkv, qkv, n, m)
	b.queries, b.tables = b.queries[:0], b.tables[:0]
	row := 0
	for _, f := range feeds {
		s := d.at(f.Seq)
		from := len(b.tables)
		b.tables = d.layerPages(b.tables, s, l)
		pages := b.tables[from:len(b.tables):len(b.tables)]
		b.queries = append(b.queries, attention.Queries[float32]{First: s.n, N: len(f.Tokens), Q: qkv[row*wide:], QRow: wide, Pages: pages, O: o[row*q:]})
		row += len(f.Tokens)
	}
	d.prepare(w, qkv, m)
	for i := range b.queries {
		q0 := &b.queries[i]
		for j := range q0.N {
			at := q0.First + j
			k := q0.Q[j*wide+q:]
			attention.Store(d.pool, d.cache, q0.Pages[at/attention.PageTokens], at%attention.PageTokens, k[:kv], k[kv:2*kv])
		}
	}
	attention.Cached(d.pool, d.cache, c.Heads/c.KVHeads, b.queries, d.scratch)
	y := grow(&b.y, m*c.Hidden)
	d.apply(&w.o, y, o, m)
	d.rows(m, c.Hidden, func(lo, hi int) {
		part := x[lo*c.Hidden : hi*c.Hidden]
		vec.Add(part, part, y[lo*c.Hidden:])
	})
}

// prepare norms and turns the q and k of every row of qkv.
func (d *Decoder) prepare(w *layer, qkv []float32, m int) {
	c := &d.cfg
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	wide, half := q+2*kv, c.HeadDim/2
	rstd := grow(&d.buf.rstd, m*c.Heads)
	d.rows(m, wide, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			qs, ks := qkv[i*wide:][:q], qkv[i*wide+q:][:kv]
			if w.qNorm != nil {
				vec.RMSNorm(qs, qs, w.qNorm, rstd[i*c.Heads:][:c.Heads], float32(c.Eps))
				vec.RMSNorm(ks, ks, w.kNorm, rstd[i*c.Heads:][:c.KVHeads], float32(c.Eps))
			}
			at := d.buf.position[i] * half
			vec.RoPE(qs, d.cos[at:at+half], d.sin[at:at+half])
			vec.RoPE(ks, d.cos[at:at+half], d.sin[at:at+half])
		}
	})
}

// mlp adds (silu(gate)·up)·Wdownᵀ of norm(x) to x [m, H].
func (d *Decoder) mlp(w *layer, x []float32, m int) {
	c, b := &d.cfg, &d.buf
	n, y := grow(&b.n, m*c.Hidden), grow(&b.y, m*c.Hidden)
	both, act := grow(&b.gateUp, m*2*c.MLP), grow(&b.act, m*c.MLP)
	d.norm(n, x, w.norm2, m)
	d.apply(&w.gateUp, both, n, m)
	d.rows(m, c.MLP, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			vec.SwiGLU(act[i*c.MLP:][:c.MLP], both[i*2*c.MLP:], both[i*2*c.MLP+c.MLP:])
		}
	})
	d.apply(&w.down, y, act, m)
	d.rows(m, c.Hidden, func(lo, hi int) {
		part := x[lo*c.Hidden : hi*c.Hidden]
		vec.Add(part, part, y[lo*c.Hidden:])
	})
}

// head computes the logits after the last token of each feed that wants them.
func (d *Decoder) head(feeds []sample.Feed, x []float32) {
	h, v := d.cfg.Hidden, d.cfg.Vocab
	last := grow(&d.buf.last, len(feeds)*h)
	row, n := -1, 0
	for _, f := range feeds {
		if row += len(f.Tokens); f.Logits != nil || f.Hidden != nil {
			copy(last[n*h:], x[row*h:][:h])
			n++
		}
	}
	if n == 0 {
		return
	}
	hidden, logits := grow(&d.buf.n, n*h), grow(&d.buf.logits, n*v)
	d.norm(hidden, last, d.w.norm, n)
	d.apply(&d.w.head, logits, hidden, n)
	n = 0
	for _, f := range feeds {
		if f.Logits != nil || f.Hidden != nil {
			copy(f.Hidden, hidden[n*h:][:h])
			copy(f.Logits, logits[n*v:][:v])
			n++
		}
	}
}
