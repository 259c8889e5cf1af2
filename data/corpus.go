package data

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"sync"
)

const (
	holdOutEvery = 50
	holdOutBytes = 256 << 10
	partBytes    = 4 << 20  // a larger held-out file is read in parts of about this size
	trainBytes   = 16 << 10 // a larger file is trained on in parts of about this size, each a document of its own: a short run sees many files
)

// Corpus is a list of documents, divided into those to train on and those held out. Text is read when it is needed.
type Corpus struct {
	files []file
	train []doc // in order of listing
	held  []doc // in order of hash, so that the first of them are a sample of all
	sum   Summary

	mu      sync.Mutex
	dropped map[doc]bool
}

// file is one file of the corpus.
type file struct {
	path  string // as opened
	name  string // below the folder it was found in, with forward slashes: what is hashed
	size  int64
	named bool // listed one by one: it must be text
}

// doc is a document: the bytes lo to hi of a file, moved forward to the next line where they are not its ends.
type doc struct {
	file   int32
	lo, hi int64
}

// Open lists the corpus. A file named one by one that is empty or binary is an error; one that a folder or pattern brings along is dropped and counted.
func Open(c Config) (*Corpus, error) {
	l := lister{suffix: c.Suffix, seen: make(map[string]bool)}
	for _, p := range c.Paths {
		if err := l.add(p); err != nil {
			return nil, err
		}
	}
	x := &Corpus{files: l.files, dropped: make(map[doc]bool)}
	x.sum.Dropped = l.dropped
	for i := range l.files {
		x.sum.Files++
		x.sum.Bytes += l.files[i].size
	}
	if len(x.files) == 0 {
		return nil, x.empty(c)
	}
	x.divide(c)
	return x, nil
}

func (c *Corpus) empty(cfg Config) error {
	hint := ""
	for _, d := range c.sum.Dropped {
		hint += fmt.Sprintf("; %d dropped: %s", d.Files, d.Why)
	}
	if cfg.Suffix != "" {
		hint += fmt.Sprintf("; only files ending in %q are taken from folders", cfg.Suffix)
	}
	return invalid("", "no text in %q%s", cfg.Paths, hint)
}

// hash orders files and picks the held-out ones; it depends on nothing but the name.
func (f *file) hash() uint64 {
	h := sha256.Sum256([]byte(f.name))
	return binary.BigEndian.Uint64(h[:8])
}

// divide holds documents out.
//
// From HoldOutEvery files on, a file is held out when its hash is divisible by HoldOutEvery, so adding a file moves no other. Where that holds out too little,
// further files follow in order of hash as long as no more than a fifth of the corpus is held out. Where no file is small enough for that, the end of the
// largest file is held out.
func (c *Corpus) divide(cfg Config) {
	every, want := int64(cmp.Or(cfg.HoldOutEvery, holdOutEvery)), cmp.Or(cfg.HoldOutBytes, holdOutBytes)
	order := make([]int, len(c.files))
	hashes := make([]uint64, len(c.files))
	largest := 0
	for i := range order {
		order[i], hashes[i] = i, c.files[i].hash()
		if c.files[i].size > c.files[largest].size {
			largest = i
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(hashes[a], hashes[b]) })
	held := make([]bool, len(c.files))
	bytes := int64(0)
	if every > 0 && int64(len(order)) >= every {
		for i := range c.files {
			if hashes[i]%uint64(every) == 0 {
				held[i], bytes = true, bytes+c.files[i].size
			}
		}
	}
	want = min(want, c.sum.Bytes/10)
	for _, i := range order {
		if every > 0 && !held[i] && bytes < want && bytes+c.files[i].size <= c.sum.Bytes/5 {
			held[i], bytes = true, bytes+c.files[i].size
		}
	}
	tail := int64(0)
	if every > 0 && bytes == 0 {
		tail = max(c.files[largest].size/every, min(want, c.files[largest].size/10))
	}
	for i := range c.files {
		switch size := c.files[i].size; {
		case held[i]:
		case i == largest && tail > 0:
			c.train = appendParts(c.train, i, 0, size-tail, trainBytes)
			c.held = appendParts(c.held, i, size-tail, size, partBytes)
		default:
			c.train = appendParts(c.train, i, 0, size, trainBytes)
		}
	}
	for _, i := range order {
		if held[i] {
			c.held = appendParts(c.held, i, 0, c.files[i].size, partBytes)
			c.sum.HeldOutFiles++
		}
	}
	c.sum.HeldOutBytes = bytes + tail
	c.sum.Documents, c.sum.HeldOutDocuments = len(c.train), len(c.held)
}

// appendParts adds the bytes lo to hi of a file as documents of about part bytes.
func appendParts(docs []doc, file int, lo, hi, part int64) []doc {
	n := max(1, (hi-lo+part/2)/part)
	for i := range n {
		docs = append(docs, doc{int32(file), lo + (hi-lo)*i/n, lo + (hi-lo)*(i+1)/n})
	}
	return docs
}

// Sample yields training documents in a shuffled order until they hold limit bytes.
func (c *Corpus) Sample(limit int64, seed uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, i := range shuffled(len(c.train), seed, sampleStream) {
			text, err := c.read(c.train[i])
			if err != nil {
				yield(nil, err)
				return
			}
			if limit -= int64(len(text)); len(text) > 0 && !yield(text, nil) || limit <= 0 {
				return
			}
		}
	}
}

// fingerprint names the documents: files, their sizes, and how they are divided. Text that changes without changing its size is not noticed.
func (c *Corpus) fingerprint() string {
	h := sha256.New()
	for _, f := range c.files {
		fmt.Fprintf(h, "%q %d\n", f.name, f.size)
	}
	for _, d := range c.train {
		fmt.Fprintf(h, "%d %d %d\n", d.file, d.lo, d.hi)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
