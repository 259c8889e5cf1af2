package safetensors

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// File is an open safetensors file. Its methods may be called from several goroutines.
type File struct {
	path   string
	r      io.ReaderAt
	close  func() error
	header header
	byName map[string]int
}

// Open reads and checks the header of the file at path. The data is read later, on demand.
func Open(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe does not block before it is refused
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	s, err := NewFile(path, f, st.Size())
	if err != nil {
		f.Close()
		return nil, err
	}
	s.close = f.Close
	return s, nil
}

// NewFile reads from size bytes held elsewhere; path only names them in errors.
func NewFile(path string, r io.ReaderAt, size int64) (*File, error) {
	h, err := readHeader(r, size)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %s: %w", path, err)
	}
	f := &File{path: path, r: r, header: h, byName: make(map[string]int, len(h.tensors))}
	for i, t := range h.tensors {
		f.byName[t.Name] = i
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

// Metadata is the free text of the header, nil when there is none. The map is the file's own.
func (f *File) Metadata() map[string]string { return f.header.meta }

// Tensors lists what the file holds, in the order of the data.
func (f *File) Tensors() []Info { return append([]Info(nil), f.header.tensors...) }

// Tensor finds a tensor by name.
func (f *File) Tensor(name string) (Tensor, error) {
	i, ok := f.byName[name]
	if !ok {
		return Tensor{}, fmt.Errorf("safetensors: %s has no tensor %.100q", f.path, name)
	}
	return Tensor{f.header.tensors[i], f}, nil
}

// Tensor is a tensor of an open file, not read yet.
type Tensor struct {
	Info
	file *File
}

// chunk is how many bytes are read at a time when values are converted.
const chunk = 1 << 16

// Float32s reads the whole tensor. Rounding is to nearest even; a finite number that overflows is an error.
func (t Tensor) Float32s() ([]float32, error) {
	dst := make([]float32, t.Len())
	return dst, t.ReadFloat32s(dst, 0, t.Rows())
}

// Float64s reads the whole tensor.
func (t Tensor) Float64s() ([]float64, error) {
	dst := make([]float64, t.Len())
	return dst, t.ReadFloat64s(dst, 0, t.Rows())
}

// Int64s reads the whole tensor, which must be of an integer type or BOOL.
func (t Tensor) Int64s() ([]int64, error) {
	dst := make([]int64, t.Len())
	return dst, t.ReadInt64s(dst, 0, t.Rows())
}

// Bytes reads the whole tensor as it is in the file, little-endian.
func (t Tensor) Bytes() ([]byte, error) {
	dst := make([]byte, t.End-t.Begin)
	return dst, t.readAt(dst, 0)
}

// ReadFloat32s reads rows [from, to) of the first dimension into dst, which must be exactly as long.
func (t Tensor) ReadFloat32s(dst []float32, from, to int) error {
	return readRows(t, dst, from, to, decodeFloats[float32])
}

// ReadFloat64s is ReadFloat32s for float64.
func (t Tensor) ReadFloat64s(dst []float64, from, to int) error {
	return readRows(t, dst, from, to, decodeFloats[float64])
}

// ReadInt64s is ReadFloat32s for int64.
func (t Tensor) ReadInt64s(dst []int64, from, to int) error {
	return readRows(t, dst, from, to, decodeInts)
}

// readRows converts rows a chunk at a time, so that no second copy of a large tensor is held.
func readRows[T float32 | float64 | int64](t Tensor, dst []T, from, to int, decode func(DType, []byte, []T) error) error {
	rows, size := t.Rows(), t.DType.Size()
	if from < 0 || from > to || to > rows {
		return fmt.Errorf("safetensors: %s: tensor %.100q has %d rows, got range [%d, %d)", t.file.path, t.Name, rows, from, to)
	}
	width := t.Len() / max(rows, 1)
	if want := (to - from) * width; len(dst) != want {
		return fmt.Errorf("safetensors: %s: tensor %.100q rows [%d, %d) hold %d elements, got room for %d", t.file.path, t.Name, from, to, want, len(dst))
	}
	buf := make([]byte, min(chunk, len(dst)*size))
	for at := 0; at < len(dst); {
		n := min(len(buf)/size, len(dst)-at)
		offset := int64(from*width+at) * int64(size)
		if err := t.readAt(buf[:n*size], offset); err != nil {
			return err
		}
		if err := decode(t.DType, buf[:n*size], dst[at:at+n]); err != nil {
			return fmt.Errorf("safetensors: %s: tensor %.100q after element %d: %w", t.file.path, t.Name, from*width+at, err)
		}
		at += n
	}
	return nil
}

// readAt fills dst from the tensor's bytes, starting at offset within the tensor.
func (t Tensor) readAt(dst []byte, offset int64) error {
	if _, err := t.file.r.ReadAt(dst, t.Begin+offset); err != nil && len(dst) > 0 {
		return fmt.Errorf("safetensors: %s: tensor %.100q, byte %d: %w", t.file.path, t.Name, t.Begin+offset, err)
	}
	return nil
}
