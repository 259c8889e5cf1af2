package data

import (
	"path/filepath"
	"strings"
)

// source is a file of one format: it says which documents the file holds and reads them.
type source interface {
	// divide lists the documents: those within the last `tail` bytes are held out, the others are trained on.
	divide(tail int64) (train, held []span)
	// read returns the documents of a span, and why it left any out.
	read(s span) (docs []document, dropped []string, err error)
	// tokenizer is the hash of the tokenizer that has made the ids in the file; empty for text.
	tokenizer() string
}

// span is a stretch of a file: bytes lo to hi, or rows, as the format has it.
type span struct{ lo, hi int64 }

// document is what follows one separator in the stream.
type document struct {
	pieces []piece
	open   bool // the separator behind it is not predicted: a chat template ends its turns itself
}

// piece is a stretch of a document.
type piece struct {
	text    []byte
	ids     []int32 // of a document that is tokenized already, instead of text
	silent  bool    // a prompt: given, not predicted
	control bool    // special tokens in text are special tokens
}

func (d *document) bytes() (n int64) {
	for _, p := range d.pieces {
		n += int64(len(p.text))
	}
	return n
}

// plain tells whether a file of this name is text rather than records.
func plain(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".jsonl", ".ndjson", ".parquet", shardSuffix:
		return false
	}
	return true
}

// openSource opens a file by the format its name says.
func openSource(path string, size int64, c *Config) (source, error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".jsonl", ".ndjson":
		return openLines(path, size, c)
	case ".parquet":
		return openParquet(path, size, c)
	case shardSuffix:
		return openShard(path, size)
	}
	return &textFile{path: path, size: size, part: c.PartBytes}, nil
}

// tailSpans divides spans by a size for each: the last ones, together at least tail large, are held out.
func tailSpans(all []span, tail int64, size func(span) int64) (train, held []span) {
	i := len(all)
	for held := int64(0); i > 0 && held < tail; i-- {
		held += size(all[i-1])
	}
	return all[:i], all[i:]
}
