package token

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// small is a tokenizer trained on a text with every kind of word.
func small(t testing.TB, split Split) *Tokenizer {
	t.Helper()
	text := "func main() {\n\tfmt.Println(\"hello, wörld 世界\", 12345)\n\t// it's we'll I'M\n}\r\n\n   aaaaaaaaaaaaaaaa  bbbb abababab <|endoftext|>\n"
	tok, err := Train(seq(text, text, "the theme of the thesis", "\xff\xfe\x80\x80"), TrainOptions{VocabSize: 400, Split: split, MinCount: 1})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// bpeByDefinition merges the pair of lowest rank, leftmost first, until none is left.
func bpeByDefinition(t *Tokenizer, w []byte) []int32 {
	var ids []int32
	for _, c := range w {
		ids = append(ids, t.bytes[c])
	}
	for {
		best, at := len(t.merges), -1
		for i := 1; i < len(ids); i++ {
			rank := slices.IndexFunc(t.merges, func(m merge) bool { return m.left == ids[i-1] && m.right == ids[i] })
			if rank >= 0 && rank < best {
				best, at = rank, i
			}
		}
		if at < 0 {
			return ids
		}
		ids[at-1] = t.merges[best].id
		ids = slices.Delete(ids, at, at+1)
	}
}

// TestMergingIsTheDefinition compares the short loop and the queue with the rule itself, over words of every length around longWord.
func TestMergingIsTheDefinition(t *testing.T) {
	tok := small(t, Qwen2)
	s := newScratch()
	r := rand.New(rand.NewPCG(7, 7))
	for i := range 2000 {
		w := make([]byte, 1+r.IntN(3*longWord))
		alphabet := []string{"ab", "a", "the mso", "\n\t }", "世界ö"}[i%5]
		for j := range w {
			w[j] = alphabet[r.IntN(len(alphabet))]
		}
		want := bpeByDefinition(tok, w)
		for name, got := range map[string][]int32{
			"merged": s.merged(tok, nil, w), "queue": s.mergeLong(tok, nil, w),
			"remembered": append(s.word(tok, nil, w)[:0:0], s.word(tok, nil, w)...),
		} {
			if !slices.Equal(got, want) {
				t.Fatalf("%s of %q: %v, want %v", name, w, got, want)
			}
		}
	}
}

func TestEveryByteStringComesBack(t *testing.T) {
	for split := range Split(3) {
		tok := small(t, split)
		r := rand.New(rand.NewPCG(uint64(split), 3))
		for range 3000 {
			text := make([]byte, r.IntN(100))
			for i := range text {
				if text[i] = byte(r.UintN(256)); r.IntN(3) > 0 {
					text[i] = " \n\r\tab'sS1世é<|endoftext|>"[r.IntN(26)]
				}
			}
			for _, ids := range [][]int32{tok.Encode(nil, text), tok.EncodeText(nil, text)} {
				if back, err := tok.Decode(nil, ids); err != nil || !bytes.Equal(back, text) {
					t.Fatalf("split %d: %q came back as %q (%v)", split, text, back, err)
				}
			}
		}
	}
}

func TestOnlyEncodeSeesSpecialTokens(t *testing.T) {
	tok := small(t, GPT2)
	text := []byte("a<|endoftext|>b<|endoftext|><|endoftext")
	sep, ok := tok.Separator()
	if !ok || int(sep) != tok.VocabSize()-1 {
		t.Fatalf("separator %d %t, want the last id", sep, ok)
	}
	count := func(ids []int32) (n int) {
		for _, id := range ids {
			if id == sep {
				n++
			}
		}
		return n
	}
	if n := count(tok.Encode(nil, text)); n != 2 {
		t.Errorf("Encode found %d separators, want 2", n)
	}
	if n := count(tok.EncodeText(nil, text)); n != 0 {
		t.Errorf("EncodeText found %d separators, want 0", n)
	}
}

func TestLongestSpecialWins(t *testing.T) {
	f := newFinder([]Special{{ID: 1, Content: "<a"}, {ID: 2, Content: "<a>"}, {ID: 3, Content: "<b"}})
	if at, size, id := f.next([]byte("x<<a>")); at != 2 || size != 3 || id != 2 {
		t.Errorf("found %d at %d, %d bytes; want the longest, <a>", id, at, size)
	}
	f = newFinder([]Special{{ID: 1, Content: "<a"}, {ID: 4, Content: "!"}})
	if at, size, id := f.next([]byte("<!<a")); at != 1 || size != 1 || id != 4 {
		t.Errorf("found %d at %d, %d bytes; want !", id, at, size)
	}
}

func TestDecodeRefusesUnknownIDs(t *testing.T) {
	tok := small(t, GPT2)
	for _, id := range []int32{-1, int32(tok.VocabSize()), 1 << 30} {
		if _, err := tok.Decode(nil, []int32{0, id}); err == nil {
			t.Errorf("id %d was decoded", id)
		}
	}
}

func TestManyGoroutinesMayEncode(t *testing.T) {
	tok := small(t, Qwen2)
	text := bytes.Repeat([]byte("func main() { theme := \"世界\" }\n"), 50)
	want := tok.EncodeText(nil, text)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if !slices.Equal(tok.EncodeText(nil, text), want) {
					t.Error("a concurrent encoding differs")
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkOneLetter shows that time is linear in the length of a word: ns/byte is the same for all sizes.
func BenchmarkOneLetter(b *testing.B) {
	tok := small(b, Qwen2)
	for _, n := range []int{100_000, 1_000_000, 10_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			text := bytes.Repeat([]byte("a"), n)
			for b.Loop() {
				tok.EncodeText(nil, text)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/byte")
		})
	}
}

// TestLongWordsPushLittle bounds the work on one letter by what can be counted: a queue entry is reused, so there are never more than the pairs of the word.
func TestLongWordsPushLittle(t *testing.T) {
	tok := small(t, Qwen2)
	for _, n := range []int{1000, 50_000} {
		s := newScratch()
		if ids := s.mergeLong(tok, nil, bytes.Repeat([]byte("a"), n)); len(ids) > n/4 || len(s.queue.links) > n || len(s.queue.used)+len(s.queue.mixed) > 0 {
			t.Errorf("%d letters became %d ids with %d queue entries, %d ranks left", n, len(ids), len(s.queue.links), len(s.queue.used))
		}
	}
}
