package sample

import (
	"context"
	"fmt"
	"math"
)

// Options of generation. The zero value takes the likeliest token until the context is full.
type Options struct {
	MaxTokens   int     // most tokens after the prompt, those put in by the hook included; 0: until the context is full
	Temperature float64 // 0: the likeliest token
	TopK        int     // only the k likeliest tokens; 0: all
	TopP        float64 // of those, the likeliest that together reach p; 0: all
	Seed        uint64
	Stop        []int32 // tokens that end a sequence; the one that did is its last
	Batch       int     // sequences computed at once; 0: 16
	Top         int     // likeliest tokens reported with each token
	Hidden      int     // H, to give the hook the hidden state; 0: not given
	Hook        Hook    // nil: none
}

// Prompt is a text to continue, once for each stream. Streams choose the random numbers: equal streams under one seed draw
// equal numbers at equal positions.
type Prompt struct {
	IDs     []int32 // at least one
	Streams []uint64
}

// Token is one token after the prompt.
type Token struct {
	ID       int32       `json:"id"`
	Version  uint64      `json:"version"`            // of the weights that gave it its probability
	LogProb  float64     `json:"logprob"`            // ln p under softmax(logits), the policy itself
	Drawn    float64     `json:"drawn"`              // ln of the probability it was drawn with: temperature, top-k and top-p count; 0 when greedy
	Entropy  float64     `json:"entropy"`            // of softmax(logits), nats
	Top      []Candidate `json:"top,omitempty"`      // likeliest first
	Injected bool        `json:"injected,omitempty"` // put in by the hook: the numbers above are 0
}

// Candidate is a token that might have been.
type Candidate struct {
	ID      int32   `json:"id"`
	LogProb float64 `json:"logprob"`
}

// End says why a sequence ended.
type End string

const (
	Running     End = ""
	ByStop      End = "stop"    // a stop token
	ByLength    End = "length"  // MaxTokens
	ByContext   End = "context" // the decoder holds no more
	ByHook      End = "hook"
	Interrupted End = "interrupted"
)

// Sequence is one continuation.
type Sequence struct {
	Prompt    int     `json:"prompt"` // index of the prompt
	Stream    uint64  `json:"stream"`
	Parent    int     `json:"parent"` // index of the sequence it was forked from; -1: none
	Shared    int     `json:"shared"` // its first Shared tokens were made by the parent
	Tokens    []Token `json:"tokens"`
	End       End     `json:"end"`
	Discarded bool    `json:"discarded,omitempty"` // the hook wants it no more
}

// IDs are the tokens' ids.
func (s *Sequence) IDs() []int32 {
	ids := make([]int32, len(s.Tokens))
	for i, t := range s.Tokens {
		ids[i] = t.ID
	}
	return ids
}

// Generator continues prompts. Add them, then call Step until it says that nothing is left. It serves one goroutine; the hook
// runs on it. After an error it is of no more use, and its sequences stay with the decoder.
type Generator struct {
	// Sequences grow while they run: those of the prompts in order of Add, forks when they were made.
	Sequences []*Sequence

	dec     Decoder
	o       Options
	roots   []*root
	waiting []*running
	active  []*running
	bill    Bill
	stop    map[int32]bool
	drawers []drawer
}

// root is a prompt whose tokens but the last are computed once for all its streams.
type root struct {
	ids    []int32
	handle Handle
	users  int // sequences that have not started from it
}

// running is a sequence that has not ended.
type running struct {
	*Sequence
	index   int
	handle  Handle  // None until it is admitted, if it starts from a root
	pending []int32 // not computed yet, never empty
	temp    float64
	logits  []float32 // [V]
	hidden  []float32 // [H]
	at      drawn     // what was drawn this step
	root    *root     // nil for a fork
}

// New makes a generator. Bad options are an error.
func New(d Decoder, o Options) (*Generator, error) {
	switch {
	case o.MaxTokens < 0 || o.TopK < 0 || o.Top < 0 || o.Batch < 0 || o.Hidden < 0:
		return nil, fmt.Errorf("sample: max tokens %d, top-k %d, top %d, batch %d, hidden %d, want none below 0", o.MaxTokens, o.TopK, o.Top, o.Batch, o.Hidden)
	case !goodTemperature(o.Temperature):
		return nil, fmt.Errorf("sample: temperature %g, want 0 (the likeliest token) or a positive number", o.Temperature)
	case !(o.TopP >= 0 && o.TopP <= 1):
		return nil, fmt.Errorf("sample: top-p %g, want 0 to 1", o.TopP)
	}
	if o.Batch == 0 {
		o.Batch = 16
	}
	g := &Generator{dec: d, o: o, stop: map[int32]bool{}}
	for _, id := range o.Stop {
		if id < 0 || int(id) >= d.Vocab() {
			return nil, fmt.Errorf("sample: stop token %d is outside the vocabulary of %d", id, d.Vocab())
		}
		g.stop[id] = true
	}
	return g, nil
}

func goodTemperature(t float64) bool { return t >= 0 && !math.IsInf(t, 1) }

