package token

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

var rates = flag.String("rates", "", "with -oracle: measure encoding beside Hugging Face's library and write the result to this file")

// rate is what one vocabulary took: the fastest of the rounds, ours and theirs in turn, over the same whole documents.
type rate struct {
	Tokenizer   string    `json:"tokenizer"`
	Bytes       float64   `json:"bytes"`
	Documents   int       `json:"documents"`
	OursMBs     float64   `json:"ours_mb_s"` // with an empty word memory in each round
	LibraryMBs  float64   `json:"library_mb_s"`
	Ratio       float64   `json:"ratio"` // of the fastest rounds
	OursRounds  []float64 `json:"ours_rounds_mb_s"`
	TheirRounds []float64 `json:"library_rounds_mb_s"`
	LetterSec1  float64   `json:"one_letter_1e6_s"` // ours: a million times one letter
	LetterSec10 float64   `json:"one_letter_1e7_s"` // ten million times
	LoadSeconds float64   `json:"load_s"`
}

// TestRates measures; it asserts nothing about time.
func TestRates(t *testing.T) {
	if *rates == "" {
		t.Skip("no measurement asked for: go test -run TestRates -oracle …/node_modules -rates FILE")
	}
	var texts []string
	for _, d := range goSource(t, 1<<20) {
		texts = append(texts, string(d))
	}
	var rows []rate
	for name, path := range realTokenizers(t) {
		r := rate{Tokenizer: name, Documents: len(texts)}
		start := time.Now()
		tok, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		r.LoadSeconds = time.Since(start).Seconds()
		for range 3 {
			tok.free = nil
			start := time.Now()
			for _, x := range texts {
				tok.Encode(nil, []byte(x))
			}
			ours := time.Since(start).Seconds()
			lib := ask(t, []string{path}, slices.Clone(texts), nil)[0]
			r.Bytes = lib.Bytes
			r.OursRounds = append(r.OursRounds, lib.Bytes/ours/1e6)
			r.TheirRounds = append(r.TheirRounds, lib.Bytes/lib.Seconds/1e6)
		}
		r.OursMBs, r.LibraryMBs = slices.Max(r.OursRounds), slices.Max(r.TheirRounds)
		r.Ratio = r.OursMBs / r.LibraryMBs
		r.LetterSec1, r.LetterSec10 = letters(tok, 1e6), letters(tok, 1e7)
		t.Logf("%+v", r)
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b rate) int { return strings.Compare(a.Tokenizer, b.Tokenizer) })
	out, err := json.MarshalIndent(map[string]any{"command": "go test ./token -run TestRates -oracle node_modules -rates FILE", "date": time.Now().UTC().Format(time.RFC3339),
		"library": "tokenizers 0.23.2 (npm)", "go": runtime.Version(), "machine": machine(), "cores": runtime.NumCPU(), "rows": rows}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*rates, append(out, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// letters is the fastest of three encodings of n times one letter, in seconds.
func letters(tok *Tokenizer, n int) float64 {
	text := bytes.Repeat([]byte("a"), n)
	best := time.Hour
	for range 3 {
		start := time.Now()
		tok.Encode(nil, text)
		best = min(best, time.Since(start))
	}
	return best.Seconds()
}

// machine is the processor's name where the system tells it.
func machine() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	_, after, _ := strings.Cut(string(info), "model name")
	line, _, _ := strings.Cut(after, "\n")
	return strings.TrimLeft(line, "\t :") + " " + runtime.GOOS + "/" + runtime.GOARCH
}
