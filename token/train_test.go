package token

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

func seq(docs ...string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, d := range docs {
			if !yield([]byte(d)) {
				return
			}
		}
	}
}

// goSource returns about n bytes of Go's standard library, file by file.
func goSource(t testing.TB, n int) [][]byte {
	t.Helper()
	var docs [][]byte
	root := filepath.Join(runtime.GOROOT(), "src")
	filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || n <= 0 || d.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		if b, err := os.ReadFile(path); err == nil {
			docs = append(docs, b)
			n -= len(b)
		}
		return nil
	})
	if n > 0 {
		t.Skipf("no Go source tree at %s: %d bytes short", root, n)
	}
	return docs
}

// slowTrain is the definition: count all pairs afresh, merge the most frequent everywhere, repeat.
func slowTrain(docs []string, split Split, merges, minCount int) []merge {
	var words [][]int32
	order := byteOrder()
	for _, d := range docs {
		for text := []byte(d); len(text) > 0; {
			n := split.next(text)
			var w []int32
			for _, c := range text[:n] {
				w = append(w, order[c])
			}
			words = append(words, w)
			text = text[n:]
		}
	}
	var out []merge
	for len(out) < merges {
		counts := map[uint64]int{}
		for _, w := range words {
			for i := 1; i < len(w); i++ {
				counts[pairKey(w[i-1], w[i])]++
			}
		}
		best, most := uint64(0), 0
		for k, n := range counts {
			if n > most || n == most && k < best {
				best, most = k, n
			}
		}
		if most < minCount {
			break
		}
		m := merge{int32(best >> 32), int32(uint32(best)), int32(256 + len(out))}
		out = append(out, m)
		for wi, w := range words {
			var r []int32
			for i := 0; i < len(w); i++ {
				if i+1 < len(w) && w[i] == m.left && w[i+1] == m.right {
					r = append(r, m.id)
					i++
				} else {
					r = append(r, w[i])
				}
			}
			words[wi] = r
		}
	}
	return out
}

func TestTrainIsTheDefinition(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		var docs []string
		for range 1 + r.IntN(6) {
			d := make([]byte, r.IntN(300))
			for i := range d {
				d[i] = "aaabbc d\n"[r.IntN(9)]
			}
			docs = append(docs, string(d))
		}
		split := Split(seed % 3)
		tok, err := Train(seq(docs...), TrainOptions{VocabSize: 300, Split: split})
		if err != nil {
			t.Fatal(err)
		}
		if want := slowTrain(docs, split, 300-257, 2); !slices.Equal(tok.merges, want) {
			t.Fatalf("seed %d, split %d: merges %v, want %v", seed, split, tok.merges, want)
		}
	}
}

func TestTrainRefuses(t *testing.T) {
	for _, size := range []int{-1, 0, 256, maxVocab + 1} {
		if _, err := Train(seq("abc"), TrainOptions{VocabSize: size}); err == nil {
			t.Errorf("vocabulary of %d was trained", size)
		}
	}
	tok, err := Train(seq("abc"), TrainOptions{VocabSize: 2048})
	if err != nil || tok.VocabSize() != 257 {
		t.Errorf("text without a repeated pair gave a vocabulary of %d (%v), want 257", tok.VocabSize(), err)
	}
}

func TestTrainTwiceGivesTheSameFile(t *testing.T) {
	docs := goSource(t, 200<<10)
	var files [2][]byte
	for i := range files {
		tok, err := Train(slices.Values(docs), TrainOptions{VocabSize: 600, Split: Qwen2})
		if err != nil {
			t.Fatal(err)
		}
		files[i] = tok.JSON()
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("two trainings on the same documents differ")
	}
}

func BenchmarkTrain(b *testing.B) {
	docs := goSource(b, 8<<20)
	size := 0
	for _, d := range docs {
		size += len(d)
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		tok, err := Train(slices.Values(docs), TrainOptions{VocabSize: 2048, Split: Qwen2})
		if err != nil || tok.VocabSize() != 2048 {
			b.Fatal(tok.VocabSize(), err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	docs := goSource(b, 8<<20)
	for _, split := range []Split{GPT2, Qwen2} {
		tok, err := Train(slices.Values(docs), TrainOptions{VocabSize: 2048, Split: split})
		if err != nil {
			b.Fatal(err)
		}
		for _, cold := range []bool{true, false} {
			b.Run(fmt.Sprintf("split=%d/cold=%t", split, cold), func(b *testing.B) {
				size, ids := 0, 0
				var buf []int32
				for b.Loop() {
					if cold {
						tok.free = nil
					}
					for _, d := range docs {
						buf = tok.EncodeText(buf[:0], d)
						size, ids = size+len(d), ids+len(buf)
					}
				}
				b.SetBytes(int64(size / b.N))
				b.ReportMetric(float64(size)/float64(ids), "bytes/token")
			})
		}
	}
}
