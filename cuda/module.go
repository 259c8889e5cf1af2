package cuda

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"
)

// Module is compiled machine code, loaded on a device.
type Module struct {
	dev    *Device
	handle uintptr
	Log    string // what the compiler said; empty on a cache hit
	Cached bool
	Cubin  []byte
}

// Cache keeps compiled cubins in a folder. A nil cache or an empty folder keeps nothing.
type Cache struct{ Dir string }

// Compile turns PTX into machine code and loads it. Loading waits for running kernels: compile at start-up.
//
// The driver's linker does it, and its cubin is kept. But the linker compiles for linking and ignores setmaxnreg ("to maintain compatibility across compilation
// units", ptxas C7504): a consumer of 192 accumulators then spills and runs at a twentieth of its speed. Such text goes to the direct JIT, which has a disk cache of its own.
func (dev *Device) Compile(ptx string, cache *Cache) (*Module, error) {
	m := &Module{dev: dev}
	if strings.Contains(ptx, "setmaxnreg") {
		return m, m.translate(ptx)
	}
	path := cache.path(dev, ptx)
	if m.Cubin = readCubin(path); m.Cubin != nil {
		m.Cached = true
	} else {
		var err error
		if m.Cubin, m.Log, err = dev.Link(ptx); err != nil {
			return nil, err
		}
		if err := writeCubin(path, m.Cubin); err != nil {
			return nil, err
		}
	}
	return m, dev.driver.check("cuModuleLoadData", dev.driver.api.moduleLoadData, uintptr(unsafe.Pointer(&m.handle)), uintptr(unsafe.Pointer(&m.Cubin[0])))
}

// compilerLog is the options that tell the driver's compilers where to write.
type compilerLog struct {
	info, errs []byte
	names      []uint32
	values     []uintptr
	pin        runtime.Pinner // the option values name these buffers as plain words
}

// newCompilerLog must be closed when the compiler has done with it.
func newCompilerLog() *compilerLog {
	const infoBuffer, infoBytes, errorBuffer, errorBytes, verbose = 3, 4, 5, 6, 12 // CU_JIT_…
	const bytes = 1 << 16
	l := &compilerLog{info: make([]byte, bytes+1), errs: make([]byte, bytes+1), names: []uint32{infoBuffer, infoBytes, errorBuffer, errorBytes, verbose}}
	l.values = []uintptr{uintptr(unsafe.Pointer(&l.info[0])), bytes, uintptr(unsafe.Pointer(&l.errs[0])), bytes, 1}
	l.pin.Pin(&l.info[0])
	l.pin.Pin(&l.errs[0])
	l.pin.Pin(&l.names[0])
	l.pin.Pin(&l.values[0])
	return l
}

func (l *compilerLog) close()       { l.pin.Unpin() }
func (l *compilerLog) said() string { return strings.TrimSpace(cString(&l.info[0])) }

// explain adds what the compiler complained about.
func (l *compilerLog) explain(err error) error {
	return fmt.Errorf("%w: %s", err, strings.TrimSpace(cString(&l.errs[0])))
}

// options are the three arguments that driver calls take them by.
func (l *compilerLog) options() (n, names, values uintptr) {
	return uintptr(len(l.names)), uintptr(unsafe.Pointer(&l.names[0])), uintptr(unsafe.Pointer(&l.values[0]))
}

// translate loads PTX through the direct JIT.
func (m *Module) translate(ptx string) error {
	l := newCompilerLog()
	defer l.close()
	n, names, values := l.options()
	text := append([]byte(ptx), 0)
	d := m.dev.driver
	err := d.check("cuModuleLoadDataEx", d.api.moduleLoadDataEx, uintptr(unsafe.Pointer(&m.handle)), uintptr(unsafe.Pointer(&text[0])), n, names, values)
	if err != nil {
		return l.explain(err)
	}
	m.Log = l.said()
	return nil
}

// Link compiles PTX to a cubin without loading it, so it may run beside kernels, and on several threads. The log names registers and spills.
func (dev *Device) Link(ptx string) (cubin []byte, log string, err error) {
	l := newCompilerLog() // the linker keeps it until it is destroyed
	defer l.close()
	d, a := dev.driver, &dev.driver.api
	var state uintptr
	n, names, values := l.options()
	if err := d.check("cuLinkCreate", a.linkCreate, n, names, values, uintptr(unsafe.Pointer(&state))); err != nil {
		return nil, "", err
	}
	defer a.linkDestroy.Call(state)
	text, label := append([]byte(ptx), 0), []byte("ptx\x00")
	const inputPTX = 1
	err = d.check("cuLinkAddData", a.linkAddData, state, inputPTX, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)), uintptr(unsafe.Pointer(&label[0])), 0, 0, 0)
	var image *byte
	var size uint64
	if err == nil {
		err = d.check("cuLinkComplete", a.linkComplete, state, uintptr(unsafe.Pointer(&image)), uintptr(unsafe.Pointer(&size)))
	}
	if err != nil {
		return nil, "", l.explain(err)
	}
	return bytes.Clone(unsafe.Slice(image, size)), l.said(), nil
}

// Close unloads the module, waiting for running kernels.
func (m *Module) Close() error {
	return m.dev.driver.check("cuModuleUnload", m.dev.driver.api.moduleUnload, m.handle)
}

// path names the file of a cubin: the same PTX gives other code under another driver or on another device.
func (c *Cache) path(dev *Device, ptx string) string {
	if c == nil || c.Dir == "" {
		return ""
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d\x00%s\x00%d.%d\x00%s", dev.driver.Version, dev.Name, dev.Major, dev.Minor, ptx)
	return filepath.Join(c.Dir, hex.EncodeToString(h.Sum(nil))+".cubin")
}

// readCubin returns a cached cubin, or nil where there is none or its check sum is wrong: then it is compiled anew.
func readCubin(path string) []byte {
	b, err := os.ReadFile(path)
	if path == "" || err != nil || len(b) <= sha256.Size {
		return nil
	}
	sum := sha256.Sum256(b[sha256.Size:])
	if !bytes.Equal(sum[:], b[:sha256.Size]) {
		return nil
	}
	return b[sha256.Size:]
}

// writeCubin stores check sum and cubin under a temporary name and renames it, so that readers see all or nothing.
func writeCubin(path string, cubin []byte) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cuda: cubin cache: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".cubin-*")
	if err != nil {
		return fmt.Errorf("cuda: cubin cache: %w", err)
	}
	defer os.Remove(f.Name())
	sum := sha256.Sum256(cubin)
	_, err = f.Write(append(sum[:], cubin...))
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cuda: cubin cache: %w", err)
	}
	return nil
}
