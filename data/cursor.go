package data

import "io"

// Cursor is a position between two batches, for checkpoints. It does not depend on how many ranks share a batch.
type Cursor struct {
	Epoch     int    `json:"epoch"`
	Doc       int    `json:"doc"`
	Token     int    `json:"token"`
	Given     int    `json:"given"`  // samples of the window that starts there
	Window    int    `json:"window"` // samples of a full window
	Seq       int    `json:"seq"`    // positions of a sample
	Batch     int    `json:"batch"`  // sequences of a batch
	Seed      uint64 `json:"seed"`   // of the shuffles
	Epochs    int    `json:"epochs"` // 0: without end
	Corpus    string `json:"corpus"` // fingerprint of names, sizes and contents
	Tokenizer string `json:"tokenizer"`
	Packed    Packed `json:"packed"`
}

// Cursor returns where the next batch starts.
func (l *Loader) Cursor() Cursor {
	return Cursor{Epoch: l.start.Epoch, Doc: l.start.Doc, Token: l.start.Token, Given: l.given, Window: l.samples, Seq: l.pack.Seq, Batch: l.pack.Batch,
		Seed: l.pack.Seed, Epochs: l.pack.Epochs, Corpus: l.id.corpus, Tokenizer: l.id.tokenizer, Packed: l.packed}
}

// Seek continues at a cursor. One of another corpus, tokenizer, shape or seed is an *Error that names the difference.
func (l *Loader) Seek(c Cursor) error {
	here := l.Cursor()
	for _, f := range []struct {
		name      string
		got, want any
		equal     bool
	}{
		{"corpus (its files or their contents)", here.Corpus, c.Corpus, here.Corpus == c.Corpus},
		{"tokenizer", here.Tokenizer, c.Tokenizer, here.Tokenizer == c.Tokenizer},
		{"seq", here.Seq, c.Seq, here.Seq == c.Seq},
		{"batch", here.Batch, c.Batch, here.Batch == c.Batch},
		{"window in samples", here.Window, c.Window, here.Window == c.Window},
		{"seed", here.Seed, c.Seed, here.Seed == c.Seed},
	} {
		if !f.equal {
			return invalid("", "resume: %s is %v, the checkpoint was made with %v; hint: train with the same or start afresh", f.name, f.got, f.want)
		}
	}
	if c.Epoch < 0 || c.Doc < 0 || c.Token < 0 || c.Given < 0 || c.Doc > len(l.stream.corpus.train) {
		return invalid("", "resume: the position (epoch %d, document %d, token %d, sample %d) is not one of this corpus", c.Epoch, c.Doc, c.Token, c.Given)
	}
	if err := l.load(position{c.Epoch, c.Doc, c.Token}); err != nil && err != io.EOF { // a run may have ended there
		return err
	}
	if c.Given > l.window.samples {
		return invalid("", "resume: sample %d of a window of %d", c.Given, l.window.samples)
	}
	l.given, l.packed = c.Given, c.Packed
	return nil
}
