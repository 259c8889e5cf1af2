package gguf

import (
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
)

// File is an open GGUF file. Its methods may be called from several goroutines.
type File struct {
	path      string
	r         io.ReaderAt
	close     func() error
	meta      map[string]value
	alignment int64
	tensors   []Info
	byName    map[string]int
}

// Open reads and checks the front of the file at path; the tensors' data is read later, on demand.
func Open(path string) (*File, error) {
	r, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe does not block before it is refused
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	st, err := r.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("gguf: %w", err)
	}
	f, err := NewFile(path, r, st.Size())
	if err != nil {
		r.Close()
		return nil, err
	}
	f.close = r.Close
	return f, nil
}

// NewFile reads from size bytes held elsewhere; path only names them in errors.
func NewFile(path string, r io.ReaderAt, size int64) (*File, error) {
	f := &File{path: path, r: r}
	if err := f.parse(r, size); err != nil {
		return nil, fmt.Errorf("gguf: %s: %w", path, err)
	}
	return f, nil
}

// Close closes the file; reading a tensor afterwards is an error.
func (f *File) Close() error {
	if f.close == nil {
		return nil
	}
	return f.close()
}

// Tensors lists what the file holds, in its order.
func (f *File) Tensors() []Info { return slices.Clone(f.tensors) }

// Tensor finds a tensor by name.
func (f *File) Tensor(name string) (Tensor, error) {
	i, ok := f.byName[name]
	if !ok {
		return Tensor{}, fmt.Errorf("gguf: %s has no tensor %.100q", f.path, name)
	}
	return Tensor{f.tensors[i], f}, nil
}

// Tensor is a tensor of an open file, not read yet.
type Tensor struct {
	Info
	file *File
}

// Float32s reads and dequantises the whole tensor. Every format's values are computed with one rounding, so they do not depend on the machine.
func (t Tensor) Float32s() ([]float32, error) {
	block, size := t.Type.block()
	dst := make([]float32, t.Len())
	perRead := max(1, min((1<<16)/size, len(dst)/block)) // blocks
	buf := make([]byte, perRead*size)
	for at := 0; at < len(dst); {
		n := min(perRead, (len(dst)-at)/block)
		offset := t.Begin + int64(at/block)*int64(size)
		if _, err := t.file.r.ReadAt(buf[:n*size], offset); err != nil {
			return nil, fmt.Errorf("gguf: %s: tensor %.100q, byte %d: %w", t.file.path, t.Name, offset, err)
		}
		if block == 1 {
			t.Type.widen(buf[:n*size], dst[at:at+n])
			at += n
			continue
		}
		for i := range n {
			t.Type.decode(buf[i*size:(i+1)*size], dst[at:at+block])
			at += block
		}
	}
	return dst, nil
}

// Has tells whether the metadata has a key.
func (f *File) Has(key string) bool { _, ok := f.meta[key]; return ok }

// find is a metadata value, single or array.
func (f *File) find(key string, array bool, want string) (value, error) {
	v, ok := f.meta[key]
	if !ok {
		return v, fmt.Errorf("gguf: %s: no metadata %q", f.path, key)
	}
	if v.array != array {
		return v, f.wrong(key, want)
	}
	return v, nil
}

func (f *File) wrong(key, want string) error {
	return fmt.Errorf("gguf: %s: metadata %q is not %s", f.path, key, want)
}

// Text is a string of the metadata; an error when it is not there or something else. So with the others.
func (f *File) Text(key string) (string, error) {
	v, err := f.find(key, false, "a string")
	if err == nil && v.kind != kindString {
		err = f.wrong(key, "a string")
	}
	if err != nil {
		return "", err
	}
	return v.texts[0], nil
}

// Uint is an integer ≥ 0.
func (f *File) Uint(key string) (int, error) {
	v, err := f.find(key, false, "an integer")
	if err != nil {
		return 0, err
	}
	if v.kind == kindString || v.kind == kindBool {
		return 0, f.wrong(key, "an integer")
	}
	n, ok := v.integer(0)
	if !ok || n < 0 {
		return 0, f.wrong(key, "an integer from 0 to 2^63-1")
	}
	return n, nil
}

// Float is a floating-point number.
func (f *File) Float(key string) (float64, error) {
	v, err := f.find(key, false, "a float")
	if err != nil {
		return 0, err
	}
	if v.kind == kindString {
		return 0, f.wrong(key, "a float")
	}
	x, ok := v.float(0)
	if !ok {
		return 0, f.wrong(key, "a float")
	}
	return x, nil
}

// Bool is true or false.
func (f *File) Bool(key string) (bool, error) {
	v, err := f.find(key, false, "a boolean")
	if err == nil && v.kind != kindBool {
		err = f.wrong(key, "a boolean")
	}
	if err != nil {
		return false, err
	}
	return v.raw[0] == 1, nil
}

// Strings is an array of strings; the slice is the file's own.
func (f *File) Strings(key string) ([]string, error) {
	v, err := f.find(key, true, "an array of strings")
	if err == nil && v.kind != kindString {
		err = f.wrong(key, "an array of strings")
	}
	if err != nil {
		return nil, err
	}
	return v.texts, nil
}

// Ints is an array of integers.
func (f *File) Ints(key string) ([]int, error) {
	v, err := f.find(key, true, "an array of integers")
	if err != nil {
		return nil, err
	}
	if v.kind == kindString || v.kind == kindBool {
		return nil, f.wrong(key, "an array of integers")
	}
	out := make([]int, v.count)
	for i := range out {
		var ok bool
		if out[i], ok = v.integer(i); !ok {
			return nil, f.wrong(key, "an array of integers")
		}
	}
	return out, nil
}

// Floats is an array of floating-point numbers.
func (f *File) Floats(key string) ([]float64, error) {
	v, err := f.find(key, true, "an array of floats")
	if err != nil {
		return nil, err
	}
	if v.kind == kindString {
		return nil, f.wrong(key, "an array of floats")
	}
	out := make([]float64, v.count)
	for i := range out {
		var ok bool
		if out[i], ok = v.float(i); !ok {
			return nil, f.wrong(key, "an array of floats")
		}
	}
	return out, nil
}
