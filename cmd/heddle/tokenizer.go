package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"heddle/data"
	"heddle/internal/cli"
	"heddle/token"
)

type tokenizerCmd struct {
	Train  tokenizerTrainCmd  `cmd:"" help:"Learn a byte-level BPE from text and write it as tokenizer.json."`
	Encode tokenizerEncodeCmd `cmd:"" help:"Turn text into ids."`
	Decode tokenizerDecodeCmd `cmd:"" help:"Turn ids into text."`
}

func (tokenizerCmd) Help() string {
	return `Examples:
  heddle tokenizer train --data ./notes --vocab 4096 --tokenizer tokenizer.json
      learns a vocabulary from every file below ./notes
  heddle tokenizer encode --tokenizer tokenizer.json "hello world" --json
      prints the ids; any tokenizer.json of GPT-2, Qwen 2/3, Llama 3 or SmolLM
      will do`
}

const maxText = 1 << 30 // bytes that encode and decode read

type tokenizerTrainCmd struct {
	Tokenizer string   `required:"" help:"The file to write." placeholder:"FILE"`
	Data      []string `required:"" help:"Files, folders or globs of text."`
	Suffix    string   `help:"Take only files of folders that end in this, e.g. .go."`
	Vocab     int      `default:"2048" help:"Ids in all: 256 bytes, merges, one separator."`
	Split     string   `enum:"gpt2,qwen2,llama3,smollm" default:"qwen2" help:"How text is cut into words: gpt2, qwen2, llama3 or smollm."`
	Sample    int64    `default:"8388608" help:"Bytes of text to learn from, spread over the data."`
	Seed      uint64   `default:"1" help:"Chooses the sample."`
}

func (tokenizerTrainCmd) Help() string {
	return `Examples:
  heddle tokenizer train --data ./notes --vocab 4096 --tokenizer tokenizer.json
  heddle tokenizer train --data "$(go env GOROOT)" --suffix .go --split llama3 --tokenizer go.json`
}

func (c *tokenizerTrainCmd) Run(env *cli.Env) error {
	split, err := token.SplitNamed(c.Split)
	if err != nil {
		return exitText(err)
	}
	corpus, err := data.Open(data.Config{Paths: c.Data, Suffix: c.Suffix, HoldOutEvery: -1})
	if err != nil {
		return exitText(err)
	}
	documents, read := 0, int64(0)
	var failed error
	tok, err := token.Train(texts(corpus.Sample(c.Sample, c.Seed), &failed, func(text []byte) {
		documents, read = documents+1, read+int64(len(text))
	}), token.TrainOptions{VocabSize: c.Vocab, Split: split})
	if err = errors.Join(failed, err); err != nil {
		return exitText(err)
	}
	if read == 0 {
		return cli.Exitf(cli.Invalid, "no document of %q is text", c.Data)
	}
	if err := tok.Write(c.Tokenizer); err != nil {
		return err
	}
	s := corpus.Summary()
	fmt.Fprint(env.Err, s)
	return env.Emit(map[string]any{"tokenizer": c.Tokenizer, "vocab_size": tok.VocabSize(), "documents": documents, "bytes": read, "hash": tok.Hash(), "corpus": s}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %d ids, learned from %d documents (%d bytes)\n", c.Tokenizer, tok.VocabSize(), documents, read)
		if tok.VocabSize() < c.Vocab {
			fmt.Fprintf(w, "fewer than the %d asked for: no pair of tokens occurs twice any more\n", c.Vocab)
		}
	})
}

// texts drops the error of a sequence into failed and lets seen look at each text.
func texts(docs iter.Seq2[[]byte, error], failed *error, seen func([]byte)) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for text, err := range docs {
			if *failed = err; err != nil {
				return
			}
			if seen(text); !yield(text) {
				return
			}
		}
	}
}

type tokenizerEncodeCmd struct {
	Tokenizer string   `required:"" help:"A tokenizer.json, or the folder that holds it." placeholder:"FILE"`
	File      string   `help:"Encode this file." placeholder:"TEXT"`
	Shard     string   `help:"Encode --data into a shard of ids that training reads without a tokenizer's work; the name ends in .tokens." placeholder:"OUT"`
	Data      []string `help:"With --shard: files, folders or globs of text, JSONL or Parquet."`
	Suffix    string   `help:"With --shard: take only files of folders that end in this."`
	Field     string   `help:"With --shard: the column of records: text, prompt (with completion), messages."`
	Template  string   `help:"With --shard: the model's folder, whose chat template writes messages." placeholder:"DIR"`
	Text      []string `arg:"" optional:"" help:"Text to encode; without it and without --file, standard input."`
}

func (tokenizerEncodeCmd) Help() string {
	return `Examples:
  heddle tokenizer encode --tokenizer tokenizer.json "hello world"
  heddle tokenizer encode --tokenizer Qwen3-0.6B --file main.go --json
  heddle tokenizer encode --tokenizer Qwen3-0.6B --data chats.jsonl --template Qwen3-0.6B --shard chats.tokens`
}

