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

	at  position // whose document ids holds: a long document is cut by many windows and tokenized once
	ids []int32
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
	w.tokens, w.flags = append(w.tokens, s.separator), append(w.flags, predicted)
	w.samples = (len(w.tokens) - 1 + seq - 1) / seq
	return p, nil
}

// append adds the document at p of the shuffled order, a separator in front, from token p.Token on.
func (s *stream) append(w *window, p position) error {
	if s.ids == nil || s.at.Epoch != p.Epoch || s.at.Doc != p.Doc {
		if err := s.tokenize(p); err != nil {
			return err
		}
	}
	for i := p.Token; i < len(s.ids); i++ {
		f := predicted
		if i == 0 {
			f |= starts
		}
		w.tokens, w.flags = append(w.tokens, s.ids[i]), append(w.flags, f)
	}
	return nil
}

// tokenize fills ids with the document at p.
func (s *stream) tokenize(p position) error {
	s.at, s.ids = p, s.ids[:0]
	text, err := s.corpus.read(s.corpus.train[s.shuffle(p.Epoch)[p.Doc]])
	if err != nil || len(text) == 0 {
		return err
	}
	s.ids = s.tokenizer.EncodeText(append(s.ids, s.separator), text)
	s.packed.Documents++
	s.packed.Bytes += int64(len(text))
	s.packed.Tokens += int64(len(s.ids))
	return nil
}

// shuffle returns the order of documents in an epoch.
func (s *stream) shuffle(epoch int) []int32 {
	if s.order == nil || s.epoch != epoch {
		s.epoch, s.order = epoch, shuffled(len(s.corpus.train), s.seed, uint64(epoch))
	}
	return s.order
}
