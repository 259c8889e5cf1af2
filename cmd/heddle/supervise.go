package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"heddle/internal/cli"
)

// childMark tells a process that it is the child of supervise.
const childMark = "HEDDLE_SUPERVISED"

// supervise runs body in a child process, which is this very command again, and kills it at limit or after stall without a word: a kernel that hangs cannot be stopped from inside its process.
func supervise(ctx context.Context, env *cli.Env, limit, stall time.Duration, body func() error) error {
	if os.Getenv(childMark) != "" {
		return body()
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return watch(ctx, env, limit, stall, self, os.Args[1:]...)
}

// watch runs a program under supervise's two limits and passes on what it prints.
func watch(ctx context.Context, env *cli.Env, limit, stall time.Duration, program string, args ...string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), childMark+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	quiet := time.AfterFunc(stall, func() { cancel(fmt.Errorf("silent for %v: a kernel or a call hangs; killed", stall)) })
	defer quiet.Stop()
	defer time.AfterFunc(limit, func() { cancel(fmt.Errorf("ran past its limit of %v; killed", limit)) }).Stop()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = env.In, &watched{env.Out, quiet, stall}, &watched{env.Err, quiet, stall}
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil {
		return cli.Exit(cli.Failed, cause)
	}
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		if e.ExitCode() < 0 {
			return cli.Exitf(cli.Failed, "the child process died: %v", e)
		}
		return cli.Exited(e.ExitCode())
	}
	return err
}

// watched passes output on and pushes the stall timer back.
type watched struct {
	w     io.Writer
	quiet *time.Timer
	stall time.Duration
}

func (w *watched) Write(p []byte) (int, error) {
	w.quiet.Reset(w.stall)
	return w.w.Write(p)
}
