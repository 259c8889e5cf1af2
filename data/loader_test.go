package data

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heddle/token"
)

// folder writes files, given as name and content, and returns their folder.
func folder(t testing.TB, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		p := filepath.Join(dir, filepath.FromSlash(files[i]))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// bytesOnly is a tokenizer without merges: every byte is a token, 256 is the separator.
func bytesOnly(t testing.TB) *token.Tokenizer {
	t.Helper()
	tok, err := token.Train(func(func([]byte) bool) {}, token.TrainOptions{VocabSize: 257})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// texts is n documents that share no line, of very different lengths.
func texts(t testing.TB, n int) (dir string, all map[string]bool) {
	t.Helper()
	all = map[string]bool{}
	var files []string
	for i := range n {
		text := strings.Repeat(fmt.Sprintf("document %d line\n", i), 1+i*i%37)
		files = append(files, fmt.Sprintf("d%d/f%d.txt", i%3, i), text)
		all[text] = true
	}
	return folder(t, files...), all
}

func open(t testing.TB, c Config) *Corpus {
	t.Helper()
	x, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func loader(t testing.TB, c *Corpus, tok *token.Tokenizer, p Pack) *Loader {
	t.Helper()
	l, err := NewLoader(c, tok, p)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// drain returns every batch to the end.
func drain(t testing.TB, l *Loader) (all []*Batch) {
	t.Helper()
	for {
		b, err := l.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
}

// TestPackingLosesNothing puts the samples of two epochs back in order and reads the documents out of them: every one twice, whole, each followed by a
// separator. Samples are put in order by their overlap: the last label of one is the first input of the next, and no two places of this text look alike
// for long; so the comparison is of the multiset of (input, label) pairs with a stream made here, which a lost, doubled or shifted token changes.
func TestPackingLosesNothing(t *testing.T) {
	dir, all := texts(t, 40)
	tok := bytesOnly(t)
	for _, p := range []Pack{
		{Seq: 7, Batch: 3, Epochs: 1, Window: 21}, {Seq: 64, Batch: 8, Epochs: 2, Window: 1 << 10}, {Seq: 50, Batch: 1, Epochs: 3}, {Seq: 1, Batch: 2, Epochs: 1, Window: 1},
	} {
		p.Seed = 11
		c := open(t, Config{Paths: []string{dir}, HoldOutEvery: -1})
		l := loader(t, c, tok, p)
		got := map[[2]int32]int{}
		labels := 0
		for _, b := range drain(t, l) {
			for i, label := range b.Labels {
				if (label != Ignore) != (b.Mask[i] == 1) {
					t.Fatal("mask and labels disagree")
				}
				if label != Ignore {
					got[[2]int32{b.IDs[i], label}]++
					labels++
				}
			}
		}
		want := map[[2]int32]int{}
		last := int32(-1)
		push := func(id int32) {
			if last >= 0 {
				want[[2]int32{last, id}]++
			}
			last = id
		}
		tokens := 0
		for range p.Epochs {
			for text := range all {
				push(256)
				for _, id := range tok.EncodeText(nil, []byte(text)) {
					push(id)
				}
				tokens += len(text) + 1
			}
		}
		push(256)
		if labels != tokens || len(got) != len(want) {
			t.Fatalf("%+v: %d labels of %d kinds, want %d of %d", p, labels, len(got), tokens, len(want))
		}
		for k, n := range want {
			if got[k] != n {
				t.Fatalf("%+v: %v is predicted %d times, want %d", p, k, got[k], n)
			}
		}
		if s := l.Packed(); s.Labels != int64(tokens) || s.Tokens != int64(tokens) || s.Samples*int64(p.Seq) < s.Labels || s.Documents != 40*p.Epochs {
			t.Errorf("%+v: summary %+v, want %d tokens and labels", p, s, tokens)
		}
	}
}

// TestEveryEpochHoldsEveryDocument checks the order of the stream itself, before samples are shuffled: with one window an epoch is one stretch.
func TestEveryEpochHoldsEveryDocument(t *testing.T) {
	dir, all := texts(t, 30)
	tok := bytesOnly(t)
	c := open(t, Config{Paths: []string{dir}, HoldOutEvery: -1})
	l := loader(t, c, tok, Pack{Seq: 16, Batch: 2, Epochs: 2, Seed: 5, Window: 160})
	var tokens []int32
	for p, first := (position{}), true; ; {
		w := window{}
		next, err := l.stream.window(&w, p, l.samples, 16)
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if !first {
			w.tokens = w.tokens[1:]
		}
		tokens, p, first = append(tokens, w.tokens...), next, false
	}
	var docs []string
	for rest := tokens[1:]; len(rest) > 0; {
		i := slices.Index(rest, 256)
		text, _ := tok.Decode(nil, rest[:i])
		docs, rest = append(docs, string(text)), rest[i+1:]
	}
	if len(docs) != 60 {
		t.Fatalf("%d documents in two epochs of 30", len(docs))
	}
	for epoch := range 2 {
		seen := map[string]bool{}
		for _, d := range docs[epoch*30:][:30] {
			seen[d] = true
			if !all[d] {
				t.Fatalf("the stream holds %q, which is no document", d)
			}
		}
		if len(seen) != 30 {
			t.Errorf("epoch %d holds %d different documents, want 30", epoch, len(seen))
		}
	}
	if slices.Equal(docs[:30], docs[30:]) {
		t.Error("the second epoch has the order of the first")
	}
}

func TestResumeIsExact(t *testing.T) {
	dir, _ := texts(t, 40)
	var lines strings.Builder
	for i := range 60 {
		fmt.Fprintf(&lines, `{"prompt": "question %d", "completion": "%s"}`+"\n"+`{"messages": [{"role": "user", "content": "%d"}, {"role": "assistant", "content": "yes"}]}`+"\n",
			i, strings.Repeat("answer ", i%4), i)
	}
	if err := os.WriteFile(filepath.Join(dir, "records.jsonl"), []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	tok := bytesOnly(t)
	cfg := Config{Paths: []string{dir}, HoldOutEvery: -1, Template: plainTemplate(t, "plain.jinja")}
	c := open(t, cfg)
	for _, p := range []Pack{{Seq: 64, Batch: 5, Epochs: 2, Seed: 3, Window: 1280, Segments: true}, {Seq: 99, Batch: 3, Epochs: 2, Seed: 9}} {
		whole := loader(t, c, tok, p)
		var cursors [][]byte
		var batches []*Batch
		for {
			cur, err := json.Marshal(whole.Cursor())
			if err != nil {
				t.Fatal(err)
			}
			b, err := whole.Next()
			if err == io.EOF {
				break
			}
			cursors, batches = append(cursors, cur), append(batches, b)
		}
		if len(batches) < 10 {
			t.Fatalf("%d batches are too few to show anything", len(batches))
		}
		for i, text := range cursors {
			if i%4 != 0 && i != len(cursors)-1 {
				continue
			}
			var cur Cursor
			if err := json.Unmarshal(text, &cur); err != nil {
				t.Fatal(err)
			}
			l := loader(t, open(t, cfg), tok, p)
			if err := l.Seek(cur); err != nil {
				t.Fatal(err)
			}
			for j, b := range drain(t, l) {
				if want := batches[i+j]; !slices.Equal(b.IDs, want.IDs) || !slices.Equal(b.Labels, want.Labels) || !slices.Equal(b.Segments, want.Segments) {
					t.Fatalf("resumed at batch %d, batch %d differs", i, i+j)
				}
			}
			if l.Packed() != whole.Packed() {
				t.Fatalf("resumed at batch %d the summary is %+v, want %+v", i, l.Packed(), whole.Packed())
			}
		}
	}
}

func TestResumeRefusesAnotherRun(t *testing.T) {
	dir, _ := texts(t, 40)
	other, _ := texts(t, 41)
	tok := bytesOnly(t)
	more, err := token.Train(func(yield func([]byte) bool) { yield([]byte("aaaaaa")) }, token.TrainOptions{VocabSize: 258})
	if err != nil {
		t.Fatal(err)
	}
	p := Pack{Seq: 32, Batch: 4, Seed: 3}
	cur := loader(t, open(t, Config{Paths: []string{dir}}), tok, p).Cursor()
	for name, l := range map[string]*Loader{
		"corpus":    loader(t, open(t, Config{Paths: []string{other}}), tok, p),
		"tokenizer": loader(t, open(t, Config{Paths: []string{dir}}), more, p),
		"seq":       loader(t, open(t, Config{Paths: []string{dir}}), tok, Pack{Seq: 16, Batch: 4, Seed: 3}),
		"batch":     loader(t, open(t, Config{Paths: []string{dir}}), tok, Pack{Seq: 32, Batch: 8, Seed: 3}),
		"seed":      loader(t, open(t, Config{Paths: []string{dir}}), tok, Pack{Seq: 32, Batch: 4, Seed: 4}),
		"window":    loader(t, open(t, Config{Paths: []string{dir}}), tok, Pack{Seq: 32, Batch: 4, Seed: 3, Window: 4096}),
	} {
		if err := l.Seek(cur); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("a cursor with another %s: %v", name, err)
		}
	}
	l := loader(t, open(t, Config{Paths: []string{dir}}), tok, p)
	for _, bad := range []func(*Cursor){
		func(c *Cursor) { c.Doc = -1 }, func(c *Cursor) { c.Doc = 1000 }, func(c *Cursor) { c.Given = 1 << 40 }, func(c *Cursor) { c.Token = -5 }, func(c *Cursor) { c.Epoch = -1 },
	} {
		x := cur
		bad(&x)
		if err := l.Seek(x); err == nil {
			t.Errorf("position %+v was accepted", x)
		}
	}
}

func TestShardsAreTheBatch(t *testing.T) {
	dir, _ := texts(t, 20)
	l := loader(t, open(t, Config{Paths: []string{dir}}), bytesOnly(t), Pack{Seq: 8, Batch: 6, Segments: true})
	b, err := l.Next()
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 2, 3, 6} {
		var ids, labels, segments []int32
		tokens := 0
		for rank := range size {
			x := b.Shard(rank, size)
			ids, labels, segments = append(ids, x.IDs...), append(labels, x.Labels...), append(segments, x.Segments...)
			tokens += x.Tokens
		}
		if !slices.Equal(ids, b.IDs) || !slices.Equal(labels, b.Labels) || !slices.Equal(segments, b.Segments) || tokens != b.Tokens {
			t.Errorf("the shards of %d ranks are not the batch", size)
		}
	}
}

func TestSegmentsFollowSeparators(t *testing.T) {
	dir, _ := texts(t, 20)
	l := loader(t, open(t, Config{Paths: []string{dir}}), bytesOnly(t), Pack{Seq: 40, Batch: 4, Segments: true, Epochs: 1})
	several := false
	for _, b := range drain(t, l) {
		for row := range b.B {
			want := int32(0)
			for s := range b.S {
				if i := row*b.S + s; b.Labels[i] != Ignore || s == 0 {
					if s > 0 && b.IDs[i] == 256 {
						want++
						several = true
					}
					if b.Segments[i] != want {
						t.Fatalf("row %d position %d: segment %d, want %d", row, s, b.Segments[i], want)
					}
				}
			}
		}
	}
	if !several {
		t.Error("no row held two documents: the test shows nothing")
	}
}
