package data

import (
	"iter"

	"heddle/token"
)

// Eval is whole held-out documents as batches, tokenized once and used as often as one likes.
//
// Each document stands alone: its first token is predicted from the separator, the following ones from up to Seq tokens before them, and a row never holds two
// documents. Every byte is part of exactly one label, so bits per byte is the sum of the labels' losses ÷ ln 2 ÷ Bytes. Nothing is filtered: a
// held-out document that training would drop as binary counts here.
type Eval struct {
	Documents int
	Bytes     int64
	Tokens    int64 // labels
	Rows      int

	pack EvalPack
	sep  int32
	docs [][]int32
}

// NewEval tokenizes held-out documents, in order of hash, until they hold EvalPack.Bytes.
func NewEval(c *Corpus, t *token.Tokenizer, p EvalPack) (*Eval, error) {
	sep, ok := t.Separator()
	if !ok {
		return nil, invalid("", "the tokenizer has no special token that separates documents; hint: add %s", token.EndOfText)
	}
	if p.Seq < 1 || p.Batch < 1 {
		return nil, invalid("", "evaluation with seq %d, batch %d; want at least 1", p.Seq, p.Batch)
	}
	e := &Eval{pack: p, sep: sep}
	for _, d := range c.held {
		text, err := c.text(d)
		if err != nil {
			return nil, err
		}
		ids := t.EncodeText(nil, text)
		if len(ids) == 0 {
			continue
		}
		e.docs = append(e.docs, ids)
		e.Documents++
		e.Bytes += int64(len(text))
		e.Tokens += int64(len(ids))
		e.Rows += (len(ids) + p.Seq - 1) / p.Seq
		if p.Bytes > 0 && e.Bytes >= p.Bytes {
			break
		}
	}
	if e.Bytes == 0 {
		return nil, invalid("", "no text is held out for evaluation; hint: a larger corpus, or hold_out_every above 0")
	}
	return e, nil
}

// Batches yields global batches; the last one is filled with rows without labels.
func (e *Eval) Batches() iter.Seq[*Batch] {
	return func(yield func(*Batch) bool) {
		b, row := newBatch(e.pack.Batch, e.pack.Seq, false), 0
		for _, ids := range e.docs {
			for from := 0; from < len(ids); from += b.S {
				input := e.sep
				for s, label := range ids[from:min(from+b.S, len(ids))] {
					if from+s > 0 {
						input = ids[from+s-1]
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
