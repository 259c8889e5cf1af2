package cuda

import (
	"fmt"
	"unsafe"

	"heddle/internal/dl"
)

// Error is a refusal of the driver.
type Error struct {
	Call   string // the driver's function
	Code   int32  // CUresult
	Name   string // CUDA_ERROR_…
	Text   string // the driver's own sentence
	Kernel string // the kernel concerned, where there is one
}

const (
	codeNoDevice = 100
	codeNotReady = 600
)

func (e *Error) Error() string {
	s := fmt.Sprintf("cuda: %s: %s (%d, %s)", e.Call, e.Name, e.Code, e.Text)
	if e.Kernel != "" {
		s += ", kernel " + e.Kernel
	}
	return s
}

// check makes a call and turns its status into an error. Words written as uintptr(unsafe.Pointer(&x)) stay alive and unmoved during it.
//
//go:uintptrescapes
func (d *Driver) check(name string, f dl.Func, words ...uintptr) error {
	if code := f.Call(words...); code != 0 {
		return d.failure(name, code)
	}
	return nil
}

// failure asks the driver what a status means. It is apart from check, so that hot paths stay small.
func (d *Driver) failure(call string, code int32) *Error {
	return &Error{Call: call, Code: code, Name: d.text(d.api.getErrorName, code, "unknown code"), Text: d.text(d.api.getErrorString, code, "no text")}
}

func (d *Driver) text(f dl.Func, code int32, otherwise string) string {
	var s *byte // C string of the driver, never freed
	if f.Call(uintptr(uint32(code)), uintptr(unsafe.Pointer(&s))) != 0 || s == nil {
		return otherwise
	}
	return cString(s)
}

// cString copies a NUL-terminated string of at most 4 KiB.
func cString(s *byte) string {
	n := 0
	for n < 4096 && *(*byte)(unsafe.Add(unsafe.Pointer(s), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(s, n))
}
