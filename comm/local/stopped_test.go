//go:build unix

package local

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// asStopped makes this test binary the process that is stopped.
const asStopped = "HEDDLE_TEST_STOPPED"

// Two ranks, of which one always waits for the other, in a process that sleeps for much longer than the deadline of a collective: it goes on afterwards.
// Only a rank that is missing while the process runs is late.
func TestAStoppedProcessGoesOn(t *testing.T) {
	const deadline = 400 * time.Millisecond
	if os.Getenv(asStopped) != "" {
		os.Stdout.WriteString("begun\n")
		errs := together(2, deadline, func(me int, l *Leaf) error {
			for k, start := 0, time.Now(); k < 200 && time.Since(start) < 10*time.Second; k++ {
				if me == 1 {
					time.Sleep(5 * time.Millisecond)
				}
				o := reduceOp(me, 2, 8, "slow")
				o.Seq = uint64(k)
				if err := do(l, o); err != nil {
					return err
				}
			}
			return nil
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestAStoppedProcessGoesOn$", "-test.v")
	cmd.Env = append(os.Environ(), asStopped+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	said := make([]byte, 4<<10)
	n, err := out.Read(said)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(3 * deadline)
	cmd.Process.Signal(syscall.SIGCONT)
	for n < len(said) {
		k, err := out.Read(said[n:])
		if n += k; err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, said[:n])
	}
}
