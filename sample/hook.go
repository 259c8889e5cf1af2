package sample

import "fmt"

// Hook looks at a sequence after each of its tokens and says what is to happen. It is also asked after the last token, when
// Sequence.End is set: then it may still fork or discard.
type Hook func(*State) Action

// State is what a hook sees. Nothing in it may be changed or kept, except Sequence, which may be kept.
type State struct {
	Index       int // of the sequence in Generator.Sequences
	Sequence    *Sequence
	Temperature float64
	Logits      []float32 // [V], what the last token was drawn from
	Hidden      []float32 // [H], where Options.Hidden asks for it
}

// Action is what a hook asks for, done in the order of its fields. The zero value lets the sequence go on.
type Action struct {
	Fork        []Fork
	Inject      []int32  // tokens to put after the last one
	Temperature *float64 // from the next token on
	Stop        bool
	Discard     bool // stop, and count what only this sequence has as discarded
}

// Fork begins a new sequence that shares the first Keep tokens after the prompt. Keep 0 begins again. Discarding the sequence
// that forks makes it a rewind.
type Fork struct {
	Keep        int
	Stream      uint64
	Inject      []int32  // tokens to put there
	Temperature *float64 // nil: as it is in the sequence
}

// act does what the hook asks for.
func (g *Generator) act(r *running, a Action) error {
	for _, f := range a.Fork {
		if err := g.fork(r, f); err != nil {
			return err
		}
	}
	if len(a.Inject) > 0 && r.End == Running {
		if err := g.inject(r, a.Inject); err != nil {
			return err
		}
		r.End = g.full(r)
	}
	if a.Temperature != nil {
		if !goodTemperature(*a.Temperature) {
			return fmt.Errorf("sample: the hook sets temperature %g", *a.Temperature)
		}
		r.temp = *a.Temperature
	}
	if (a.Stop || a.Discard) && r.End == Running {
		r.End = ByHook
	}
	r.Discarded = a.Discard
	return nil
}

// fork opens the new sequence over the parent's keys and values and queues it. The last of the tokens it keeps is computed
// (again), to the same bits, for its logits; those before it are in the cache, since nothing was injected yet in this step.
func (g *Generator) fork(r *running, f Fork) error {
	if f.Keep < 0 || f.Keep > len(r.Tokens) {
		return fmt.Errorf("sample: the hook forks sequence %d at %d of its %d tokens", r.index, f.Keep, len(r.Tokens))
	}
	ids := g.roots[r.Prompt].ids
	last := ids[len(ids)-1]
	if f.Keep > 0 {
		last = r.Tokens[f.Keep-1].ID
	}
	c := &running{temp: r.temp, pending: []int32{last},
		Sequence: &Sequence{Prompt: r.Prompt, Stream: f.Stream, Parent: r.index, Shared: f.Keep, Tokens: append([]Token(nil), r.Tokens[:f.Keep]...)}}
	if f.Temperature != nil {
		if !goodTemperature(*f.Temperature) {
			return fmt.Errorf("sample: the hook forks with temperature %g", *f.Temperature)
		}
		c.temp = *f.Temperature
	}
	if err := g.inject(c, f.Inject); err != nil {
		return err
	}
	if c.End = g.full(c); c.End != Running {
		g.Sequences = append(g.Sequences, c.Sequence)
		return nil
	}
	c.handle = g.dec.Fork(r.handle, len(ids)+f.Keep-1)
	g.enqueue(c)
	return nil
}

func (g *Generator) inject(r *running, ids []int32) error {
	if err := g.known(ids); err != nil {
		return fmt.Errorf("sample: the hook puts in what cannot be: %w", err)
	}
	room := g.dec.Context() - len(g.roots[r.Prompt].ids) - len(r.Tokens)
	if g.o.MaxTokens > 0 {
		room = min(room, g.o.MaxTokens-len(r.Tokens))
	}
	ids = ids[:max(0, min(len(ids), room))]
	for _, id := range ids {
		r.Tokens = append(r.Tokens, Token{ID: id, Injected: true, Version: g.dec.Version()})
	}
	r.pending = append(append([]int32(nil), r.pending...), ids...)
	g.bill.Injected += len(ids)
	return nil
}

// Bill counts tokens. Sampled = Kept + Discarded.
type Bill struct {
	Prompt    int `json:"prompt"`    // of prompts, once for all their streams
	Sampled   int `json:"sampled"`   // drawn
	Kept      int `json:"kept"`      // drawn, and part of a sequence that was not discarded
	Discarded int `json:"discarded"` // drawn for nothing
	Injected  int `json:"injected"`  // put in by the hook
	Computed  int `json:"computed"`  // rows of forward passes
}

// Bill is what generation has cost so far. A token that several sequences share counts once.
func (g *Generator) Bill() Bill {
	b := g.bill
	// need[i] is how many of sequence i's tokens some sequence that is kept has. Forks come after their parents.
	need := make([]int, len(g.Sequences))
	for i := len(g.Sequences) - 1; i >= 0; i-- {
		s := g.Sequences[i]
		if !s.Discarded {
			need[i] = len(s.Tokens)
		}
		for _, t := range s.Tokens[min(s.Shared, need[i]):need[i]] {
			if !t.Injected {
				b.Kept++
			}
		}
		if p := s.Parent; p >= 0 {
			need[p] = max(need[p], min(s.Shared, need[i]))
		}
	}
	b.Discarded = b.Sampled - b.Kept
	return b
}
