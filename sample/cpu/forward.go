package cpu

import (
	"fmt"
	"math"

	"heddle/compute"
	"heddle/compute/cpu/attention"
	"heddle/compute/cpu/blas"
	"heddle/compute/cpu/vec"
	"heddle/model/hf"
	"heddle/sample"
)

// Decoder implements sample.Decoder. It serves one caller at a time.
type Decoder struct {
	// BF16 makes Load round matrices to bf16 and keep them as that, which halves what a token reads. Set it before Load.
	BF16 bool

	cfg     hf.Config
	rope    compute.Rope
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
	own      []own // by thread
}

// buffers are the activations of a pass over M tokens, which all threads see.
type buffers struct {
	x, y     []float32 // [M, H] residual stream, what a sub-block adds
	qkv      []float32 // [M, A·D + 2·G·D]
	o        []float32 // [M, A·D]
	gate, up []float32 // [M, F]
	last     []float32 // [feeds, H] rows that go to the head
	logits   []float32 // [feeds, V]
	position []int     // [M]
	first    []int     // [feeds] row of a feed's first token
}

// own is what a thread computes for itself.
type own struct {
	n, rstd []float32 // [M, H], [M·A]: every thread norms all rows, which costs less than waiting for a part
	scratch []float32 // of attention
	pages   [][]float32
}

// maxRows is the most tokens of one pass: longer prompts come in pieces, so that activations stay in the caches and memory is bounded.
const maxRows = 256

// Error is a misuse of this package by its caller.
type Error struct{ What string }

func (e *Error) Error() string { return "sample/cpu: " + e.What }

func fail(format string, args ...any) { panic(&Error{fmt.Sprintf(format, args...)}) }

// New makes a decoder without weights: Load follows. Its pool is not closed with it.
func New(c hf.Config, pool *blas.Pool) (*Decoder, error) {
	if c.Experts.Count > 0 {
		return nil, fmt.Errorf("sample: family %s is not built yet: mixtures of experts", c.Family)
	}
	cache := attention.Cache{G: c.KVHeads, D: c.HeadDim}
	d := &Decoder{cfg: c, pool: pool, cache: cache, pageLen: attention.PageLen[float32](pool, cache), own: make([]own, pool.Threads())}
	d.rope.Theta = c.Rope.Theta
	if l := c.Rope.Llama3; l != nil {
		d.rope.Llama3 = compute.Llama3{Factor: l.Factor, Low: l.Low, High: l.High, Original: float64(l.OriginalPositions)}
	}
	for i := range d.own {
		d.own[i].scratch = make([]float32, attention.CachedScratch(cache))
	}
	return d, nil
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
	*buf = (*buf)[:n]
	return *buf
}

// pass is the forward pass over m rows. All threads go through the layers together, take columns of products and heads of
// attention as they come to them, and wait for each other where a row must be whole.
func (d *Decoder) pass(feeds []sample.Feed, m int) {
	d.enter(feeds, m)
	wanted := d.wanted(feeds)
	d.pool.Together(func(t *blas.Member) {
		for l := range d.w.layers {
			d.attend(t, feeds, l, m)
			d.mlp(t, &d.w.layers[l], m)
		}
		if wanted > 0 {
			if t.Index == 0 {
				d.takeLast(feeds)
			}
			t.Wait()
			n := d.norm(t, &d.w.norm, d.buf.last, wanted)
			d.parts(t, wanted, d.cfg.Vocab, func(from, to int) { d.columns(t, &d.w.head, d.buf.logits, n, span{wanted, from, to}) })
		}
	})
	d.leave(feeds)
}

