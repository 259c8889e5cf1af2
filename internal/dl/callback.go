//go:build linux && (amd64 || arm64) && !nogpu

package dl

import "github.com/ebitengine/purego"

// Callback makes a C function of up to five words that calls fn, from whatever thread. It is never freed, and a process has room for some two thousand: make few.
func Callback(fn func(a, b, c, d, e uintptr) uintptr) uintptr { return purego.NewCallback(fn) }
