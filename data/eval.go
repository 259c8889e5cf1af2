package data

import (
	"iter"
	"slices"

	"heddle/token"
)

// Eval is whole held-out documents as batches, tokenized once and used as often as one likes.
//
// Each document stands alone: its first token is predicted from the separator, the following ones from up to Seq tokens before them, and a row never holds two
// documents. Every byte (of completions, where there are prompts) is part of exactly one label, so bits per byte is the sum of the labels' losses ÷ ln 2 ÷ Bytes. Nothing is filtered: a
// held-out document that training would drop as binary counts here.
type Eval struct {
	Documents int
	Bytes     int64
	Tokens    int64 // labels
	Rows      int

	pack EvalPack
	sep  int32
	docs []evalDoc
}

type evalDoc struct {
	ids    []int32
	silent []bool // per id: a prompt, no label; nil: none is
}

// NewEval tokenizes held-out documents, in order of hash, until they hold EvalPack.Bytes.
func NewEval(c *Corpus, t *token.Tokenizer, p EvalPack) (*Eval, error) {
	sep, err := c.check(t)
	if err != nil {
		return nil, err
	}
	if p.Seq < 1 || p.Batch < 1 {
		return nil, invalid("", "evaluation with seq %d, batch %d; want at least 1", p.Seq, p.Batch)
	}
	e := &Eval{pack: p, sep: sep}
	for _, d := range c.held {
		docs, _, err := c.files[d.file].read(d.span)
		if err != nil {
			return nil, err
		}
		for _, d := range docs {
			if err := e.add(t, d); err != nil {
				return nil, err
			}
		}
		if p.Bytes > 0 && e.Bytes >= p.Bytes {
			break
		}
	}
	if e.Bytes == 0 {
		return nil, invalid("", "no text is held out for evaluation; hint: a larger corpus, or hold_out_every above 0")
	}
	return e, nil
}

// add tokenizes one document.
func (e *Eval) add(t *token.Tokenizer, d document) (err error) {
	var x evalDoc
	for _, p := range d.pieces {
		from := len(x.ids)
		if x.ids, err = encode(t, x.ids, p); err != nil {
			return err
		}
		n := len(x.ids) - from
		if p.silent && x.silent == nil {
			x.silent = make([]bool, from, len(x.ids))
		}
		if x.silent != nil {
			x.silent = append(x.silent, slices.Repeat([]bool{p.silent}, n)...)
		}
		if !p.silent {
			if p.text, err = t.Decode(p.text, p.ids); err != nil { // a shard has no text, and text has no ids yet
				return err
			}
			e.Bytes += int64(len(p.text))
			e.Tokens += int64(n)
		}
	}
	if len(x.ids) > 0 {
		e.docs = append(e.docs, x)
		e.Documents++
		e.Rows += (len(x.ids) + e.pack.Seq - 1) / e.pack.Seq
	}
	return nil
}

// Batches yields global batches; the last one is filled with rows without labels.
func (e *Eval) Batches() iter.Seq[*Batch] {
	return func(yield func(*Batch) bool) {
		b, row := newBatch(e.pack.Batch, e.pack.Seq, false), 0
		for _, d := range e.docs {
			ids := d.ids
			for from := 0; from < len(ids); from += b.S {
				input := e.sep
				for s, label := range ids[from:min(from+b.S, len(ids))] {
					if from+s > 0 {
						input = ids[from+s-1]
					}
					if d.silent != nil && d.silent[from+s] {
						label = Ignore
					}
					b.set(row*b.S+s, input, label)
				}
				if row++; row == b.B {
					if !yield(b) {
						return
					}
					b, row = newBatch(e.pack.Batch, e.pack.Seq, false), 0
				}
			}
		}
		if row > 0 {
			yield(b)
		}
	}
}
