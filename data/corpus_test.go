package data

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/token"
)

// text returns the bytes of a document, prompts included.
func (c *Corpus) text(d doc) (text []byte, err error) {
	docs, _, err := c.files[d.file].read(d.span)
	for _, d := range docs {
		for _, p := range d.pieces {
			text = append(text, p.text...)
		}
	}
	return text, err
}

func TestOpenRefuses(t *testing.T) {
	dir := folder(t, "empty.txt", "", "bin.dat", "\x00\x01\x02\x00", "latin.txt", strings.Repeat("\xe4\xf6\xfc ", 50), "ok.txt", "text", "e/empty.go", "", "e/.git/x", "y")
	for name, c := range map[string]struct {
		path, suffix, says string
	}{
		"absent file":     {"absent.txt", "", "no such file"},
		"absent pattern":  {"*.zig", "", "matches nothing"},
		"bad pattern":     {"[", "", "syntax error"},
		"empty file":      {"empty.txt", "", "empty"},
		"binary file":     {"bin.dat", "", "NUL at byte 0"},
		"not UTF-8":       {"latin.txt", "", "not UTF-8"},
		"nothing in it":   {"e", ".go", "no text"},
		"no such suffix":  {".", ".zig", ".zig"},
		"pattern, empty":  {"empty.*", "", "1 dropped: empty"},
		"folder, nothing": {"e", "", "hidden"},
	} {
		_, err := Open(Config{Paths: []string{filepath.Join(dir, c.path)}, Suffix: c.suffix})
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want an *Error with %q", name, err, c.says)
		}
	}
	if _, err := Open(Config{}); err == nil {
		t.Error("a corpus without paths was opened")
	}
}

func TestTooSmallNamesBothSizes(t *testing.T) {
	dir := folder(t, "a.txt", "twelve bytes")
	c := open(t, Config{Paths: []string{filepath.Join(dir, "a.txt")}, HoldOutEvery: -1})
	_, err := NewLoader(c, bytesOnly(t), Pack{Seq: 256, Batch: 8})
	var e *Error
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "8 sequences of 256 = 2048 tokens") || !strings.Contains(err.Error(), "13 tokens") {
		t.Errorf("got %v; want an *Error that names 13 and 2048 tokens", err)
	}
}

func TestBinaryFilesOfAFolderAreCounted(t *testing.T) {
	dir := folder(t, "a.txt", strings.Repeat("text\n", 100), "b.dat", "\x00bin", "c.txt", strings.Repeat("more\n", 100), "none.txt", "")
	c := open(t, Config{Paths: []string{dir}, HoldOutEvery: -1})
	l := loader(t, c, bytesOnly(t), Pack{Seq: 8, Batch: 2, Epochs: 2})
	drain(t, l)
	s := c.Summary()
	if s.Files != 3 || len(s.Dropped) != 2 || s.Dropped[0].Why != "empty" || s.Dropped[1].Why != "binary" || s.Dropped[1].Count != 1 || s.Dropped[1].Bytes != 4 {
		t.Errorf("summary %+v", s)
	}
	if l.Packed().Documents != 4 {
		t.Errorf("%d documents in two epochs of two", l.Packed().Documents)
	}
}

func TestOnlyBinaryIsAnError(t *testing.T) {
	dir := folder(t, "a.dat", "\x00\x01", "b.dat", "\x00\x02")
	c := open(t, Config{Paths: []string{dir}, HoldOutEvery: -1})
	if _, err := NewLoader(c, bytesOnly(t), Pack{Seq: 1, Batch: 1}); err == nil || !strings.Contains(err.Error(), "zero samples") {
		t.Errorf("got %v, want zero samples", err)
	}
}

