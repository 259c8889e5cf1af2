package train

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"heddle/checkpoint/gguf"
	"heddle/checkpoint/pretrained"
	"heddle/checkpoint/safetensors"
	"heddle/data"
	"heddle/internal/golden"
	"heddle/model/hf"
	"heddle/token"
)

// format is a kind of file that users bring: where it lies, a sound one, and what reads it.
type format struct {
	name  string // of the file
	sound []byte
	read  func(dir string) error
}

func formats(t *testing.T) []format {
	t.Helper()
	dir := golden.Dir(t, "llama")
	must := func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	tok, err := token.Train(func(yield func([]byte) bool) { yield([]byte("the cat and the dog and the cat")) }, token.TrainOptions{VocabSize: 260})
	if err != nil {
		t.Fatal(err)
	}
	corpus := func(name string) func(string) error {
		return func(dir string) error {
			c, err := data.Open(data.Config{Paths: []string{filepath.Join(dir, name)}, HoldOutEvery: -1, PartBytes: 1 << 16})
			if err != nil {
				return err
			}
			_, err = data.NewLoader(c, tok, data.Pack{Seq: 4, Batch: 1})
			return err
		}
	}
	closed := func(f interface{ Close() error }, err error) error {
		if err == nil {
			f.Close()
		}
		return err
	}
	return []format{
		{"model.safetensors", must(os.ReadFile(filepath.Join(dir, "model.safetensors"))), func(dir string) error {
			m, err := safetensors.OpenModel(dir)
			return closed(m, err)
		}},
		{"model.safetensors.index.json", []byte(`{"metadata": {"total_size": 8}, "weight_map": {"a": "x.safetensors"}}`), func(dir string) error {
			m, err := safetensors.OpenModel(dir)
			return closed(m, err)
		}},
		{"config.json", must(os.ReadFile(filepath.Join(dir, "config.json"))), func(dir string) error {
			_, err := hf.Read(dir)
			return err
		}},
		{"m.gguf", ggufOf("llama"), func(dir string) error {
			m, err := gguf.Open(filepath.Join(dir, "m.gguf"))
			return closed(m, err)
		}},
		{"tokenizer.json", tok.JSON(), func(dir string) error {
			_, err := token.Read(filepath.Join(dir, "tokenizer.json"))
			return err
		}},
		{"a.jsonl", []byte(`{"text": "the cat and the dog"}` + "\n"), corpus("a.jsonl")},
		{"a.parquet", must(os.ReadFile("../data/testdata/text.parquet")), corpus("a.parquet")},
	}
}

// ggufOf is a file of one metadata pair and no tensor.
func ggufOf(arch string) []byte {
	le := func(n uint64, size int) []byte {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(n >> (8 * i))
		}
		return b
	}
	text := func(s string) []byte { return append(le(uint64(len(s)), 8), s...) }
	return bytes.Join([][]byte{[]byte("GGUF"), le(3, 4), le(0, 8), le(1, 8), text("general.architecture"), le(8, 4), text(arch)}, nil)
}

// A file that is cut, is something else, is enormous or claims to be is refused with an error that names it, before memory is
// taken: less than 4 MiB in all, whatever the file claims.
func TestHostileFilesAreRefusedBeforeMemoryIsTaken(t *testing.T) {
	disguises := map[string][]byte{
		"empty":       {},
		"LFS pointer": []byte("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 538090408\n"),
		"web page":    []byte("<!DOCTYPE html>\n<html><head><title>404</title></head><body>not here</body></html>\n"),
		"zip":         append([]byte("PK\x03\x04\x14\x00\x00\x00\x08\x00"), bytes.Repeat([]byte{0xa5}, 300)...),
		"gzip":        append([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"), bytes.Repeat([]byte{0xa5}, 300)...),
		"2^64-1":      bytes.Repeat([]byte{0xff}, 64),
		"100000001":   append([]byte{0x01, 0xe1, 0xf5, 0x05, 0, 0, 0, 0}, "{}"...),
		"brackets":    bytes.Repeat([]byte("["), 100_000),
		"UTF-16":      []byte("\xff\xfe{\x00}\x00"),
	}
	for _, f := range formats(t) {
		if f.name != "model.safetensors.index.json" { // its shard is not there
			if err := f.try(t, f.sound, 0); err != nil {
				t.Fatalf("%s: the sound file: %v", f.name, err)
			}
		}
		for what, content := range disguises {
			f.refuses(t, what, content, 0)
		}
		for n := 1; n < len(f.sound); n += max(1, len(f.sound)/7) {
			if f.name != "a.jsonl" || n < len(f.sound)-1 {
				f.refuses(t, fmt.Sprintf("cut after %d of %d bytes", n, len(f.sound)), f.sound[:n], 0)
			}
		}
		f.refuses(t, "3 GB of zeros", nil, 3<<30)
	}
}

// try writes content, made longer with a hole to size, and reads it.
func (f *format) try(t *testing.T, content []byte, size int64) error {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, f.name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	if size > 0 {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
	}
	return f.read(dir)
}

func (f *format) refuses(t *testing.T, what string, content []byte, size int64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := f.try(t, content, size)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), f.name) {
		t.Errorf("%s, %s: got %v, want an error that names the file", f.name, what, err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("%s, %s: allocated %d bytes: %v", f.name, what, n, err)
	}
}

// A folder whose weights lie is refused as a whole too: what opens models goes through the same readers.
func TestAModelOfHostileFilesIsRefused(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"config.json": `{"model_type": "llama"}`, "model.safetensors": "version https://git-lfs.github.com/spec/v1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pretrained.Open(dir); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("got %v", err)
	}
}

// A GGUF file brings its chat template and the tokens it names.
func TestAGGUFFileBringsItsChatTemplate(t *testing.T) {
	c := Default()
	c.Init = golden.SmolLM2(t)
	d, err := c.corpus()
	if err != nil || d.Template == nil {
		t.Fatalf("template %v, %v", d.Template, err)
	}
	text, vars, err := chatOf(c.Init)
	if err != nil || !strings.Contains(text, "add_generation_prompt") || vars["eos_token"] != "<|im_end|>" || vars["bos_token"] != "<|im_start|>" {
		t.Errorf("%.40q, %v, %v", text, vars, err)
	}
	if text, _, err := chatOf(golden.Dir(t, "llama")); err != nil || text != "" {
		t.Errorf("a folder: %q, %v", text, err)
	}
}
