package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"heddle/internal/mangle"
)

// file makes a file of a header and n bytes of data.
func file(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, n)...)
}

func openBytes(b []byte) (*File, error) {
	return NewFile("mem", bytes.NewReader(b), int64(len(b)))
}

const okTensor = `"dtype":"F32","shape":[2],"data_offsets":[0,8]`

// Every way of being wrong that a reader was seen to let pass, or that the reference reader refuses. The error must say what it is about.
func TestMalformedFilesAreRefused(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}"
	cases := []struct {
		name, header string
		data         int
		says         string // part of the error
	}{
		{"null header", `null`, 0, "want '{'"},
		{"array header", `[{` + okTensor + `}]`, 8, "want '{'"},
		{"byte order mark", "\ufeff{}", 0, "want '{'"},
		{"leading space", ` {}`, 0, "want '{'"},
		{"NUL padding", "{}\x00\x00", 0, "want the end"},
		{"text after the object", `{} x`, 0, "want the end"},
		{"second object", `{}{}`, 0, "want the end"},
		{"comment", `{/**/}`, 0, "want a string"},
		{"trailing comma", `{"a":{` + okTensor + `},}`, 8, "want a string"},
		{"no closing brace", `{"a":{` + okTensor + `}`, 8, "end of the text"},
		{"depth", deep, 0, "want an object"},
		{"data short", `{"a":{` + okTensor + `}}`, 7, "the bytes of data"},
		{"data long", `{"a":{` + okTensor + `}}`, 9, "belong to no tensor"},
		{"data without tensor", `{}`, 4, "belong to no tensor"},
		{"duplicate tensor", `{"a":{` + okTensor + `},"a":{` + okTensor + `}}`, 8, "occurs twice"},
		{"duplicate tensor by escape", `{"a":{` + okTensor + `},"\u0061":{` + okTensor + `}}`, 8, "occurs twice"},
		{"duplicate field", `{"a":{"dtype":"F32",` + okTensor + `}}`, 8, "occurs twice"},
		{"duplicate metadata", `{"__metadata__":{},"__metadata__":{}}`, 0, "occurs twice"},
		{"duplicate metadata key", `{"__metadata__":{"a":"1","a":"2"}}`, 0, "occurs twice"},
		{"metadata number", `{"__metadata__":{"a":1}}`, 0, "want a string"},
		{"metadata list", `{"__metadata__":[]}`, 0, "want an object"},
		{"case-folded field", `{"a":{"DTYPE":"F32","shape":[2],"data_offsets":[0,8]}}`, 8, `unknown field "DTYPE"`},
		{"extra field", `{"a":{` + okTensor + `,"x":1}}`, 8, `unknown field "x"`},
		{"no dtype", `{"a":{"shape":[2],"data_offsets":[0,8]}}`, 8, "lacks one of"},
		{"no shape", `{"a":{"dtype":"F32","data_offsets":[0,4]}}`, 4, "lacks one of"},
		{"no offsets", `{"a":{"dtype":"F32","shape":[0]}}`, 0, "lacks one of"},
		{"null info", `{"a":null}`, 0, "want an object"},
		{"null shape", `{"a":{"dtype":"F32","shape":null,"data_offsets":[0,4]}}`, 4, "want an array"},
		{"lower-case dtype", `{"a":{"dtype":"f32","shape":[2],"data_offsets":[0,8]}}`, 8, `dtype "f32" is not supported`},
		{"unknown dtype", `{"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}}`, 1, `dtype "F4" is not supported`},
		{"negative dimension", `{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}`, 8, "is not an integer"},
		{"float dimension", `{"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}}`, 8, "is not an integer"},
		{"exponent dimension", `{"a":{"dtype":"F32","shape":[2e0],"data_offsets":[0,8]}}`, 8, "is not an integer"},
		{"string dimension", `{"a":{"dtype":"F32","shape":["2"],"data_offsets":[0,8]}}`, 8, "want a number"},
		{"leading zero", `{"a":{"dtype":"F32","shape":[02],"data_offsets":[0,8]}}`, 8, "leading zero"},
		{"dimension over 2^64", `{"a":{"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,8]}}`, 8, "is not an integer"},
		{"dimension 2^63", `{"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8]}}`, 8, "overflows"},
		{"product overflow", `{"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,8]}}`, 8, "more than 2^63"},
		{"product 2^63", `{"a":{"dtype":"U8","shape":[4611686018427387904,2],"data_offsets":[0,8]}}`, 8, "more than 2^63"},
		{"product overflow, then zero", `{"a":{"dtype":"F32","shape":[4294967296,4294967296,0],"data_offsets":[0,0]}}`, 0, "more than 2^63"},
		{"rank", `{"a":{"dtype":"U8","shape":[` + strings.Repeat("1,", 64) + `1],"data_offsets":[0,1]}}`, 1, "more than 64 dimensions"},
		{"offsets swapped", `{"a":{"dtype":"F32","shape":[0],"data_offsets":[8,0]}}`, 8, "are not [begin, end]"},
		{"offset negative", `{"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}}`, 8, "is not an integer"},
		{"one offset", `{"a":{"dtype":"U8","shape":[4],"data_offsets":[4]}}`, 4, "are not [begin, end]"},
		{"three offsets", `{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,9]}}`, 4, "want two numbers"},
		{"offset past the end", `{"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, 8, "want two numbers up to 8"},
		{"size and shape differ", `{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8, "needs 12 bytes"},
		{"hole at the start", `{"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}`, 4, "hole of 2 bytes"},
		{"hole between", `{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 3, "hole of 1 bytes"},
		{"overlap", `{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3, "overlaps"},
		{"same range twice", `{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 2, "overlaps"},
		{"empty tensor inside another", `{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}}`, 2, "overlaps"},
		{"invalid UTF-8", "{\"a\xff\":{" + okTensor + "}}", 8, "not UTF-8"},
		{"lone surrogate", `{"\ud800":{` + okTensor + `}}`, 8, "surrogate"},
		{"two low surrogates", `{"\udc00\udc00":{` + okTensor + `}}`, 8, "surrogate"},
		{"control character", "{\"a\n\":{" + okTensor + "}}", 8, "control character"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := openBytes(file(c.header, c.data))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that says %q", err, c.says)
			}
		})
	}
}

// Offsets in errors count from the start of the file: the header's own 8 bytes included.
func TestErrorsNameFileAndOffset(t *testing.T) {
	_, err := openBytes(file(`{"a":1}`, 0))
	if want := `safetensors: mem: byte 13: got '1', want an object`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A header's length is checked before it is believed: the largest claim must cost next to nothing.
func TestLyingLengthsAreRefusedBeforeAllocation(t *testing.T) {
	cases := []struct {
		name string
		file []byte
		says string
	}{
		{"empty", nil, "got 0 bytes"},
		{"seven bytes", make([]byte, 7), "got 7 bytes"},
		{"length 0", make([]byte, 8), "header claims 0 bytes"},
		{"length 1", append([]byte{1}, make([]byte, 20)...), "header claims 1 bytes"},
		{"length 2^64-1", bytes.Repeat([]byte{0xff}, 64), "header claims 18446744073709551615"},
		{"length 100,000,001", binary.LittleEndian.AppendUint64(nil, 100_000_001), "at most 100000000"},
		{"one byte longer than the file", append(binary.LittleEndian.AppendUint64(nil, 3), "{}"...), "header claims 3 bytes, file has 2"},
		{"longer than the file", append(binary.LittleEndian.AppendUint64(nil, 99_000_000), "{}"...), "file has 2"},
		{"Git LFS pointer", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:00\n"), "Git LFS pointer"},
		{"HTML", []byte("<!DOCTYPE html><html>"), "HTML"},
		{"zip", []byte("PK\x03\x04\x00\x00\x08\x08\x00\x00"), "zip archive"},
		{"GGUF", []byte("GGUF\x03\x00\x00\x00\x00\x00"), "GGUF"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := openBytes(c.file)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that says %q", err, c.says)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
				t.Errorf("allocated %d bytes", n)
			}
		})
	}
}

// What is odd but sound is read.
func TestOddButSoundFilesAreRead(t *testing.T) {
	cases := []struct {
		name, header string
		data, count  int
	}{
		{"nothing", `{}`, 0, 0},
		{"padding", "{}  \n\t ", 0, 0},
		{"metadata null", `{"__metadata__":null}`, 0, 0},
		{"metadata alone", `{"__metadata__":{"format":"pt"}}`, 0, 0},
		{"one number", `{"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]}}`, 8, 1},
		{"fields in another order", `{"a":{"data_offsets":[0,8],"shape":[2],"dtype":"F32"}}`, 8, 1},
		{"tensors in another order", `{"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 2, 2},
		{"empty tensors share an offset", `{"a":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"c":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}}`, 8, 3},
		{"empty name and a path for a name", `{"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"../../x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2, 2},
		{"F32 at an odd offset", `{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}}`, 5, 2},
		{"surrogate pair", `{"\ud83d\ude00":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1, 1},
		{"rank 64", `{"a":{"dtype":"U8","shape":[` + strings.Repeat("1,", 63) + `1],"data_offsets":[0,1]}}`, 1, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f, err := openBytes(file(c.header, c.data))
			if err != nil {
				t.Fatal(err)
			}
			if got := len(f.Tensors()); got != c.count {
				t.Errorf("got %d tensors, want %d", got, c.count)
			}
			for _, i := range f.Tensors() {
				x, err := f.Tensor(i.Name)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := x.Float64s(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A file that shrinks while it is read is an error that names tensor and byte.
func TestFileCutWhileReadIsAnError(t *testing.T) {
	b := file(`{"a":{`+okTensor+`}}`, 8)
	f, err := NewFile("mem", bytes.NewReader(b[:len(b)-3]), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	x, _ := f.Tensor("a")
	_, err = x.Float32s()
	if want := fmt.Sprintf("byte %d", len(b)-8); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q in it", err, want)
	}
	if _, err := f.Tensor("b"); err == nil {
		t.Error("tensor that is not there was found")
	}
}

// FuzzOpen feeds whole files. A file that is accepted must be written back to one that reads the same, and nothing may panic.
func FuzzOpen(f *testing.F) {
	f.Add(file(`{"a":{`+okTensor+`}}`, 8))
	f.Add(file(`{"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]},"a":{"dtype":"BOOL","shape":[],"data_offsets":[4,5]}}`, 5))
	f.Add(file(`{"\ud83d\ude00":{"dtype":"F8_E4M3","shape":[0,4],"data_offsets":[0,0]}}`, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := openBytes(b)
		if err != nil {
			return
		}
		var specs []Spec
		for _, i := range in.Tensors() {
			specs = append(specs, Spec{i.Name, i.DType, i.Shape})
		}
		var buf bytes.Buffer
		err = Write(&buf, specs, in.Metadata(), func(s Spec, sink *Sink) error {
			x, err := in.Tensor(s.Name)
			raw, err2 := x.Bytes()
			return errors.Join(err, err2, sink.Bytes(raw))
		})
		if err != nil {
			t.Fatalf("accepted, but cannot be written: %v", err)
		}
		out, err := openBytes(buf.Bytes())
		if err != nil {
			t.Fatalf("own file refused: %v", err)
		}
		for _, s := range specs {
			x, _ := in.Tensor(s.Name)
			y, err := out.Tensor(s.Name)
			if err != nil {
				t.Fatal(err)
			}
			a, _ := x.Bytes()
			c, _ := y.Bytes()
			if !bytes.Equal(a, c) || fmt.Sprint(x.Shape) != fmt.Sprint(y.Shape) {
				t.Fatalf("%q changed", s.Name)
			}
		}
	})
}

// FuzzIndex feeds whole index.json files: nothing panics, and no name that is accepted leaves the folder.
func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata": {"total_size": 8}, "weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}`))
	f.Add([]byte(`{"weight_map": {"../x": "a.safetensors"}}`))
	f.Add([]byte(`{"weight_map": {"a": "../a.safetensors"}, "weight_map": {}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		files, err := parseIndex(b)
		if err != nil {
			return
		}
		for tensor, file := range files {
			if filepath.Base(file) != file || strings.HasPrefix(file, ".") || !strings.HasSuffix(file, ".safetensors") {
				t.Fatalf("tensor %q lies in %q", tensor, file)
			}
		}
	})
}

// Broken copies of sound files: an error or a file that can be read whole, never a panic.
func TestMangledFilesDoNotPanic(t *testing.T) {
	mangle.Run(t, [][]byte{
		file(`{"a":{`+okTensor+`}}`, 8),
		file(`{"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]},"a":{"dtype":"BOOL","shape":[],"data_offsets":[4,5]}}`, 5),
		file(`{"\ud83d\ude00":{"dtype":"F8_E4M3","shape":[0,4],"data_offsets":[0,0]},"x":{"dtype":"I64","shape":[2,1],"data_offsets":[0,16]}}`, 16),
	}, func(in []byte) {
		f, err := openBytes(in)
		if err != nil {
			return
		}
		for _, i := range f.Tensors() {
			x, _ := f.Tensor(i.Name)
			x.Float32s()
			x.Int64s()
		}
	})
}

func TestMangledIndexesDoNotPanic(t *testing.T) {
	mangle.Run(t, [][]byte{
		[]byte(`{"metadata": {"total_size": 8}, "weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}`),
		[]byte("{\n  \"weight_map\": {\n    \"model.norm.weight\": \"x.safetensors\"\n  }\n}\n"),
	}, func(in []byte) {
		if files, err := parseIndex(in); err == nil {
			for _, f := range files {
				if !shardName(f) {
					panic(f)
				}
			}
		}
	})
}
