package gguf

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"heddle/internal/mangle"
)

// builder makes files, sound or not.
type builder struct {
	magic   string
	version uint32
	tensors uint64
	pairs   uint64
	body    []byte // pairs and tensor list
	data    []byte
}

func (b builder) bytes() []byte {
	out := append([]byte(nil), b.magic...)
	out = le.AppendUint32(out, b.version)
	out = le.AppendUint64(out, b.tensors)
	out = append(le.AppendUint64(out, b.pairs), b.body...)
	for b.tensors > 0 && len(out)%32 != 0 {
		out = append(out, 0)
	}
	return append(out, b.data...)
}

func text(s string) []byte { return append(le.AppendUint64(nil, uint64(len(s))), s...) }

// number is a metadata pair whose value is a uint32.
func number(key string, v uint32) []byte {
	return le.AppendUint32(le.AppendUint32(text(key), uint32(kindUint32)), v)
}

// entry is an entry of the tensor list; dims as in the file, innermost first.
func entry(name string, typ Type, offset uint64, dims ...uint64) []byte {
	out := le.AppendUint32(text(name), uint32(len(dims)))
	for _, d := range dims {
		out = le.AppendUint64(out, d)
	}
	return le.AppendUint64(le.AppendUint32(out, uint32(typ)), offset)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// sound is a file with two tensors: 8 floats, then a block of Q4_0.
func sound() builder {
	return builder{magic, 3, 2, 1, join(number("x", 7), entry("a", F32, 0, 4, 2), entry("b", Q4_0, 32, 32, 1)), make([]byte, 32+18)}
}

func openBytes(b []byte) (*File, error) { return NewFile("mem", bytes.NewReader(b), int64(len(b))) }

func TestSoundFileIsRead(t *testing.T) {
	for _, pad := range []int{0, 14} { // the last tensor may be padded to the alignment
		b := sound()
		b.data = append(b.data, make([]byte, pad)...)
		f, err := openBytes(b.bytes())
		if err != nil {
			t.Fatal(err)
		}
		a, err := f.Tensor("a")
		if err != nil || fmt.Sprint(a.Shape) != "[2 4]" {
			t.Errorf("got %v, %v", a.Shape, err)
		}
		if n, err := f.Uint("x"); err != nil || n != 7 {
			t.Errorf("got %d, %v", n, err)
		}
		if _, err := f.Tensor("c"); err == nil {
			t.Error("a tensor that is not there was found")
		}
	}
}

// Each change to the sound file is refused, says what it is about, and costs next to no memory.
func TestMalformedFilesAreRefused(t *testing.T) {
	list := func(entries ...[]byte) func(*builder) {
		return func(b *builder) { b.tensors, b.body = uint64(len(entries)), join(number("x", 7), join(entries...)) }
	}
	meta := func(pairs ...[]byte) func(*builder) {
		return func(b *builder) { b.tensors, b.pairs, b.body, b.data = 0, uint64(len(pairs)), join(pairs...), nil }
	}
	array := func(elem kind, n uint64, rest ...byte) []byte {
		return append(le.AppendUint64(le.AppendUint32(le.AppendUint32(text("k"), uint32(kindArray)), uint32(elem)), n), rest...)
	}
	typed := func(k kind, rest ...byte) []byte { return append(le.AppendUint32(text("k"), uint32(k)), rest...) }
	cases := []struct {
		name   string
		change func(b *builder)
		says   string
	}{
		{"other magic", func(b *builder) { b.magic = "GGML" }, `got "GGML"`},
		{"version 1", func(b *builder) { b.version = 1 }, "version 1"},
		{"version 4", func(b *builder) { b.version = 4 }, "version 4"},
		{"big-endian", func(b *builder) { b.version = 3 << 24 }, "big-endian"},
		{"2^64-1 pairs", func(b *builder) { b.pairs = math.MaxUint64 }, "metadata pairs"},
		{"2^64-1 tensors", func(b *builder) { b.tensors = math.MaxUint64 }, "tensors"},
		{"more pairs than there are", func(b *builder) { b.pairs = 2 }, "byte 64"},
		{"more tensors than there are", func(b *builder) { b.tensors = 3 }, "byte"},
		{"key of 2^63 bytes", meta(le.AppendUint64(nil, 1<<63)), "metadata"},
		{"key longer than allowed", func(b *builder) { meta(text(strings.Repeat("k", 70000)), typed(kindUint8, 1))(b); b.pairs = 1 }, "at most 65536"},
		{"key not UTF-8", meta(number("\xff", 1)), "not UTF-8"},
		{"key twice", meta(number("x", 1), number("x", 2)), "occurs twice"},
		{"unknown value type", meta(typed(13, make([]byte, 9)...)), "value type 13"},
		{"array of arrays", meta(array(kindArray, 1, make([]byte, 16)...)), "value type 9"},
		{"array of unknown type", meta(array(99, 1<<40)), "value type 99"},
		{"array of 2^60 strings", meta(array(kindString, 1<<60)), "1152921504606846976 of at least 8"},
		{"array of 2^62 doubles", meta(array(kindFloat64, 1<<62)), "of at least 8"},
		{"string longer than the file", meta(typed(kindString, le.AppendUint64(nil, 1<<20)...)), "1048576 of at least 1"},
		{"string longer than allowed", meta(typed(kindString, le.AppendUint64(nil, 1<<30)...)), "at most 16777216"},
		{"string not UTF-8", meta(typed(kindString, text("\xff")...)), "not UTF-8"},
		{"boolean 2", meta(typed(kindBool, 2)), "not a boolean"},
		{"truncated in a value", meta(typed(kindFloat64, 1, 2, 3)), "8 of at least 1"},
		{"tensor name twice", list(entry("a", F32, 0, 8), entry("a", Q4_0, 32, 32)), "occurs twice"},
		{"five dimensions", list(entry("a", F32, 0, 8, 1, 1, 1, 1), entry("b", Q4_0, 32, 32)), "5 dimensions"},
		{"dimension 0", list(entry("a", F32, 0, 0), entry("b", Q4_0, 32, 32)), "dimension 0"},
		{"dimension 2^63", list(entry("a", F32, 0, 1<<63), entry("b", Q4_0, 32, 32)), "dimension 9223372036854775808"},
		{"product overflows", list(entry("a", F32, 0, 1<<40, 1<<40), entry("b", Q4_0, 32, 32)), "needs more"},
		{"unsupported type", list(entry("a", 10, 0, 256), entry("b", Q4_0, 32, 32)), "type Q2_K is not supported"},
		{"unknown type", list(entry("a", 1000, 0, 8), entry("b", Q4_0, 32, 32)), "type 1000 is not supported"},
		{"row is no block", list(entry("a", F32, 0, 8), entry("b", Q4_0, 32, 16, 2)), "not made of blocks of 32"},
		{"quantised number", list(entry("a", F32, 0, 8), entry("b", Q4_0, 32)), "not made of blocks of 32"},
		{"offset 2^63", list(entry("a", F32, 1<<63, 8), entry("b", Q4_0, 32, 32)), "offset 9223372036854775808"},
		{"offset past the end", list(entry("a", F32, 0, 8), entry("b", Q4_0, 64, 32)), "needs more"},
		{"overlap", list(entry("a", F32, 0, 8), entry("b", Q4_0, 0, 32)), "overlap"},
		{"wrong alignment", list(entry("a", F32, 0, 4), entry("b", Q4_0, 16, 32)), "wrong alignment"},
		{"hole", list(entry("b", Q4_0, 32, 32)), "hole"},
		{"data short", func(b *builder) { b.data = b.data[:49] }, "needs more"},
		{"data long", func(b *builder) { b.data = append(b.data, make([]byte, 15)...) }, "belong to no tensor"},
		{"alignment 0", func(b *builder) { b.body = join(number(alignmentKey, 0), b.body[len(number("x", 7)):]) }, "power of two"},
		{"alignment 48", func(b *builder) { b.body = join(number(alignmentKey, 48), b.body[len(number("x", 7)):]) }, "power of two"},
		{"alignment 2^31", func(b *builder) { b.body = join(number(alignmentKey, 1<<31), b.body[len(number("x", 7)):]) }, "power of two"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := sound()
			c.change(&b)
			file := b.bytes()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := openBytes(file)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that says %q", err, c.says)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
				t.Errorf("allocated %d bytes", n)
			}
		})
	}
	file := sound().bytes()
	for n := range file {
		if _, err := openBytes(file[:n]); err == nil {
			t.Errorf("cut after %d of %d bytes: accepted", n, len(file))
		}
	}
}

