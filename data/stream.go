package data

import (
	"io"

	"heddle/token"
)

// position is a place in the endless stream of tokens.
type position struct {
	Epoch int // passes over the corpus that are complete
	Doc   int // documents of this epoch, in its shuffled order, that are complete
	Token int // tokens of this document, its separator included, that are complete
}

// stream is the text of all epochs as tokens: separator, document, separator, document, …, and one separator at the end of the last epoch.
type stream struct {
	corpus    *Corpus
	tokenizer *token.Tokenizer
	separator int32
	seed      uint64
	epochs    int // 0: without end
	packed    *Packed

	epoch int // that order belongs to
	order []int32

	at    position // whose documents ids holds: a long document is cut by many windows and tokenized once
	ids   []int32
	flags []flag
	open  bool // the last of them does not predict its end
}

// window appends up to n samples of seq tokens from a position on, and returns where the next window starts. A window ends early with the
// sample that contains the last token of the epoch, so that shuffling a window never mixes two epochs further than one sample. io.EOF means that there is
// nothing at this position.
func (s *stream) window(w *window, at position, n, seq int) (position, error) {
	var segments []segment
	w.samples = n
	inEpoch := at.Epoch
	for p := at; len(w.tokens) < w.samples*seq+1; p = (position{p.Epoch, p.Doc + 1, 0}) {
		if s.epochs > 0 && p.Epoch == s.epochs {
			return s.finish(w, p, seq)
		}
		if p.Doc == len(s.corpus.train) {
			if len(w.tokens) == 0 && at == (position{p.Epoch, 0, 0}) {
				return at, invalid("", "no document of the corpus is text: zero samples\n%v", s.corpus.Summary())
			}
			p = position{p.Epoch + 1, -1, 0} // the loop makes it document 0
			continue
		}
		if p.Epoch > inEpoch {
			if inEpoch = p.Epoch; w.epoch == 0 {
				w.epoch = len(w.tokens)
			}
			w.samples = min(w.samples, (len(w.tokens)+seq-1)/seq) // the separator to come, at index len, is the last label of the old epoch
		}
		segments = append(segments, segment{p, len(w.tokens)})
		if err := s.append(w, p); err != nil {
			return at, err
		}
	}
	end := w.samples * seq // the last label is the first input of the next window
	w.tokens, w.flags = w.tokens[:end+1], w.flags[:end+1]
	for i := len(segments) - 1; ; i-- {
		if g := segments[i]; g.start <= end {
			g.at.Token += end - g.start
			return g.at, nil
		}
	}
}

// segment says which document the tokens of a window from start on come from.
type segment struct {
	at    position
	start int
}

// finish closes the last epoch with a separator.
func (s *stream) finish(w *window, p position, seq int) (position, error) {
	if len(w.tokens) == 0 {
		return p, io.EOF
	}
	if w.epoch == 0 {
		w.epoch = len(w.tokens)
	}
	last := predicted
	if w.open {
		last = 0
	}
	w.tokens, w.flags = append(w.tokens, s.separator), append(w.flags, last)
	w.samples = (len(w.tokens) - 1 + seq - 1) / seq
	return p, nil
}

// append adds the documents at p of the shuffled order, from token p.Token of them on.
func (s *stream) append(w *window, p position) error {
	if s.ids == nil || s.at.Epoch != p.Epoch || s.at.Doc != p.Doc {
		if err := s.tokenize(p); err != nil {
			return err
		}
	}
	if p.Token >= len(s.ids) {
		return nil
	}
	from := len(w.tokens)
	w.tokens, w.flags = append(w.tokens, s.ids[p.Token:]...), append(w.flags, s.flags[p.Token:]...)
	if p.Token == 0 && w.open { // the separator in front belongs to the document before
		w.flags[from] &^= predicted
	}
	w.open = s.open
	return nil
}

// tokenize fills ids and flags with the documents at p, a separator in front of each.
func (s *stream) tokenize(p position) error {
	s.at, s.ids, s.flags, s.open = p, s.ids[:0], s.flags[:0], false
	docs, err := s.corpus.read(s.corpus.train[s.shuffle(p.Epoch)[p.Doc]])
	if err != nil {
		return err
	}
	for _, d := range docs {
		start := starts
		if !s.open {
			start |= predicted
		}
		s.ids, s.flags, s.open = append(s.ids, s.separator), append(s.flags, start), d.open
		for _, q := range d.pieces {
			if s.ids, err = encode(s.tokenizer, s.ids, q); err != nil {
				return err
			}
			f := predicted
			if q.silent {
				f = 0
			}
			for len(s.flags) < len(s.ids) {
				s.flags = append(s.flags, f)
			}
		}
		s.packed.Documents++
		s.packed.Bytes += d.bytes()
	}
	s.packed.Tokens += int64(len(s.ids))
	return nil
}

// encode appends the ids of a piece.
func encode(t *token.Tokenizer, dst []int32, p piece) ([]int32, error) {
	switch {
	case p.ids != nil:
		return append(dst, p.ids...), nil
	case p.control:
		return t.Encode(dst, p.text), nil
	}
	return t.EncodeText(dst, p.text), nil
}

// shuffle returns the order of documents in an epoch.
func (s *stream) shuffle(epoch int) []int32 {
	if s.order == nil || s.epoch != epoch {
		s.epoch, s.order = epoch, shuffled(len(s.corpus.train), s.seed, uint64(epoch))
	}
	return s.order
}
