// Package cupti records what a device and its driver do, through NVIDIA's activity interface (libcupti), opened at run time: kernels with the calls that launched them, copies and
// fills, waits, nodes of graphs, and what recording itself costs. The records come back as trace.Events, which trace/analyze reads.
//
// Open, then Library.Start, run, synchronise the device, Recording.Stop. Times are the system's clock, as everywhere in package trace. Where there is no libcupti Open answers an error,
// and the caller times with events instead.
//
// What it costs: about 1 µs more a launch while it records. Merely having started once makes launching a graph of 64 kernels ten times as dear (1.3 to 14 µs) for the rest of the
// process, and there is no safe way back: cuptiFinalize breaks graphs that exist. So measure first, and record in another process.
package cupti

import (
	"fmt"
	"path/filepath"
	"sync"
	"unsafe"

	"heddle/internal/dl"
)

// Library is an opened libcupti.
type Library struct {
	Path    string
	Version uint32 // 18 came with CUDA 12.0, 130001 is that of CUDA 13.0

	register, enable, disable, flush, next, dropped dl.Func
	resultString, callbackName, threadID            dl.Func
	buffers                                         buffers
	registered                                      bool
}

// minVersion is that of CUDA 12.0: the layouts of records that decode.go reads.
const minVersion = 18

// Find lists where libcupti may lie: in the folder of a hint or where the loader looks, in toolkits, and in site, the site-packages of a Python.
func Find(hint, site string) []string {
	var all []string
	for _, name := range []string{"libcupti.so.13", "libcupti.so.12", "libcupti.so"} {
		if hint != "" {
			name = filepath.Join(hint, name)
		}
		all = append(all, name)
	}
	for _, pattern := range []string{
		"/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so.1[23]", "/usr/local/cuda*/lib64/libcupti.so.1[23]",
		filepath.Join(site, "nvidia/cu13/lib/libcupti.so.13"), filepath.Join(site, "nvidia/cuda_cupti/lib/libcupti.so.1[23]"),
	} {
		if found, err := filepath.Glob(pattern); err == nil {
			all = append(all, found...)
		}
	}
	return all
}

// Open opens the first library among candidates that is there and new enough.
func Open(candidates []string) (*Library, error) {
	why := fmt.Errorf("no candidates")
	for _, path := range candidates {
		l, err := open(path)
		if err == nil {
			return l, nil
		}
		why = err
	}
	return nil, fmt.Errorf("cupti: no usable libcupti (last: %w); hint: it comes with the CUDA toolkit and with Python's nvidia-cuda-cupti", why)
}

func open(path string) (*Library, error) {
	lib, err := dl.Open(path)
	if err != nil {
		return nil, err
	}
	l := &Library{Path: path}
	var version dl.Func
	for _, s := range []struct {
		name string
		f    *dl.Func
	}{
		{"cuptiGetVersion", &version}, {"cuptiActivityRegisterCallbacks", &l.register}, {"cuptiActivityEnable", &l.enable}, {"cuptiActivityDisable", &l.disable},
		{"cuptiActivityFlushAll", &l.flush}, {"cuptiActivityGetNextRecord", &l.next}, {"cuptiActivityGetNumDroppedRecords", &l.dropped},
		{"cuptiGetResultString", &l.resultString}, {"cuptiGetCallbackName", &l.callbackName}, {"cuptiSetThreadIdType", &l.threadID},
	} {
		if *s.f, err = lib.Func(s.name); err != nil {
			return nil, err
		}
	}
	if code := version.Call(uintptr(unsafe.Pointer(&l.Version))); code != 0 || l.Version < minVersion {
		return nil, fmt.Errorf("cupti: %s has version %d, want %d (CUDA 12.0) or newer", path, l.Version, minVersion)
	}
	return l, nil
}

// check turns a CUptiResult into an error.
func (l *Library) check(call string, code int32) error {
	if code == 0 {
		return nil
	}
	var s *byte // a string of the library, never freed
	if l.resultString.Call(uintptr(uint32(code)), uintptr(unsafe.Pointer(&s))) != 0 || s == nil {
		return fmt.Errorf("cupti: %s: result %d", call, code)
	}
	return fmt.Errorf("cupti: %s: %s (%d)", call, text(s), code)
}

// text copies a NUL-terminated string of at most 4 KiB.
func text(s *byte) string {
	n := 0
	for n < 4096 && *(*byte)(unsafe.Add(unsafe.Pointer(s), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(s, n))
}

// buffers are the memory that records arrive in. CUPTI asks for one on the thread that launches and gives it back on a thread of its own.
type buffers struct {
	mu   sync.Mutex
	lent map[uintptr][]uint64 // by address; 8-byte aligned, as records want. Kept alive here while CUPTI has it: Go's heap does not move
	full []filled
}

// filled is a buffer that came back: bytes of records at its begin.
type filled struct {
	memory []uint64
	bytes  int
}

const bufferBytes = 1 << 20

// request is CUPTI's BuffersCallbackRequestFunc(uint8_t **buffer, size_t *size, size_t *maxNumRecords).
func (b *buffers) request(buffer, size, most uintptr) {
	b.mu.Lock()
	defer b.mu.Unlock()
	memory := make([]uint64, bufferBytes/8)
	at := uintptr(unsafe.Pointer(&memory[0]))
	b.lent[at] = memory
	store(buffer, at)
	store(size, bufferBytes)
	store(most, 0) // as many as fit
}

// complete is CUPTI's BuffersCallbackCompleteFunc(context, stream, buffer, size, validSize).
func (b *buffers) complete(buffer, valid uintptr) {
	b.mu.Lock()
	defer b.mu.Unlock()
	memory := b.lent[buffer]
	delete(b.lent, buffer)
	if n := min(int(valid), len(memory)*8); n > 0 {
		b.full = append(b.full, filled{memory, n})
	}
}

// store writes a word to memory of C.
func store(at, word uintptr) { **(**uintptr)(unsafe.Pointer(&at)) = word }

// take gives the buffers that have come back.
func (b *buffers) take() []filled {
	b.mu.Lock()
	defer b.mu.Unlock()
	full := b.full
	b.full = nil
	return full
}
