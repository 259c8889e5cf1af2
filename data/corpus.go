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

	"heddle/token"
)

const (
	holdOutEvery = 50
	holdOutBytes = 256 << 10
)

// Corpus is a list of documents, divided into those to train on and those held out. Text is read when it is needed.
type Corpus struct {
	config Config // what sources read by
	files  []file
	train  []doc // in order of listing
	held   []doc // in order of hash, so that the first of them are a sample of all
	sum    Summary

	mu      sync.Mutex
	dropped map[doc]bool
}

// file is one file of the corpus.
type file struct {
	path  string // as opened
	name  string // below the folder it was found in, with forward slashes: what is hashed
	size  int64
	named bool // listed one by one: it must be text
	source
}

// doc is a span of a file: one document, or a few of a format that is read in blocks.
type doc struct {
	file int32
	span
}

// Open lists the corpus. A file named one by one that is empty or binary is an error; one that a folder or pattern brings along is dropped and counted.
func Open(c Config) (*Corpus, error) {
	x := &Corpus{config: c, dropped: make(map[doc]bool)}
	if x.config.PartBytes == 0 {
		x.config.PartBytes = trainBytes
	}
	l := lister{suffix: c.Suffix, config: &x.config, seen: make(map[string]bool)}
	for _, p := range c.Paths {
		if err := l.add(p); err != nil {
			return nil, err
		}
	}
	x.files, x.sum.Dropped = l.files, l.dropped
	for i := range l.files {
		x.sum.Files++
		x.sum.Bytes += l.files[i].size
	}
	x.divide()
	if len(x.train) == 0 {
		return nil, x.empty()
	}
	return x, nil
}

func (c *Corpus) empty() error {
	hint := ""
	for _, d := range c.sum.Dropped {
		hint += fmt.Sprintf("; %d dropped: %s", d.Count, d.Why)
	}
	if c.config.Suffix != "" {
		hint += fmt.Sprintf("; only files ending in %q are taken from folders", c.config.Suffix)
	}
	return invalid("", "no text in %q: zero samples%s", c.config.Paths, hint)
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
func (c *Corpus) divide() {
	every, want := int64(cmp.Or(c.config.HoldOutEvery, holdOutEvery)), cmp.Or(c.config.HoldOutBytes, holdOutBytes)
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
	held := make([]int64, len(c.files)) // bytes at the end of each file that are held out
	bytes := int64(0)
	hold := func(i int, n int64) { held[i], bytes = n, bytes+n }
	if every > 0 && int64(len(order)) >= every {
		for i := range c.files {
			if hashes[i]%uint64(every) == 0 {
				hold(i, c.files[i].size)
			}
		}
	}
	want = min(want, c.sum.Bytes/10)
	for _, i := range order {
		if every > 0 && held[i] == 0 && bytes < want && bytes+c.files[i].size <= c.sum.Bytes/5 {
			hold(i, c.files[i].size)
		}
	}
	if every > 0 && bytes == 0 && len(c.files) > 0 {
		hold(largest, max(c.files[largest].size/every, min(want, c.files[largest].size/10)))
	}
	for i := range c.files {
		train, _ := c.files[i].divide(held[i])
		c.train = appendDocs(c.train, i, train)
	}
	for _, i := range order {
		if held[i] > 0 {
			_, spans := c.files[i].divide(held[i])
			c.held = appendDocs(c.held, i, spans)
			c.sum.HeldOutFiles++
		}
	}
	c.sum.HeldOutBytes = bytes
	c.sum.Documents, c.sum.HeldOutDocuments = len(c.train), len(c.held)
}

func appendDocs(docs []doc, file int, spans []span) []doc {
	for _, s := range spans {
		docs = append(docs, doc{int32(file), s})
	}
	return docs
}

// read returns the documents of a span. What is left out is counted once, with the reason; a binary file named one by one is an error.
func (c *Corpus) read(d doc) ([]document, error) {
	f := &c.files[d.file]
	docs, dropped, err := f.source.read(d.span)
	if err != nil {
		return nil, err
	}
	bytes := int64(0)
	if plain(f.path) && len(docs) > 0 {
		if why := notText(docs[0].pieces[0].text); why != "" {
			if f.named {
				return nil, invalid(f.path, "%s (after byte %d); hint: data is UTF-8 text", why, d.lo)
			}
			docs, dropped, bytes = nil, []string{"binary"}, docs[0].bytes()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(dropped) > 0 && !c.dropped[d] {
		c.dropped[d] = true
		for _, why := range dropped {
			c.sum.Dropped = addDrop(c.sum.Dropped, why, f.path, bytes)
		}
	}
	return docs, nil
}

// check makes sure that a tokenizer fits the corpus and has a separator, which it returns.
func (c *Corpus) check(t *token.Tokenizer) (separator int32, err error) {
	separator, ok := t.Separator()
	if !ok {
		return 0, invalid("", "the tokenizer has no special token that separates documents; hint: add %s", token.EndOfText)
	}
	hash := ""
	for i := range c.files {
		want := c.files[i].tokenizer()
		if want != "" && hash == "" {
			hash = t.Hash()
		}
		if want != "" && want != hash {
			return 0, invalid(c.files[i].path, "made by tokenizer %s, not %s; hint: use that one or make the shard anew", want, hash)
		}
	}
	return separator, nil
}

// Sample yields training documents in a shuffled order until they hold limit bytes.
func (c *Corpus) Sample(limit int64, seed uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, i := range shuffled(len(c.train), seed, sampleStream) {
			docs, err := c.read(c.train[i])
			if err != nil {
				yield(nil, err)
				return
			}
			for _, d := range docs {
				var text []byte
				for _, p := range d.pieces {
					text = append(text, p.text...)
				}
				if limit -= int64(len(text)); len(text) > 0 && !yield(text, nil) || limit <= 0 {
					return
				}
			}
		}
	}
}

// fingerprint names the documents: files, their sizes and contents, how they are divided and read.
func (c *Corpus) fingerprint() (string, error) {
	sums, err := c.sums()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", c.config.Field)
	if t := c.config.Template; t != nil {
		fmt.Fprintf(h, "%q %q\n", t.source, t.vars)
	}
	for i, f := range c.files {
		fmt.Fprintf(h, "%q %d %s\n", f.name, f.size, sums[i])
	}
	for _, d := range c.train {
		fmt.Fprintf(h, "%d %d %d\n", d.file, d.lo, d.hi)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}