// enter makes room, and puts the embeddings of the tokens on the residual stream.
func (d *Decoder) enter(feeds []sample.Feed, m int) {
	c, b := &d.cfg, &d.buf
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	for _, x := range []struct {
		buf *[]float32
		n   int
	}{{&b.x, c.Hidden}, {&b.y, c.Hidden}, {&b.qkv, q + 2*kv}, {&b.o, q}, {&b.gate, c.MLP}, {&b.up, c.MLP}} {
		grow(x.buf, m*x.n)
	}
	b.position, b.first = b.position[:0], b.first[:0]
	row := 0
	for _, f := range feeds {
		s := d.at(f.Seq)
		b.first = append(b.first, row)
		for i, id := range f.Tokens {
			x := b.x[row*c.Hidden:][:c.Hidden]
			d.w.embed.Column(d.pool, int(id), x)
			if c.LearnedPositions {
				vec.Add(x, x, d.w.position[(s.n+i)*c.Hidden:])
			}
			b.position = append(b.position, s.n+i)
			row++
		}
		for len(s.pages)*attention.PageTokens < s.n+len(f.Tokens) {
			s.pages = append(s.pages, d.newPage())
		}
		d.turnTo(s.n + len(f.Tokens))
	}
}

// turnTo makes the RoPE tables long enough for n positions.
func (d *Decoder) turnTo(n int) {
	half := d.cfg.HeadDim / 2
	for i := len(d.cos) / max(1, half); i < n && !d.cfg.LearnedPositions; i++ {
		for j := range half {
			sin, cos := math.Sincos(float64(i) * d.rope.Frequency(j, 2*half))
			d.cos, d.sin = append(d.cos, float32(cos)), append(d.sin, float32(sin))
		}
	}
}

// norm is model's over x [m, H], in the thread's own memory.
func (d *Decoder) norm(t *blas.Member, w *norm, x []float32, m int) []float32 {
	o, h := &d.own[t.Index], d.cfg.Hidden
	n, rstd := grow(&o.n, m*h), grow(&o.rstd, m)
	if len(w.bias) == 0 {
		vec.RMSNorm(n, x, w.w, rstd, float32(d.cfg.Eps))
		return n
	}
	vec.Center(n, x[:m*h], h)
	vec.RMSNorm(n, n, w.w, rstd, float32(d.cfg.Eps))
	for i := range m {
		vec.Add(n[i*h:i*h+h], n[i*h:], w.bias)
	}
	return n
}

// span is columns of m rows.
type span struct{ m, from, to int }

// parts gives out n columns, of products of m rows, to the threads in pieces that are multiples of what the kernels read.
func (d *Decoder) parts(t *blas.Member, m, n int, f func(from, to int)) {
	wide := 64
	if m > 32 { // longer runs per row pay for its way through the caches
		wide = 256
	}
	t.Each((n+wide-1)/wide, func(i int) { f(i*wide, min(n, (i+1)*wide)) })
}

// columns computes columns of y [m, out] = x [m, in]·Wᵀ + bias.
func (d *Decoder) columns(t *blas.Member, l *linear, y, x []float32, s span) {
	out := l.w.N
	blas.Window(t.Pool, &blas.Params[float32]{M: s.m, N: out, K: l.w.K, A: x, LDA: l.w.K, Packed: &l.w, C: y, LDC: out}, s.from, s.to)
	if len(l.bias) > 0 {
		for i := range s.m {
			row := y[i*out+s.from : i*out+s.to]
			vec.Add(row, row, l.bias[s.from:])
		}
	}
}

// add puts a sub-block's x·Wᵀ + bias on the residual stream.
func (d *Decoder) add(t *blas.Member, l *linear, x []float32, m int) {
	h := d.cfg.Hidden
	d.parts(t, m, h, func(from, to int) {
		d.columns(t, l, d.buf.y, x, span{m, from, to})
		for i := range m {
			row := d.buf.x[i*h+from : i*h+to]
			vec.Add(row, row, d.buf.y[i*h+from:])
		}
	})
}

// attend adds attention of norm(x) to x [m, H] and caches the new keys and values.
func (d *Decoder) attend(t *blas.Member, feeds []sample.Feed, l, m int) {
	w, b := &d.w.layers[l], &d.buf
	n := d.norm(t, &w.norm1, b.x, m)
	d.parts(t, m, w.qkv.w.N, func(from, to int) { d.columns(t, &w.qkv, b.qkv, n, span{m, from, to}) })
	t.Each(len(feeds)*d.cache.G, func(i int) { d.head(t, feeds, i/d.cache.G, l, i%d.cache.G) })
	d.add(t, &w.o, b.o, m)
}

