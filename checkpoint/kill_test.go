package checkpoint

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"heddle/internal/atomicfile"
)

const childEnv = "HEDDLE_CHECKPOINT_CHILD" // the folder a child process saves in until it is killed

// child resumes, and saves one step after the other; it prints a step when its checkpoint is there.
func child(root string) error {
	s := Store{FS: atomicfile.OS{}, Root: root, Keep: 2}
	step := 0
	if c, _, err := Latest(root); err == nil {
		step = c.Step
		c.Close()
	}
	if err := s.Clean(step); err != nil {
		return err
	}
	for {
		step++
		if err := save(s, "flat", meta(step, 3)); err != nil {
			return err
		}
		fmt.Println(step)
	}
}

// A real process is killed 20 times at a random moment of its saving; the next goes on from a checkpoint that is whole and at least as new as the last
// one reported.
func TestProcessKilledWhileSavingGoesOn(t *testing.T) {
	if root := os.Getenv(childEnv); root != "" {
		t.Fatal(child(root))
	}
	root := t.TempDir()
	rng := rand.New(rand.NewPCG(1, 1))
	reported := 0
	for kill := range 20 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestProcessKilledWhileSavingGoesOn$")
		cmd.Env = append(os.Environ(), childEnv+"="+root)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		lines.Scan() // it runs and has saved once
		first, err := strconv.Atoi(lines.Text())
		if err != nil || first <= reported {
			t.Fatalf("kill %d: the child's first step is %q after %d", kill, lines.Text(), reported)
		}
		time.AfterFunc(time.Duration(rng.IntN(20_000))*time.Microsecond, func() { cmd.Process.Kill() })
		for reported = first; lines.Scan(); {
			if n, err := strconv.Atoi(lines.Text()); err == nil { // the last line may be cut
				reported = n
			}
		}
		cmd.Wait()
		c, damaged, err := Latest(root)
		if err != nil || damaged != nil {
			t.Fatalf("kill %d: %v, damaged %v", kill, err, damaged)
		}
		if c.Step < reported {
			t.Fatalf("kill %d: newest step is %d, the child reported %d", kill, c.Step, reported)
		}
		if err := holds(c, "one", 1, c.Step); err != nil {
			t.Fatalf("kill %d: %v", kill, err)
		}
		c.Close()
	}
	t.Logf("20 kills, %d steps saved", reported)
}
