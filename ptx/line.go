package ptx

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// Line remembers where the kernel's author wrote something. It is resolved only when somebody asks.
type Line struct{ pcs [8]uintptr }

func here(skip int) Line {
	var l Line
	runtime.Callers(skip+2, l.pcs[:])
	return l
}

// String is file:line of the innermost frame outside this package.
func (l Line) String() string {
	if l.pcs[0] == 0 {
		return "?"
	}
	frames := runtime.CallersFrames(l.pcs[:])
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "heddle/ptx.") {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			return "?"
		}
	}
}
