package data

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"heddle/internal/mangle"
)

// readAll opens a file and reads every document of it.
func readAll(path string, size int64, c *Config) error {
	src, err := openSource(path, size, c)
	if err != nil {
		return err
	}
	train, held := src.divide(0)
	for _, s := range append(train, held...) {
		if _, _, err := src.read(s); err != nil {
			return err
		}
	}
	return nil
}

// hostile writes bytes under a name and reads them; an error must be an *Error that names the file.
func hostile(t testing.TB, path string, content []byte) error {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	err := readAll(path, int64(len(content)), &Config{PartBytes: trainBytes})
	if e := (*Error)(nil); err != nil && (!errors.As(err, &e) || e.Path != path) {
		t.Errorf("%T %v, want an *Error that names the file", err, err)
	}
	return err
}

// TestBrokenFilesTakeNoMemory cuts and changes good files. Nothing may panic, and no file of a few kB may make us allocate more than 64 MiB at once:
// measured as what is allocated in all while one of them is read.
func TestBrokenFilesTakeNoMemory(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"text.parquet", "pairs.parquet"} {
		good, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := hostile(t, path, good); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(good); n += 29 {
			if hostile(t, path, good[:n]) == nil {
				t.Errorf("%s cut to %d bytes was read", name, n)
			}
		}
		r := rand.New(rand.NewPCG(1, 1))
		worst := uint64(0)
		for range 300 {
			bad := bytes.Clone(good)
			for range 1 + r.IntN(4) {
				bad[r.IntN(len(bad))] = []byte{0, 0x7f, 0xff, byte(r.UintN(256))}[r.IntN(4)]
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			hostile(t, path, bad)
			runtime.ReadMemStats(&after)
			worst = max(worst, after.TotalAlloc-before.TotalAlloc)
		}
		t.Logf("%s: worst of 300 allocates %d bytes", name, worst)
		if worst > 64<<20 {
			t.Errorf("%s: a broken file of %d bytes made us allocate %d", name, len(good), worst)
		}
	}
}

func TestParquetRefusals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	footer := func(meta ...byte) []byte {
		b := append([]byte("PAR1"), meta...)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(meta)))
		return append(b, "PAR1"...)
	}
	for name, c := range map[string]struct {
		content []byte
		says    string
	}{
		"empty":                  {nil, "too few"},
		"text":                   {[]byte("this is text, not a table at all"), "PAR1"},
		"LFS pointer":            {[]byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"), "PAR1"},
		"footer beyond the file": {append([]byte("PAR1"), 0xff, 0xff, 0, 0, 'P', 'A', 'R', '1'), "footer of 65535"},
		"list of 2^31 columns":   {footer(0x15, 0x02, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07), "claims more"},
		"binary of 2^31 bytes":   {footer(0x68, 0xff, 0xff, 0xff, 0xff, 0x07), "claims more"},
		"nested for ever":        {footer(bytes.Repeat([]byte{0x1c}, 1000)...), "claims more"},
		"unknown type":           {footer(0x1f, 0x00), "claims more"},
	} {
		if err := hostile(t, path, c.content); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

func TestShardRefusals(t *testing.T) {
	dir, _ := texts(t, 5)
	path := filepath.Join(t.TempDir(), "a.tokens")
	if _, err := WriteShard(path, open(t, Config{Paths: []string{dir}, HoldOutEvery: -1}), bytesOnly(t)); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(good); n += 5 {
		if hostile(t, path, good[:n]) == nil {
			t.Fatalf("a shard cut to %d of %d bytes was read", n, len(good))
		}
	}
	le := binary.LittleEndian
	docs := len(good) - shardTrailer
	end := docs - 8
	for name, c := range map[string]struct {
		change func(b []byte)
		says   string
	}{
		"magic":              {func(b []byte) { b[0] = 'H' }, "want \"heddleT1\""},
		"width":              {func(b []byte) { b[8] = 3 }, "ids of 3 bytes"},
		"vocabulary":         {func(b []byte) { le.PutUint32(b[12:], 1<<15+1) }, "32769"},
		"no vocabulary":      {func(b []byte) { le.PutUint32(b[12:], 0) }, "vocabulary of 0"},
		"id ≥ vocab":         {func(b []byte) { le.PutUint16(b[32:], 257) }, "byte 32: id 257"},
		"2^60 documents":     {func(b []byte) { le.PutUint64(b[docs:], 1<<60) }, "claims"},
		"2^63 ids":           {func(b []byte) { le.PutUint64(b[docs+8:], 1<<63) }, "claims"},
		"one document more":  {func(b []byte) { le.PutUint64(b[docs:], 6) }, "make"},
		"ends out of order":  {func(b []byte) { copy(b[end-8:end], b[end:]) }, "ends at id"},
		"end beyond the ids": {func(b []byte) { le.PutUint64(b[end:], 1<<40) }, "ends at id"},
		"end before the ids": {func(b []byte) { le.PutUint64(b[end:], le.Uint64(b[end:])-1) }, "end at id"},
		"bytes behind":       {func(b []byte) {}, "claims"},
	} {
		bad := bytes.Clone(good)
		if c.change(bad); name == "bytes behind" {
			bad = append(bad, 0)
		}
		if err := hostile(t, path, bad); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// fuzzFile reads any bytes as a file of one format.
func fuzzFile(f *testing.F, suffix string, seeds ...[]byte) {
	for _, b := range seeds {
		f.Add(b)
	}
	path := filepath.Join(f.TempDir(), fmt.Sprintf("%d%s", os.Getpid(), suffix))
	f.Fuzz(func(t *testing.T, content []byte) { hostile(t, path, content) })
}

func jsonlSeeds() [][]byte {
	return [][]byte{[]byte(`{"text": "a"}` + "\n" + `{"prompt": "a", "completion": "b"}`), []byte(`{"messages": [{"role": "user", "content": "a"}]}` + "\n")}
}

func FuzzJSONL(f *testing.F) { fuzzFile(f, ".jsonl", jsonlSeeds()...) }

func parquetSeeds(t testing.TB) (seeds [][]byte) {
	for _, name := range []string{"text.parquet", "pairs.parquet"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, b)
	}
	return seeds
}

func FuzzParquet(f *testing.F) { fuzzFile(f, ".parquet", parquetSeeds(f)...) }

func shardSeeds() [][]byte {
	return [][]byte{append([]byte("heddleT1\x02\x00\x00\x00\x01\x01\x00\x00"), make([]byte, 48)...), []byte("text\nmore")}
}

func FuzzShard(f *testing.F) { fuzzFile(f, ".tokens", shardSeeds()...) }

// Broken copies of sound files of each format: read or refused by an *Error that names the file, never a panic.
func TestMangledJSONLDoesNotPanic(t *testing.T)   { mangled(t, ".jsonl", jsonlSeeds()) }
func TestMangledParquetDoesNotPanic(t *testing.T) { mangled(t, ".parquet", parquetSeeds(t)) }
func TestMangledShardsDoNotPanic(t *testing.T)    { mangled(t, ".tokens", shardSeeds()) }

func mangled(t *testing.T, suffix string, seeds [][]byte) {
	path := filepath.Join(t.TempDir(), "a"+suffix)
	mangle.Slow(t, seeds, func(in []byte) { hostile(t, path, in) })
}
