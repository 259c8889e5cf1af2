//go:build linux && (amd64 || arm64) && !nogpu

package dl

import (
	"fmt"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Library is an opened shared library. It is never closed: drivers keep threads inside.
type Library struct {
	path   string
	handle uintptr
}

// Open opens a library by file name (the loader searches its usual places) or by path.
func Open(path string) (*Library, error) {
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("dl: %w", err) // the message names the path
	}
	return &Library{path, h}, nil
}

// Path is the name the library was opened by.
func (l *Library) Path() string { return l.path }

// Func finds a function.
func (l *Library) Func(name string) (Func, error) {
	p, err := purego.Dlsym(l.handle, name)
	if err != nil || p == 0 {
		return 0, fmt.Errorf("dl: %s has no %s", l.path, name)
	}
	return Func(p), nil
}

//go:linkname cgocall runtime.cgocall
//go:noescape
func cgocall(fn, arg unsafe.Pointer) int32

// trampoline (assembly) is entered with the C calling convention on the scheduler's stack; its address is all that Go needs.
func trampolineAddr() unsafe.Pointer

func invoke(f *frame) int32 { return cgocall(trampolineAddr(), unsafe.Pointer(f)) }

// Thread is the number of the calling thread, as Linux and profilers count.
func Thread() int { return syscall.Gettid() }