// FuzzOpen: nothing panics, and what is accepted can be read whole.
func FuzzOpen(f *testing.F) {
	f.Add(sound().bytes())
	f.Add(builder{magic, 2, 1, 2, join(number("x", 7), append(le.AppendUint64(le.AppendUint32(le.AppendUint32(text("k"), uint32(kindArray)), uint32(kindString)), 1), text("v")...),
		entry("c", Q4_K, 0, 256)), make([]byte, 144)}.bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := openBytes(b)
		if err != nil {
			return
		}
		for _, i := range g.Tensors() {
			x, err := g.Tensor(i.Name)
			if err != nil {
				t.Fatal(err)
			}
			if v, err := x.Float32s(); err != nil || len(v) != i.Len() {
				t.Fatalf("%s: %d values, %v", i.Name, len(v), err)
			}
		}
		for key := range g.meta { // whatever the kind, each getter gives a value or an error
			g.Uint(key)
			g.Float(key)
			g.Bool(key)
			g.Text(key)
			g.Strings(key)
			g.Ints(key)
			g.Floats(key)
		}
		g.Tokenizer()
		g.config()
	})
}

// Broken copies of sound files: an error or a file that can be read whole, never a panic.
func TestMangledFilesDoNotPanic(t *testing.T) {
	strs := append(le.AppendUint64(le.AppendUint32(le.AppendUint32(text("tokenizer.ggml.tokens"), uint32(kindArray)), uint32(kindString)), 2), join(text("a"), text("b"))...)
	mangle.Run(t, [][]byte{
		sound().bytes(),
		builder{magic, 2, 1, 2, join(number("general.alignment", 32), strs, entry("c", Q4_K, 0, 256)), make([]byte, 144)}.bytes(),
		builder{magic, 3, 1, 3, join(textPair("general.architecture", "llama"), number("llama.block_count", 1), floatPair("llama.rope.freq_base", 1e4), entry("c", Q6_K, 0, 256)), make([]byte, 210)}.bytes(),
	}, func(in []byte) {
		f, err := openBytes(in)
		if err != nil {
			return
		}
		for _, i := range f.Tensors() {
			x, _ := f.Tensor(i.Name)
			x.Float32s()
		}
		f.Tokenizer()
		f.config()
	})
}