func (c *tokenizerEncodeCmd) Run(env *cli.Env) error {
	tok, err := readTokenizer(c.Tokenizer)
	if err != nil {
		return err
	}
	switch records := len(c.Data) > 0 || c.Suffix != "" || c.Field != "" || c.Template != ""; {
	case c.Shard != "" && (c.File != "" || len(c.Text) > 0 || len(c.Data) == 0):
		return cli.Exitf(cli.Usage, "--shard takes its text from --data")
	case c.Shard == "" && records:
		return cli.Exitf(cli.Usage, "--data, --suffix, --field and --template go with --shard")
	case c.Shard != "":
		return c.shard(env, tok)
	}
	text, err := input(env, c.File, c.Text)
	if err != nil {
		return err
	}
	ids := tok.Encode([]int32{}, text)
	return env.Emit(map[string]any{"ids": ids, "tokens": len(ids), "bytes": len(text)}, func(w io.Writer) {
		line := make([]byte, 0, 8*len(ids))
		for i, id := range ids {
			if i > 0 {
				line = append(line, ' ')
			}
			line = strconv.AppendInt(line, int64(id), 10)
		}
		w.Write(append(line, '\n'))
	})
}

// shard writes the ids of a corpus.
func (c *tokenizerEncodeCmd) shard(env *cli.Env, tok *token.Tokenizer) (err error) {
	if filepath.Ext(c.Shard) != ".tokens" {
		return cli.Exitf(cli.Usage, "--shard %s: the name of a shard ends in .tokens", c.Shard)
	}
	cfg := data.Config{Paths: c.Data, Suffix: c.Suffix, Field: c.Field, HoldOutEvery: -1}
	if c.Template != "" {
		if cfg.Template, err = data.ReadTemplate(c.Template); err != nil {
			return exitText(err)
		}
	}
	corpus, err := data.Open(cfg)
	if err != nil {
		return exitText(err)
	}
	packed, err := data.WriteShard(c.Shard, corpus, tok)
	if err != nil {
		return exitText(err)
	}
	s := corpus.Summary()
	fmt.Fprint(env.Err, s)
	return env.Emit(map[string]any{"shard": c.Shard, "documents": packed.Documents, "bytes": packed.Bytes, "tokens": packed.Tokens, "corpus": s}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %d documents (%d bytes) as %d ids\n", c.Shard, packed.Documents, packed.Bytes, packed.Tokens)
	})
}

type tokenizerDecodeCmd struct {
	Tokenizer string   `required:"" help:"A tokenizer.json, or the folder that holds it." placeholder:"FILE"`
	File      string   `help:"Read the ids, numbers with white space or commas between them, from this file." placeholder:"IDS"`
	IDs       []string `arg:"" name:"id" optional:"" help:"Ids; without them and without --file, standard input."`
}

func (tokenizerDecodeCmd) Help() string {
	return `Examples:
  heddle tokenizer decode --tokenizer tokenizer.json 39 72
  heddle tokenizer decode --tokenizer Qwen3-0.6B --file ids.txt`
}

func (c *tokenizerDecodeCmd) Run(env *cli.Env) error {
	tok, err := readTokenizer(c.Tokenizer)
	if err != nil {
		return err
	}
	text, err := input(env, c.File, c.IDs)
	if err != nil {
		return err
	}
	var ids []int32
	for _, field := range strings.FieldsFunc(string(text), func(r rune) bool { return strings.ContainsRune(" \t\r\n,[]", r) }) {
		id, err := strconv.ParseInt(field, 10, 32)
		if err != nil {
			return cli.Exitf(cli.Invalid, "tokenizer: decode: %q is no id", field)
		}
		ids = append(ids, int32(id))
	}
	back, err := tok.Decode(nil, ids)
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	return env.Emit(map[string]any{"text": token.Text(back), "tokens": len(ids), "bytes": len(back)}, func(w io.Writer) { w.Write(back) })
}

// readTokenizer reads a tokenizer.json, or the one of a folder.
func readTokenizer(path string) (*token.Tokenizer, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, "tokenizer.json")
	}
	tok, err := token.Read(path)
	return tok, exitText(err)
}

// input is the arguments with spaces between them, or a file, or standard input.
func input(env *cli.Env, file string, args []string) ([]byte, error) {
	in := env.In
	switch {
	case file != "" && len(args) > 0:
		return nil, cli.Exitf(cli.Usage, "both --file and arguments; want one of them")
	case len(args) > 0:
		return []byte(strings.Join(args, " ")), nil
	case file != "":
		f, err := os.Open(file)
		if err != nil {
			return nil, exitText(err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxText+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxText {
		return nil, cli.Exitf(cli.Invalid, "more than %d bytes of text; hint: encode it in pieces", maxText)
	}
	return text, nil
}

// exitText gives errors of text, tokenizers and absent files the code of invalid data.
func exitText(err error) error {
	if err == nil {
		return nil
	}
	_, isData := errors.AsType[*data.Error](err)
	_, isToken := errors.AsType[*token.Error](err)
	if isData || isToken || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return cli.Exit(cli.Invalid, err)
	}
	return err
}
