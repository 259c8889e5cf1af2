package data

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// One byte changed in place, the size as before, is another corpus; the same bytes read again are the same. Names and order matter.
func TestFingerprintIsOfContents(t *testing.T) {
	text := strings.Repeat("warp and weft\n", 50)
	dir := folder(t, "a.txt", text, "b.txt", text)
	print := func() string {
		t.Helper()
		f, err := open(t, Config{Paths: []string{dir}}).fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first := print()
	if print() != first {
		t.Error("the same files have another fingerprint")
	}
	seen := map[string]bool{first: true}
	for _, at := range []int{0, len(text) / 2, len(text) - 1} {
		changed := []byte(text)
		changed[at] ^= 1
		if err := os.WriteFile(filepath.Join(dir, "b.txt"), changed, 0o644); err != nil {
			t.Fatal(err)
		}
		if f := print(); seen[f] {
			t.Errorf("byte %d changed: the same fingerprint", at)
		} else {
			seen[f] = true
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "b.txt"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if print() != first {
		t.Error("changed back, it has another fingerprint")
	}
}

// A file of a corpus too large to be summed in full is summed at its ends and between.
func TestSampledSumsSeeEndsAndBlocks(t *testing.T) {
	size := int64(3 * sampleCount * sampleBytes)
	path := filepath.Join(t.TempDir(), "big.txt")
	text := []byte(strings.Repeat("x", int(size)))
	at := func(change int64) string {
		if change >= 0 {
			text[change] = 'y'
			defer func() { text[change] = 'x' }()
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := sum(path, size, false)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	none := at(-1)
	for _, change := range []int64{0, sampleBytes - 1, size - 1, size - sampleBytes, (size - sampleBytes) * 7 / (sampleCount - 1)} {
		if at(change) == none {
			t.Errorf("byte %d changed is not seen", change)
		}
	}
	if at(sampleBytes+5) != none {
		t.Error("a byte between the blocks is read")
	}
	os.WriteFile(path, text[:size-1], 0o644)
	if _, err := sum(path, size, false); err == nil || !strings.Contains(err.Error(), "changes while") {
		t.Errorf("a file cut short: %v", err)
	}
}
