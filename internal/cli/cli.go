// Package cli holds what every verb of the command line shares: streams, exit codes and the two output forms.
//
// A verb returns data; Env prints it, as one JSON object under --json or as text for people. Start with Env.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// Exit codes of the heddle command.
const (
	OK      = 0
	Failed  = 1  // something went wrong while running
	Usage   = 2  // the command line makes no sense
	Invalid = 3  // configuration or data is invalid; nothing was written
	Absent  = 4  // a GPU, driver, library or program is missing
	Check   = 5  // a check failed: parity, gate
	Retry   = 75 // the same command may succeed later
	Signal  = 128
)

// Error is an error that knows its exit code and, where there is one, the next thing to type.
type Error struct {
	Code int
	Err  error
	Hint string
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + "; hint: " + e.Hint
}

func (e *Error) Unwrap() error { return e.Err }

// Exit wraps err with an exit code.
func Exit(code int, err error) error { return &Error{Code: code, Err: err} }

// Exitf makes an error with an exit code.
func Exitf(code int, format string, args ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// Signaled is the cause that ends a context when the process is asked to stop.
type Signaled syscall.Signal

func (s Signaled) Error() string { return syscall.Signal(s).String() }

// Stopped is an error of a verb that the context's end cut short; its code is 128 and the signal's number.
func Stopped(ctx context.Context, format string, args ...any) error {
	code := Signal + int(syscall.SIGINT)
	if s, ok := errors.AsType[Signaled](context.Cause(ctx)); ok {
		code = Signal + int(s)
	}
	return Exitf(code, format, args...)
}

// Exited is the exit code of a child process that has already said why.
type Exited int

func (e Exited) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Code is the exit code of err: 0 for nil, Failed where err does not say.
func Code(err error) int {
	if err == nil {
		return OK
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	if e, ok := errors.AsType[Exited](err); ok {
		return int(e)
	}
	return Failed
}

// Env is what a verb may touch of the world: streams and how to print on them.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	JSON     bool // one JSON object on Out, talk on Err
	Color    bool // Out is a terminal that wants colour
	Terminal bool // Err is a terminal: progress may redraw its line

	emitted bool // Out has the result already: an error goes to Err, so that Out stays one JSON object
}

// Emit prints a result: v as one JSON object under --json, else whatever text writes. It returns the stream's first error.
func (e *Env) Emit(v any, text func(w io.Writer)) error {
	e.emitted = true
	if e.JSON {
		enc := json.NewEncoder(e.Out)
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	out := &failing{w: e.Out}
	text(out)
	return out.err
}

// failing remembers the first error of a writer, which text written line by line would lose, and writes nothing after it.
type failing struct {
	w   io.Writer
	err error
}

func (f *failing) Write(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	var n int
	n, f.err = f.w.Write(p)
	return n, f.err
}

// Report prints err for the user and returns its exit code. Under --json the error is a JSON object on Out,
// unless a result stands there.
func (e *Env) Report(err error) int {
	code := Code(err)
	if _, said := errors.AsType[Exited](err); said || code == OK {
		return code
	}
	if e.JSON && !e.emitted {
		text, hint, ok := strings.Cut(err.Error(), "; hint: ") // libraries write their hints so, too
		o := map[string]any{"error": text, "code": code}
		if ok {
			o["hint"] = hint
		}
		json.NewEncoder(e.Out).Encode(o)
		return code
	}
	fmt.Fprintln(e.Err, "heddle:", err)
	return code
}

// IsTerminal tells whether f is a character device.
func IsTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
