package data

import (
	"cmp"
	"io"

	"heddle/token"
)

const windowTokens = 1 << 18

// Loader gives out training batches. One goroutine uses it at a time; ranks take their rows with Batch.Shard.
type Loader struct {
	pack    Pack
	samples int // of a full window
	stream  stream
	id      identity

	start  position // where the window starts in the stream
	next   position // where the next one starts
	window window
	order  []int32 // the samples of the window, shuffled
	given  int     // of them
	packed Packed
}

// identity is what a cursor depends on besides its position.
type identity struct{ corpus, tokenizer string }

// window is a stretch of the stream: samples of Seq tokens, and the one after.
type window struct {
	tokens  []int32
	flags   []flag
	samples int
	open    bool // the last document does not predict its end
	epoch   int  // tokens up to the end of the epoch, where that is within the window
}

// flag says what a token of the stream is.
type flag uint8

const (
	starts    flag = 1 << iota // the separator in front of a document
	predicted                  // a label
)

// NewLoader makes a loader at the start of the first epoch. A corpus of less than one batch is an *Error.
func NewLoader(c *Corpus, t *token.Tokenizer, p Pack) (*Loader, error) {
	sep, err := c.check(t)
	if err != nil {
		return nil, err
	}
	if p.Seq < 1 || p.Batch < 1 || p.Window < 0 || p.Epochs < 0 {
		return nil, invalid("", "seq %d, batch %d, window %d, epochs %d; want at least 1, 1, 0, 0", p.Seq, p.Batch, p.Window, p.Epochs)
	}
	corpus, err := c.fingerprint()
	if err != nil {
		return nil, err
	}
	l := &Loader{pack: p, samples: max(p.Batch, cmp.Or(p.Window, windowTokens)/p.Seq), id: identity{corpus, t.Hash()}}
	l.stream = stream{corpus: c, tokenizer: t, separator: sep, seed: p.Seed, epochs: p.Epochs, packed: &l.packed}
	if err := l.load(position{}); err != nil {
		return nil, err
	}
	if l.next.Epoch > 0 && l.window.samples < p.Batch {
		return nil, invalid("", "the corpus is smaller than one batch: %d tokens in %d documents, one batch is %d sequences of %d = %d tokens; hint: a smaller batch or seq",
			l.window.epoch, len(c.train), p.Batch, p.Seq, p.Batch*p.Seq)
	}
	return l, nil
}

// Packed returns what has been tokenized and given out so far.
func (l *Loader) Packed() Packed { return l.packed }

// Next returns the next global batch that has a label: one whose samples lie within long prompts teaches nothing, and its mean loss is 0 ÷ 0. After the last
// epoch it is io.EOF; a last batch that is not full ends in rows without labels.
func (l *Loader) Next() (*Batch, error) {
	for first := l.start.Epoch; ; {
		b, err := l.batch()
		if err != nil || b.Tokens > 0 {
			return b, err
		}
		if l.start.Epoch > first+1 {
			return nil, invalid("", "no batch of a whole pass over the corpus has a label; hint: data with answers, or a longer seq")
		}
	}
}

// batch packs the next samples, whatever they are.
func (l *Loader) batch() (*Batch, error) {
	b := newBatch(l.pack.Batch, l.pack.Seq, l.pack.Segments)
	for row := range b.B {
		if l.given == l.window.samples {
			if err := l.load(l.next); err == io.EOF && row > 0 {
				break
			} else if err != nil {
				return nil, err
			}
		}
		l.window.sample(b, row, int(l.order[l.given]))
		l.given++
		l.packed.Samples++
	}
	l.packed.Labels += int64(b.Tokens)
	l.packed.Padded += int64(b.B*b.S - b.Tokens)
	return b, nil
}

// load fills the window from a position of the stream.
func (l *Loader) load(at position) error {
	l.window = window{tokens: l.window.tokens[:0], flags: l.window.flags[:0]}
	next, err := l.stream.window(&l.window, at, l.samples, l.pack.Seq)
	if err != nil {
		l.window.samples = 0 // whoever calls again comes here again
	}
	l.start, l.next, l.given = at, next, 0
	if err != nil {
		return err
	}
	l.order = shuffled(l.window.samples, l.pack.Seed, windowStream|uint64(at.Epoch)<<40^uint64(at.Doc)<<20^uint64(at.Token))
	return nil
}

// sample writes sample i of the window to a row of the batch. Beyond the end of the stream the row stays without labels.
func (w *window) sample(b *Batch, row, i int) {
	segment := int32(0)
	for s := range b.S {
		at, to := i*b.S+s, row*b.S+s
		if s > 0 && at < len(w.tokens) && w.flags[at]&starts != 0 {
			segment++
		}
		if b.Segments != nil {
			b.Segments[to] = segment
		}
		if at+1 >= len(w.tokens) {
			if at < len(w.tokens) {
				b.IDs[to] = w.tokens[at]
			}
			continue
		}
		label := w.tokens[at+1]
		if w.flags[at+1]&predicted == 0 {
			label = Ignore
		}
		b.set(to, w.tokens[at], label)
	}
}
