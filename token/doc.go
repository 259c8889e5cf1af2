// Package token turns text into ids and back: byte-level BPE as GPT-2, Qwen and Llama 3 use it.
//
// A Tokenizer is a vocabulary of byte strings, a list of merges, a rule that cuts text into words before merging (Split) and special tokens. Every byte
// string has an encoding, and Decode returns exactly the bytes that Encode was given, valid UTF-8 or not, unless a normalizer changes them or the
// vocabulary lacks some control characters (Missing).
//
//	Train(docs, TrainOptions) (*Tokenizer, error)            learns the merges; the same documents in the same order give the same file
//	Read(path), Parse(json) (*Tokenizer, error)              a tokenizer.json in Hugging Face's format
//	(*Tokenizer).Write(path) error, JSON() []byte            the same, written under a temporary name, synced, renamed
//	(*Tokenizer).Encode(dst, text) []int32                   special tokens in text become their ids, as in Hugging Face's library
//	(*Tokenizer).EncodeText(dst, text) []int32               text is only text: a document cannot forge a separator
//	(*Tokenizer).Decode(dst, ids) ([]byte, error)            an id outside the vocabulary is an error
//	(*Tokenizer).VocabSize() int, Special(name) (id, bool), Separator() (id, bool), Hash() string
//
// A Tokenizer does not change once made; any number of goroutines may use it.
//
// What a reader does not know is refused, not guessed: another model than BPE, another pre-tokenizer than the ones in split.go, another normalizer
// than NFC. Start reading at tokenizer.go, then split.go (where words end), bpe.go (how a word is merged) and train.go.
package token
