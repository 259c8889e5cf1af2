package tasks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// confined runs a command within limits and returns its standard output. What it started dies with it.
func confined(ctx context.Context, command []string, in []byte, l Limits) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(l.Time, func() { cancel(fmt.Errorf("ran longer than %v; killed", l.Time)) }).Stop()
	room := &room{left: l.Output, full: func() { cancel(fmt.Errorf("wrote more than %d bytes; killed", l.Output)) }}
	var out, errs bytes.Buffer
	build := func(network bool) *exec.Cmd {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		isolate(cmd, network)
		cmd.Stdin = bytes.NewReader(in)
		cmd.Stdout, cmd.Stderr = within{room, &out}, within{room, &errs}
		cmd.WaitDelay = time.Second // a grandchild may hold the pipes
		return cmd
	}
	cmd := build(false)
	if err := cmd.Start(); err != nil { // the system may refuse a network namespace to an ordinary user
		if cmd = build(true); cmd.Start() != nil {
			return nil, err
		}
	}
	// The limit is set on the running child: it may hold more by then, but can take no more.
	limited := limitMemory(cmd.Process.Pid, l.Memory)
	err := cmd.Wait()
	killGroup(cmd.Process.Pid)
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return nil, cause
	case err != nil:
		return nil, fmt.Errorf("%w; it said %q", err, clip(errs.Bytes()))
	case limited != nil && !gone(limited):
		return nil, fmt.Errorf("its memory cannot be limited: %w", limited)
	}
	return out.Bytes(), nil
}

// room is how much two streams may still write together.
type room struct {
	mu   sync.Mutex
	left int
	full func()
}

type within struct {
	room *room
	w    io.Writer
}

func (w within) Write(p []byte) (int, error) {
	w.room.mu.Lock()
	defer w.room.mu.Unlock()
	if w.room.left -= len(p); w.room.left < 0 {
		w.room.full()
		return 0, io.ErrShortWrite
	}
	return w.w.Write(p)
}
