//go:build !linux || !(amd64 || arm64) || nogpu

package dl

// Library is an opened shared library; this build opens none.
type Library struct{}

// Open answers ErrBuiltWithout.
func Open(string) (*Library, error) { return nil, ErrBuiltWithout }

// Path is the name the library was opened by.
func (l *Library) Path() string { return "" }

// Func answers ErrBuiltWithout.
func (l *Library) Func(string) (Func, error) { return 0, ErrBuiltWithout }

func invoke(*frame) int32 { panic(ErrBuiltWithout) } // no Func exists without a Library

// Callback has nobody to call it.
func Callback(func(a, b, c, d, e uintptr) uintptr) uintptr { return 0 }

// Thread is not known here.
func Thread() int { return 0 }
