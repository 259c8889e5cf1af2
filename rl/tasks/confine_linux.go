package tasks

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolate puts the command into a process group of its own and, unless network, into a network namespace with nothing in it. For that it needs a user
// namespace, in which it keeps its own user.
func isolate(cmd *exec.Cmd, network bool) {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if !network {
		a.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
	cmd.SysProcAttr = a
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

func limitMemory(pid int, bytes int64) error {
	return unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)}, nil)
}

func gone(err error) bool { return errors.Is(err, syscall.ESRCH) }

func killGroup(pid int) { syscall.Kill(-pid, syscall.SIGKILL) }
