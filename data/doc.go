// Package data makes batches of token ids from text: it lists a corpus, holds documents out for evaluation, shuffles, tokenizes, packs.
//
//	Open(Config) (*Corpus, error)                            lists files, folders and globs; reads no text except of files named one by one, and where
//	                                                         the records of a file are
//	ReadTemplate(folder) (*Template, error)                  a model's chat template, for Config
//	(*Corpus).Sample(bytes, seed) iter.Seq2[[]byte, error]   documents spread over the corpus, never held-out ones: for token.Train
//	NewLoader(corpus, tokenizer, Pack) (*Loader, error)      training batches
//	(*Loader).Next() (*Batch, error)                         the next global batch; io.EOF after Pack.Epochs
//	(*Batch).Shard(rank, size) *Batch                        the rows of one data rank
//	(*Loader).Cursor() Cursor, Seek(Cursor) error            a position that survives a restart exactly, whatever the layout
//	NewEval(corpus, tokenizer, EvalPack) (*Eval, error)      whole held-out documents; Eval.Batches() iter.Seq[*Batch], Eval.Bytes
//	(*Corpus).Summary() Summary, (*Loader).Packed() Packed   what was listed, read, packed, dropped, with the reason
//	WriteShard(path, corpus, tokenizer) (Packed, error)      the corpus as ids, in a file that Open reads
//
// The text of an epoch is one stream of tokens: separator, document, separator, document, …, separator. A sample is Seq inputs of it with the
// Seq tokens one later as labels, and samples follow each other without a gap, so every token but the first separator is a label exactly once. The only
// padding is at the very end. Documents are shuffled per epoch; samples are shuffled again within a window of consecutive documents, so that a batch is not
// one file. Text is tokenized a window at a time: a run pays for what it sees.
//
// A file is text, or, by its suffix, records: .jsonl and .parquet hold text, prompt and completion, or chats (record.go, template.go), of which only
// completions and assistants' turns are predicted; .tokens is a shard of ids (shard.go).
//
// Labels are shifted here and nowhere else. A position without a label holds Ignore in Labels and 0 in Mask.
//
// Errors that the text or its configuration causes are of type *Error. Start reading at corpus.go, then
// source.go, stream.go, loader.go and eval.go.
package data