func TestLinksAreFollowedOnce(t *testing.T) {
	dir := folder(t, "real/a.go", "package a\n", "real/b.go", "package b\n")
	for _, l := range [][2]string{{"real", "root"}, {".", "real/loop"}, {"real/a.go", "again.go"}} {
		if err := os.Symlink(filepath.Join(dir, l[0]), filepath.Join(dir, filepath.FromSlash(l[1]))); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	c := open(t, Config{Paths: []string{filepath.Join(dir, "root")}, Suffix: ".go"})
	if s := c.Summary(); s.Files != 2 {
		t.Errorf("a linked folder gave %d files, want 2: %v", s.Files, s)
	}
}

// TestPartsAreTheFile cuts a file into documents and puts it together again, with lines, without lines, and with characters that a cut could split.
func TestPartsAreTheFile(t *testing.T) {
	for name, unit := range map[string]string{"lines": "a line of text\n", "no lines": "x", "wide": "世", "odd": "ab\xffc世, a longer line of text for the one bad byte\n"} {
		text := strings.Repeat(unit, 5*heldBytes/2/len(unit))
		dir := folder(t, "big.txt", text)
		c := open(t, Config{Paths: []string{filepath.Join(dir, "big.txt")}, HoldOutEvery: 10})
		if len(c.train) < 2 || len(c.held) != 1 {
			t.Fatalf("%s: %d documents, %d held out; want several and 1", name, len(c.train), len(c.held))
		}
		var whole []byte
		for _, d := range append(slices.Clone(c.train), c.held...) {
			part, err := c.text(d)
			if err != nil {
				t.Fatal(err)
			}
			if len(part) == 0 || name == "wide" && len(part)%3 != 0 {
				t.Errorf("%s: a part of %d bytes", name, len(part))
			}
			whole = append(whole, part...)
		}
		if string(whole) != text {
			t.Errorf("%s: the parts are not the file", name)
		}
	}
}

func TestHeldOutNeverTrained(t *testing.T) {
	for _, n := range []int{1, 2, 5, 49, 50, 400} {
		dir, all := texts(t, n)
		c := open(t, Config{Paths: []string{dir}})
		trained, held := int64(0), int64(0)
		for i, docs := range [][]doc{c.train, c.held} {
			for _, d := range docs {
				text, err := c.text(d)
				if err != nil {
					t.Fatal(err)
				}
				if n > 2 && !all[string(text)] {
					t.Errorf("%d files: a document that is not a whole file", n)
				}
				delete(all, string(text))
				if i == 0 {
					trained += int64(len(text))
				} else {
					held += int64(len(text))
				}
			}
		}
		if s := c.Summary(); trained+held != s.Bytes || n > 2 && len(all) != 0 || trained == 0 {
			t.Errorf("%d files: %d bytes to train on, %d held out, %d listed", n, trained, held, s.Bytes)
		}
	}
}

func TestChangedFileIsAnError(t *testing.T) {
	dir := folder(t, "a.txt", strings.Repeat("text\n", 100))
	c := open(t, Config{Paths: []string{dir}, HoldOutEvery: -1})
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("short"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := NewLoader(c, bytesOnly(t), Pack{Seq: 1, Batch: 1}); err == nil || !strings.Contains(err.Error(), "changes while") {
		t.Errorf("got %v", err)
	}
}

// TestEvaluationPredictsEveryByteOnce decodes the labels: row after row they are the held-out files, and the input before each label is the token before it.
func TestEvaluationPredictsEveryByteOnce(t *testing.T) {
	dir, _ := texts(t, 120)
	c := open(t, Config{Paths: []string{dir}})
	tok, err := token.Train(func(yield func([]byte) bool) { yield([]byte("document line line document")) }, token.TrainOptions{VocabSize: 270})
	if err != nil {
		t.Fatal(err)
	}
	sep, _ := tok.Separator()
	for _, p := range []EvalPack{{Seq: 16, Batch: 4}, {Seq: 1, Batch: 1}, {Seq: 999, Batch: 2}, {Seq: 16, Batch: 4, Bytes: 100}} {
		e, err := NewEval(c, tok, p)
		if err != nil {
			t.Fatal(err)
		}
		var got, want []byte
		docs, last := 0, int32(-1)
		for b := range e.Batches() {
			for i, label := range b.Labels {
				if label == Ignore {
					continue
				}
				if b.IDs[i] == sep {
					docs++
				} else if last != b.IDs[i] {
					t.Fatalf("%+v: label %d is predicted from %d, want %d", p, label, b.IDs[i], last)
				}
				last = label
				got, _ = tok.Decode(got, []int32{label})
			}
		}
		for _, d := range c.held[:e.Documents] {
			text, _ := c.text(d)
			want = append(want, text...)
		}
		if string(got) != string(want) || int64(len(want)) != e.Bytes || docs != e.Documents {
			t.Errorf("%+v: %d bytes of %d documents predicted, want %d of %d", p, len(got), docs, e.Bytes, e.Documents)
		}
		if p.Bytes > 0 && (e.Bytes < p.Bytes || e.Documents == len(c.held)) {
			t.Errorf("%+v: evaluates %d bytes of %d documents", p, e.Bytes, e.Documents)
		}
	}
}

// TestStartOnGoSource times what a first run does before its first step: list Go's source tree, learn a vocabulary, fill the first window. It asserts the
// split the main job relies on; the times are only printed.
func TestStartOnGoSource(t *testing.T) {
	root := runtime.GOROOT()
	if _, err := os.Stat(filepath.Join(root, "src", "fmt")); err != nil {
		t.Skip("no Go source tree:", err)
	}
	start := time.Now()
	c := open(t, Config{Paths: []string{root}, Suffix: ".go"})
	listed := time.Since(start)
	start = time.Now()
	size := 0
	tok, err := token.Train(func(yield func([]byte) bool) {
		for text, err := range c.Sample(4<<20, 1) {
			if err != nil {
				t.Fatal(err)
			}
			if size += len(text); !yield(text) {
				return
			}
		}
	}, token.TrainOptions{VocabSize: 2048, Split: token.Qwen2})
	if err != nil {
		t.Fatal(err)
	}
	learned := time.Since(start)
	start = time.Now()
	l := loader(t, c, tok, Pack{Seq: 256, Batch: 8, Seed: 1})
	e, err := NewEval(c, tok, EvalPack{Seq: 256, Batch: 8, Bytes: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	s, p := c.Summary(), l.Packed()
	t.Logf("listed %v, learned %v from %d bytes, first window and evaluation %v", listed, learned, size, time.Since(start))
	t.Logf("%v%v%.3f bytes/token; evaluation %d documents, %d bytes, %d tokens, %d rows", s, p, float64(p.Bytes)/float64(p.Tokens), e.Documents, e.Bytes, e.Tokens, e.Rows)
	if s.HeldOutBytes < 256<<10 || e.Bytes < 256<<10 || s.HeldOutFiles*40 > s.Files || s.HeldOutFiles*60 < s.Files {
		t.Errorf("held out %d of %d files, %d bytes; evaluated %d", s.HeldOutFiles, s.Files, s.HeldOutBytes, e.Bytes)
	}
}
