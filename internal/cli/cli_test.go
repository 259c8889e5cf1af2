package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
)

// after fails once limit bytes are written, as a full disk or a closed pipe does.
type after struct {
	limit int
	err   error
	got   bytes.Buffer
}

func (a *after) Write(p []byte) (int, error) {
	n := min(len(p), a.limit-a.got.Len())
	a.got.Write(p[:n])
	if n < len(p) {
		return n, a.err
	}
	return n, nil
}

func TestEmitReturnsTheStreamsFirstErrorAndWritesNothingAfterIt(t *testing.T) {
	lines := func(w io.Writer) {
		for i := range 10 {
			fmt.Fprintf(w, "line %d\n", i)
		}
	}
	for _, asJSON := range []bool{false, true} {
		for _, cause := range []error{syscall.EPIPE, syscall.ENOSPC} {
			out := &after{limit: 20, err: cause}
			env := &Env{Out: out, Err: io.Discard, JSON: asJSON}
			if err := env.Emit(strings.Repeat("x", 40), lines); !errors.Is(err, cause) || out.got.Len() != 20 {
				t.Errorf("json %v: %v after %d bytes, want %v after 20", asJSON, err, out.got.Len(), cause)
			}
		}
	}
}
