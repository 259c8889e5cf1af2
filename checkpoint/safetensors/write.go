package safetensors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"heddle/internal/atomicfile"
)

// Spec says what a tensor to be written is.
type Spec struct {
	Name  string
	DType DType
	Shape []int
}

// Fill writes the values of one tensor, all of them, to the sink.
type Fill func(spec Spec, sink *Sink) error

// HF is the metadata that Hugging Face libraries expect.
func HF() map[string]string { return map[string]string{"format": "pt"} }

// WriteFile writes a file that appears at path whole or not at all.
func WriteFile(path string, specs []Spec, meta map[string]string, fill Fill) error {
	return atomicfile.Write(atomicfile.OS{}, path, func(w io.Writer) error { return Write(w, specs, meta, fill) })
}

// Write streams a file to w. fill is called once a tensor, in the order of the file: types as the reference writer orders them, then names.
func Write(w io.Writer, specs []Spec, meta map[string]string, fill Fill) error {
	specs = sorted(specs)
	head, err := encodeHeader(specs, meta)
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return fmt.Errorf("safetensors: header: %w", err)
	}
	sink := &Sink{w: w}
	for _, s := range specs {
		n, _ := bytesOf(s.DType, s.Shape)
		sink.dtype, sink.left = s.DType, n/int64(s.DType.Size())
		if err := fill(s, sink); err != nil {
			return fmt.Errorf("safetensors: tensor %.100q: %w", s.Name, err)
		}
		if sink.left != 0 {
			return fmt.Errorf("safetensors: tensor %.100q: %s%v lacks %d elements", s.Name, s.DType, s.Shape, sink.left)
		}
	}
	return nil
}

func sorted(specs []Spec) []Spec {
	specs = slices.Clone(specs)
	slices.SortStableFunc(specs, func(a, b Spec) int {
		if a.DType != b.DType {
			return a.DType.rank() - b.DType.rank()
		}
		return strings.Compare(a.Name, b.Name)
	})
	return specs
}

// encodeHeader makes length and JSON of a file; the JSON is padded with spaces so that the data starts at a multiple of 8.
func encodeHeader(specs []Spec, meta map[string]string) ([]byte, error) {
	var text bytes.Buffer
	sep := "{"
	if meta != nil {
		for k, v := range meta {
			if !utf8.ValidString(k + v) {
				return nil, fmt.Errorf("safetensors: metadata %.100q: %.100q is not UTF-8", k, v)
			}
		}
		m, err := marshal(meta) // encoding/json sorts the keys
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, `{"%s":%s`, metaKey, m)
		sep = ","
	}
	at := int64(0)
	seen := make(map[string]bool, len(specs))
	for _, s := range specs {
		n, fits := bytesOf(s.DType, s.Shape)
		switch {
		case s.DType.Size() == 0:
			return nil, fmt.Errorf("safetensors: tensor %.100q: dtype %.40q is not supported", s.Name, s.DType)
		case !fits || slices.Min(append([]int{0}, s.Shape...)) < 0 || len(s.Shape) > maxRank || at+n < at:
			return nil, fmt.Errorf("safetensors: tensor %.100q: shape %v is negative or too large", s.Name, s.Shape)
		case !utf8.ValidString(s.Name): // encoding/json would repair it in silence
			return nil, fmt.Errorf("safetensors: tensor name %.100q is not UTF-8", s.Name)
		case s.Name == metaKey || seen[s.Name]:
			return nil, fmt.Errorf("safetensors: tensor name %.100q is reserved or occurs twice", s.Name)
		}
		seen[s.Name] = true
		name, err := marshal(s.Name)
		if err != nil {
			return nil, err
		}
		shape := strings.ReplaceAll(fmt.Sprint(s.Shape), " ", ",")
		fmt.Fprintf(&text, `%s%s:{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}`, sep, name, s.DType, shape, at, at+n)
		at += n
		sep = ","
	}
	if text.Len() == 0 {
		text.WriteString("{")
	}
	text.WriteString("}")
	for text.Len()%8 != 0 {
		text.WriteByte(' ')
	}
	if text.Len() > maxHeader {
		return nil, fmt.Errorf("safetensors: header of %d bytes, at most %d are allowed", text.Len(), maxHeader)
	}
	return append(le.AppendUint64(nil, uint64(text.Len())), text.Bytes()...), nil
}

// marshal is JSON without HTML escapes.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// Sink takes the elements of one tensor, in order, in as many calls as the caller likes, and converts them to the type of the file.
type Sink struct {
	w     io.Writer
	dtype DType
	left  int64 // elements still to come
	buf   []byte
}

// Float32s writes v.
func (s *Sink) Float32s(v []float32) error { return writeAll(s, v, encodeFloats) }

// Float64s writes v, rounded once to nearest even.
func (s *Sink) Float64s(v []float64) error { return writeAll(s, v, encodeFloats) }

// Int64s writes v; a value that the type does not hold exactly is an error.
func (s *Sink) Int64s(v []int64) error { return writeAll(s, v, encodeInts) }

// Bytes writes elements as they are in the file, little-endian.
func (s *Sink) Bytes(v []byte) error {
	size := int64(s.dtype.Size())
	if int64(len(v))%size != 0 || int64(len(v))/size > s.left {
		return fmt.Errorf("got %d bytes, want a multiple of %d up to %d", len(v), size, s.left*size)
	}
	s.left -= int64(len(v)) / size
	_, err := s.w.Write(v)
	return err
}

func writeAll[T float32 | float64 | int64](s *Sink, v []T, encode func([]byte, DType, []T) ([]byte, error)) error {
	if int64(len(v)) > s.left {
		return fmt.Errorf("got %d elements, want %d more", len(v), s.left)
	}
	for len(v) > 0 {
		n := min(len(v), chunk/8)
		var err error
		if s.buf, err = encode(s.buf[:0], s.dtype, v[:n]); err != nil {
			return err
		}
		if _, err := s.w.Write(s.buf); err != nil {
			return err
		}
		s.left -= int64(n)
		v = v[n:]
	}
	return nil
}
