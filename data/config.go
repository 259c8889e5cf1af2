package data

import "fmt"

// Config says which text a corpus is made of. The zero value of a field means what its comment says.
//
// A file whose name ends in .jsonl, .ndjson or .parquet holds records, one in .tokens is a shard that WriteShard has made, any other is text.
type Config struct {
	Paths        []string // files, folders (with everything below) and globs
	Suffix       string   // files taken from folders end in this, e.g. ".go"; empty takes all
	HoldOutEvery int      // one file in this many is held out, by hash of its path below the corpus root; 0: 50, negative: none
	HoldOutBytes int64    // hold out at least this much, as far as a tenth of the corpus allows; 0: 256 KiB

	PartBytes int64     // of text trained on as one document: longer files are cut at lines; 0: 4 KiB, so that a short run sees many files
	Field     string    // of records: a column of text, "prompt" (with completion) or "messages" (a chat); empty: the one there is
	Template  *Template // writes chats as text
}

// Pack says how a corpus becomes training batches.
type Pack struct {
	Seq      int    // S, positions of a sample
	Batch    int    // sequences of a global batch
	Seed     uint64 // of the shuffles
	Epochs   int    // passes over the corpus; 0: without end
	Window   int    // tokens among which samples are shuffled; 0: 1<<18
	Segments bool   // fill Batch.Segments, for attention within documents
}

// EvalPack says how held-out documents become batches.
type EvalPack struct {
	Seq   int
	Batch int   // sequences of a global batch; the last batch is filled with rows without labels
	Bytes int64 // whole documents in order of hash until this much; 0: all of them
}

// Error is text, or a description of text, that cannot be used: exit code 3 of the command.
type Error struct {
	Path string // the file, folder or pattern; empty when it is the corpus as a whole
	Err  error
}

func (e *Error) Error() string {
	if e.Path == "" {
		return "data: " + e.Err.Error()
	}
	return "data: " + e.Path + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

func invalid(path, format string, args ...any) error {
	return &Error{Path: path, Err: fmt.Errorf(format, args...)}
}
