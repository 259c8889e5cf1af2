package analyze

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"
)

// Open reads a timeline from a file, whose format is told by its content. progress, unless nil, is called now and
// then with how many of the file's bytes have been read.
func Open(name string, progress func(read, size int64)) (*Timeline, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	if st.IsDir() {
		return nil, fmt.Errorf("trace: %s is a folder; hint: name the files in it", name)
	}
	m := &meter{f: f, size: st.Size(), report: progress}
	t, err := Read(m, st.Size())
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "trace: ")
		return nil, fmt.Errorf("trace: %s: %s", name, text)
	}
	t.Source = name
	m.done()
	return t, nil
}

// Read is Open for what is no file, or not only one.
func Read(r io.ReaderAt, size int64) (*Timeline, error) {
	var head [512]byte
	n, err := r.ReadAt(head[:min(size, 512)], 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if bytes.HasPrefix(head[:n], []byte("SQLite format 3\x00")) {
		return readNsight(r, size)
	}
	stream := io.NewSectionReader(r, 0, size)
	if bytes.HasPrefix(head[:n], []byte{0x1f, 0x8b}) {
		return readGzip(stream)
	}
	return readChrome(stream, isHeddle(head[:n]))
}

func isHeddle(head []byte) bool { return bytes.HasPrefix(head, []byte(`{"heddle":`)) }

func readGzip(r io.Reader) (*Timeline, error) {
	z, err := gzip.NewReader(bufio.NewReaderSize(r, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	a := newAhead(z)
	defer a.stop()
	b := bufio.NewReaderSize(a, 512)
	head, err := b.Peek(512)
	if len(head) == 0 {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	t, err := readChrome(b, isHeddle(head))
	if err != nil {
		return nil, err
	}
	return t, nil
}

// ahead unpacks in a goroutine while another reads events.
type ahead struct {
	full, free chan []byte
	quit       chan struct{}
	err        error // set before full is closed
	now, rest  []byte
}

func newAhead(r io.Reader) *ahead {
	const buffers, size = 4, 1 << 19
	a := &ahead{full: make(chan []byte, buffers), free: make(chan []byte, buffers), quit: make(chan struct{})}
	for range buffers {
		a.free <- make([]byte, size)
	}
	go func() {
		defer close(a.full)
		for {
			var b []byte
			select {
			case b = <-a.free:
			case <-a.quit:
				return
			}
			n, err := io.ReadFull(r, b[:size])
			a.full <- b[:n] // has room: there are no more buffers than places
			if err != nil {
				if a.err = err; err == io.ErrUnexpectedEOF && n > 0 && endsHere(r) {
					a.err = io.EOF
				}
				return
			}
		}
	}()
	return a
}

// endsHere tells a stream that ended from one that broke off; both make ReadFull return the same error.
func endsHere(r io.Reader) bool {
	var one [1]byte
	_, err := r.Read(one[:])
	return err == io.EOF
}

func (a *ahead) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.now != nil {
			a.free <- a.now
			a.now = nil
		}
		b, ok := <-a.full
		if !ok {
			return 0, a.err
		}
		a.now, a.rest = b, b
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

func (a *ahead) stop() { close(a.quit) }

// meter counts what is read of a file.
type meter struct {
	f                 *os.File
	size, read, shown int64
	report            func(read, size int64)
}

const meterStep = 4 << 20

func (m *meter) count(n int) {
	if m.read += int64(n); m.report != nil && m.read-m.shown >= meterStep {
		m.shown = m.read
		m.report(min(m.read, m.size), m.size)
	}
}

func (m *meter) ReadAt(p []byte, off int64) (int, error) {
	n, err := m.f.ReadAt(p, off)
	m.count(n)
	return n, err
}

func (m *meter) done() {
	if m.report != nil && m.size >= meterStep {
		m.report(m.size, m.size)
	}
}
