package token

import (
	"fmt"
	"iter"
)

// TrainOptions says what to learn. The zero value of a field means what its comment says.
type TrainOptions struct {
	VocabSize int      // ids in all: 256 bytes, merges, specials
	Split     Split    // how text is cut into words
	MinCount  int      // a pair seen less often is not merged; 0: 2
	Specials  []string // get the last ids; nil: EndOfText
}

// trainedWord caps the words that training looks at: a longer one is counted in pieces, so that one endless line cannot make training quadratic.
const trainedWord = 512

// LeastVocab is the smallest vocabulary that Train makes: every byte and one special token.
const LeastVocab = 256 + 1

// Train learns a byte-level BPE from documents (Sennrich et al. 2016, §3.2, over bytes as in Radford et al. 2019, §2.2): starting from single bytes, the most
// frequent pair of neighbours within words becomes a token, again and again. Of equally frequent pairs the one of lowest ids goes first.
//
// Bytes have the ids 0…255 in GPT-2's order (printable ones first). Where the text runs out of pairs the vocabulary is smaller than asked for:
// VocabSize of the result counts.
func Train(docs iter.Seq[[]byte], o TrainOptions) (*Tokenizer, error) {
	if o.Specials == nil {
		o.Specials = []string{EndOfText}
	}
	if o.MinCount == 0 {
		o.MinCount = 2
	}
	merges := o.VocabSize - 256 - len(o.Specials)
	if merges < 0 || o.VocabSize > maxVocab {
		return nil, &Error{Err: fmt.Errorf("train: vocabulary of %d, want %d (bytes and special tokens) to %d", o.VocabSize, 256+len(o.Specials), maxVocab)}
	}
	tr := newTrainer(merges)
	tr.count(docs, o.Split)
	tr.pairs()
	tr.learn(merges, int64(o.MinCount))

	tokens := byteTokens()
	for _, m := range tr.merges {
		tokens = append(tokens, tokens[m.left]+tokens[m.right])
	}
	var specials []Special
	for _, name := range o.Specials {
		specials = append(specials, Special{ID: int32(len(tokens)), Content: name, Control: true})
		tokens = append(tokens, name)
	}
	t, err := build(parts{split: o.Split, tokens: tokens, merges: tr.merges, specials: specials})
	if err != nil {
		return nil, &Error{Err: fmt.Errorf("train: %w", err)}
	}
	return t, nil
}

// trainer holds the different words of the text, how often each occurs, and for each pair of neighbouring symbols how often and where it occurs.
type trainer struct {
	words  [][]int32 // symbols of each different word; they shrink as pairs merge
	counts []int64   // occurrences of each word
	pair   map[uint64]*pairStat
	heap   minHeap[candidate]
	merges []merge
	raised []uint64 // pairs whose count rose during one merge
}

type pairStat struct {
	count int64
	words []int32 // indices of words that contain or contained the pair, ascending within one merge
	mark  bool    // listed in raised
}

// candidate is a pair with the count it had when it was pushed, at most its present count by then.
type candidate struct {
	key   uint64
	count int64
}

func moreFrequent(a, b candidate) bool {
	return a.count > b.count || a.count == b.count && a.key < b.key
}

func newTrainer(merges int) *trainer {
	return &trainer{pair: make(map[uint64]*pairStat), merges: make([]merge, 0, merges)}
}

// count fills words and counts, words in order of first occurrence.
func (tr *trainer) count(docs iter.Seq[[]byte], split Split) {
	index := make(map[string]int32)
	order := byteOrder()
	for doc := range docs {
		for len(doc) > 0 {
			n := min(split.next(doc), trainedWord)
			w := doc[:n]
			doc = doc[n:]
			if i, ok := index[string(w)]; ok {
				tr.counts[i]++
				continue
			}
			index[string(w)] = int32(len(tr.words))
			symbols := make([]int32, n)
			for i, c := range w {
				symbols[i] = order[c]
			}
			tr.words = append(tr.words, symbols)
			tr.counts = append(tr.counts, 1)
		}
	}
}

// pairs counts every pair of neighbours once.
func (tr *trainer) pairs() {
	for w, symbols := range tr.words {
		for i := 1; i < len(symbols); i++ {
			tr.add(symbols[i-1], symbols[i], int32(w), tr.counts[w])
		}
	}
	for _, key := range tr.raised {
		tr.heap.push(candidate{key, tr.settle(key)}, moreFrequent)
	}
	tr.raised = tr.raised[:0]
}

// add counts n more (or fewer) occurrences of a pair in word w.
func (tr *trainer) add(left, right, w int32, n int64) {
	key := pairKey(left, right)
	p := tr.pair[key]
	if p == nil {
		p = &pairStat{}
		tr.pair[key] = p
	}
	p.count += n
	if n < 0 {
		return
	}
	if k := len(p.words); k == 0 || p.words[k-1] != w {
		p.words = append(p.words, w)
	}
	if !p.mark {
		p.mark = true
		tr.raised = append(tr.raised, key)
	}
}

// settle unmarks a raised pair and returns its count.
func (tr *trainer) settle(key uint64) int64 {
	p := tr.pair[key]
	p.mark = false
	return p.count
}

// learn makes up to n merges.
func (tr *trainer) learn(n int, minCount int64) {
	for len(tr.merges) < n && len(tr.heap) > 0 {
		top := tr.heap.pop(moreFrequent)
		p := tr.pair[top.key]
		if p == nil || p.count != top.count { // stale: merged already, fell since, or rose and was pushed again
			if p != nil && p.count > 0 && p.count < top.count {
				tr.heap.push(candidate{top.key, p.count}, moreFrequent)
			}
			continue
		}
		if p.count < minCount {
			return
		}
		m := merge{left: int32(top.key >> 32), right: int32(uint32(top.key)), id: int32(256 + len(tr.merges))}
		tr.merges = append(tr.merges, m)
		for _, w := range p.words {
			tr.apply(m, w)
		}
		delete(tr.pair, top.key)
		for _, key := range tr.raised {
			tr.heap.push(candidate{key, tr.settle(key)}, moreFrequent)
		}
		tr.raised = tr.raised[:0]
	}
}

// apply merges every occurrence of m in word w, from the left, and keeps the counts of the pairs around it.
func (tr *trainer) apply(m merge, w int32) {
	s, n := tr.words[w], tr.counts[w]
	out := s[:0]
	for i := 0; i < len(s); i++ {
		if i+1 == len(s) || s[i] != m.left || s[i+1] != m.right {
			out = append(out, s[i])
			continue
		}
		if k := len(out); k > 0 {
			tr.add(out[k-1], m.left, w, -n)
			tr.add(out[k-1], m.id, w, n)
		}
		if i+2 < len(s) {
			tr.add(m.right, s[i+2], w, -n)
			tr.add(m.id, s[i+2], w, n)
		}
		out = append(out, m.id)
		i++
	}
	tr.words[w] = out
}