// Add queues a prompt.
func (g *Generator) Add(p Prompt) error {
	n := len(g.roots)
	switch {
	case len(p.IDs) == 0:
		return fmt.Errorf("sample: prompt %d is empty; hint: begin with the model's first token", n)
	case len(p.IDs) >= g.dec.Context():
		return fmt.Errorf("sample: prompt %d has %d tokens, the context holds %d with at least one more", n, len(p.IDs), g.dec.Context())
	case len(p.Streams) == 0:
		return fmt.Errorf("sample: prompt %d has no stream", n)
	}
	if err := g.known(p.IDs); err != nil {
		return fmt.Errorf("sample: prompt %d: %w", n, err)
	}
	r := &root{ids: p.IDs, handle: None, users: len(p.Streams)}
	g.roots = append(g.roots, r)
	for _, stream := range p.Streams {
		g.enqueue(&running{Sequence: &Sequence{Prompt: n, Stream: stream, Parent: -1}, handle: None, pending: p.IDs[len(p.IDs)-1:], temp: g.o.Temperature, root: r})
	}
	return nil
}

func (g *Generator) known(ids []int32) error {
	for _, id := range ids {
		if id < 0 || int(id) >= g.dec.Vocab() {
			return fmt.Errorf("token %d is outside the vocabulary of %d", id, g.dec.Vocab())
		}
	}
	return nil
}

func (g *Generator) enqueue(r *running) {
	r.index = len(g.Sequences)
	g.Sequences = append(g.Sequences, r.Sequence)
	g.waiting = append(g.waiting, r)
}

// Step gives every active sequence one more token and lets the hook act; false when nothing is left to do.
func (g *Generator) Step() (bool, error) {
	if err := g.admit(); err != nil {
		return false, err
	}
	if len(g.active) == 0 {
		return false, nil
	}
	feeds := make([]Feed, len(g.active))
	for i, r := range g.active {
		feeds[i] = Feed{Seq: r.handle, Tokens: r.pending, Logits: r.logits, Hidden: r.hidden}
		g.bill.Computed += len(r.pending)
	}
	if err := g.dec.Forward(feeds); err != nil {
		return false, err
	}
	if err := g.draw(); err != nil {
		return false, err
	}
	still := g.active[:0]
	for _, r := range g.active {
		if err := g.after(r); err != nil {
			return false, err
		}
		if r.End == Running {
			still = append(still, r)
		} else {
			g.dec.Close(r.handle)
		}
	}
	g.active = still
	return len(g.active)+len(g.waiting) > 0, nil
}

// admit fills the batch from the queue. Prompts that begin are computed first, in one pass.
func (g *Generator) admit() error {
	n := min(g.o.Batch-len(g.active), len(g.waiting))
	var fresh []Feed
	for _, r := range g.waiting[:n] {
		if t := r.root; t != nil && t.handle == None {
			t.handle = g.dec.Fork(None, 0)
			if head := t.ids[:len(t.ids)-1]; len(head) > 0 {
				fresh = append(fresh, Feed{Seq: t.handle, Tokens: head})
				g.bill.Prompt += len(head)
				g.bill.Computed += len(head)
			}
			g.bill.Prompt++ // the last token, which the first stream computes
		}
	}
	if len(fresh) > 0 {
		if err := g.dec.Forward(fresh); err != nil {
			return err
		}
	}
	for _, r := range g.waiting[:n] {
		if t := r.root; t != nil {
			r.handle = g.dec.Fork(t.handle, len(t.ids)-1)
			if t.users--; t.users == 0 {
				g.dec.Close(t.handle)
			}
		}
		r.logits = make([]float32, g.dec.Vocab())
		if g.o.Hidden > 0 {
			r.hidden = make([]float32, g.o.Hidden)
		}
		g.active = append(g.active, r)
	}
	g.waiting = g.waiting[n:]
	return nil
}

// after takes the token drawn for a sequence and does what stop tokens, limits and the hook say.
func (g *Generator) after(r *running) error {
	r.Tokens = append(r.Tokens, Token{ID: r.at.id, Version: g.dec.Version(), LogProb: r.at.logProb, Drawn: r.at.drawn, Entropy: r.at.entropy, Top: r.at.top})
	r.pending = []int32{r.at.id}
	g.bill.Sampled++
	if g.stop[r.at.id] {
		r.End = ByStop
	} else {
		r.End = g.full(r)
	}
	if g.o.Hook == nil {
		return nil
	}
	return g.act(r, g.o.Hook(&State{Index: r.index, Sequence: r.Sequence, Temperature: r.temp, Logits: r.logits, Hidden: r.hidden}))
}

// full tells whether a limit is reached.
func (g *Generator) full(r *running) End {
	switch n := len(g.roots[r.Prompt].ids) + len(r.Tokens); {
	case g.o.MaxTokens > 0 && len(r.Tokens) >= g.o.MaxTokens:
		return ByLength
	case n >= g.dec.Context():
		return ByContext
	}
	return Running
}

// Run steps until nothing is left or the context ends; what still runs then is marked Interrupted.
func (g *Generator) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if more, err := g.Step(); err != nil || !more {
			return err
		}
	}
	g.Interrupt()
	return ctx.Err()
}

// Interrupt ends all sequences where they are.
func (g *Generator) Interrupt() {
	for _, r := range append(g.active, g.waiting...) {
		r.End = Interrupted
		if r.handle != None {
			g.dec.Close(r.handle)
		} else if t := r.root; t != nil {
			if t.users--; t.users == 0 && t.handle != None {
				g.dec.Close(t.handle)
			}
		}
	}
	g.active, g.waiting = nil, nil
}

// Generate continues prompts until all have ended.
func Generate(ctx context.Context, d Decoder, o Options, prompts ...Prompt) ([]*Sequence, Bill, error) {
	g, err := New(d, o)
	if err != nil {
		return nil, Bill{}, err
	}
	for _, p := range prompts {
		if err := g.Add(p); err != nil {
			return nil, Bill{}, err
		}
	}
	err = g.Run(ctx)
	return g.Sequences, g.Bill(), err
}