// head is the attention of a feed's tokens over key head g.
func (d *Decoder) head(t *blas.Member, feeds []sample.Feed, feed, l, g int) {
	f, row := feeds[feed], d.buf.first[feed]
	c, o, s, w := &d.cfg, &d.own[t.Index], d.at(f.Seq), &d.w.layers[l]
	q, kv, size := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim, c.HeadDim
	r, half, wide := c.Heads/c.KVHeads, size/2, q+2*kv
	o.pages = d.layerPages(o.pages[:0], s, l)
	rstd := grow(&o.rstd, r)
	for i := range f.Tokens {
		qkv := d.buf.qkv[(row+i)*wide:][:wide]
		qs, k, v := qkv[g*r*size:(g+1)*r*size], qkv[q+g*size:][:size], qkv[q+kv+g*size:][:size]
		if len(w.qNorm) > 0 {
			vec.RMSNorm(qs, qs, w.qNorm, rstd, float32(c.Eps))
			vec.RMSNorm(k, k, w.kNorm, rstd[:1], float32(c.Eps))
		}
		if !c.LearnedPositions {
			at := d.buf.position[row+i] * half
			vec.RoPE(qs, d.cos[at:at+half], d.sin[at:at+half])
			vec.RoPE(k, d.cos[at:at+half], d.sin[at:at+half])
		}
		at := s.n + i
		attention.Store(t.Pool, d.cache, o.pages[at/attention.PageTokens], at%attention.PageTokens, g, k, v)
	}
	queries := attention.Queries[float32]{First: s.n, N: len(f.Tokens), Q: d.buf.qkv[row*wide:], QRow: wide, Pages: o.pages, O: d.buf.o[row*q:]}
	attention.Head(t.Pool, d.cache, r, &queries, g, o.scratch)
}

// mlp adds a·Wdownᵀ to x [m, H], a = silu(gate)·up or gelu(up) of norm(x).
func (d *Decoder) mlp(t *blas.Member, w *layer, m int) {
	b, f := &d.buf, d.cfg.MLP
	n := d.norm(t, &w.norm2, b.x, m)
	gated := w.gate.w.N > 0
	d.parts(t, m, f, func(from, to int) {
		d.columns(t, &w.up, b.up, n, span{m, from, to})
		if gated {
			d.columns(t, &w.gate, b.gate, n, span{m, from, to})
		}
		for i := range m {
			if up := b.up[i*f+from : i*f+to]; gated {
				vec.SwiGLU(up, b.gate[i*f+from:], up)
			} else {
				vec.GELU(up, up)
			}
		}
	})
	d.add(t, &w.down, b.up, m)
}

// wanted counts the feeds whose last row goes to the head, and makes room for them.
func (d *Decoder) wanted(feeds []sample.Feed) (n int) {
	for _, f := range feeds {
		if f.Logits != nil || f.Hidden != nil {
			n++
		}
	}
	grow(&d.buf.last, n*d.cfg.Hidden)
	grow(&d.buf.logits, n*d.cfg.Vocab)
	return n
}

// takeLast brings those rows together.
func (d *Decoder) takeLast(feeds []sample.Feed) {
	h, row, n := d.cfg.Hidden, -1, 0
	for _, f := range feeds {
		if row += len(f.Tokens); f.Logits != nil || f.Hidden != nil {
			copy(d.buf.last[n*h:][:h], d.buf.x[row*h:])
			n++
		}
	}
}

// leave hands out what was wanted.
func (d *Decoder) leave(feeds []sample.Feed) {
	h, v, n := d.cfg.Hidden, d.cfg.Vocab, 0
	for _, f := range feeds {
		d.at(f.Seq).n += len(f.Tokens)
		if f.Logits != nil || f.Hidden != nil {
			if f.Hidden != nil {
				copy(f.Hidden[:h], d.own[0].n[n*h:])
			}
			if f.Logits != nil {
				copy(f.Logits[:v], d.buf.logits[n*v:])
			}
			n++
		}
	}
}
