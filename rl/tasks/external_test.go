package tasks

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mode, in the environment, makes the test binary a verifier.
const mode = "HEDDLE_TEST_VERIFIER"

func TestMain(m *testing.M) {
	if how := os.Getenv(mode); how != "" {
		play(how)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func play(how string) {
	switch how {
	case "good":
		in := make([]byte, 1<<16)
		n, _ := os.Stdin.Read(in)
		reward := 0
		if strings.Contains(string(in[:n]), `"completion":"42"`) && strings.Contains(string(in[:n]), `"answer":"forty-two"`) {
			reward = 1
		}
		fmt.Printf(`{"reward": %d, "lost": %d}`, reward, reward*2)
	case "crash":
		panic("broken verifier")
	case "hang":
		time.Sleep(time.Minute)
	case "flood":
		for {
			fmt.Println(strings.Repeat("x", 4096))
		}
	case "nonsense":
		fmt.Print("reward: yes")
	case "no reward":
		fmt.Print(`{"lost": 1}`)
	case "infinite":
		fmt.Print(`{"reward": 1e999}`)
	case "memory":
		var held [][]byte
		for range 64 {
			b := make([]byte, 64<<20)
			for i := range b {
				b[i] = 1
			}
			held = append(held, b)
		}
		fmt.Printf(`{"reward": %d}`, len(held))
	case "network":
		if c, err := net.DialTimeout("tcp", os.Getenv("HEDDLE_TEST_ADDR"), time.Second); err == nil {
			c.Close()
			fmt.Print(`{"reward": 1}`)
			return
		}
		fmt.Print(`{"reward": 0}`)
	}
}

func verifier(t *testing.T, how string, l Limits) *External {
	t.Helper()
	t.Setenv(mode, how)
	if how == "memory" {
		l.Memory = 1 << 30
	} else if l.Memory == 0 {
		l.Memory = 1 << 46 // this test binary is the verifier, and the race detector maps much
	}
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "{\"id\": \"q%d\", \"prompt\": \"what is %d plus 1?\", \"answer\": \"forty-two\", \"level\": %d}\n", i, i, i%2*3)
	}
	file := filepath.Join(t.TempDir(), "prompts.jsonl")
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	task, err := Load(file, []string{self}, 100, l)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func TestExternalVerifierJudges(t *testing.T) {
	task := verifier(t, "good", Limits{})
	if task.Levels() != 2 {
		t.Fatalf("%d levels; those without prompts do not count", task.Levels())
	}
	p := task.Prompt(Draw{Level: 1})
	for completion, want := range map[string]Verdict{"42": {1, 2}, "41": {0, 0}, "": {0, 0}} {
		if v, err := task.Verify(context.Background(), p, completion); err != nil || v != want {
			t.Errorf("%q: %+v %v, want %+v", completion, v, err, want)
		}
	}
	for i := range uint64(20) {
		if heldOut(task.Prompt(Draw{Index: i, HeldOut: true}).Text) == heldOut(task.Prompt(Draw{Index: i}).Text) {
			t.Fatal("held-out and other prompts mix")
		}
	}
}

// A verifier that crashes, hangs, floods, or says nothing that can be read, is an error that says which; it takes no longer than its time.
func TestFailingVerifiersAreErrorsThatSayWhy(t *testing.T) {
	for how, says := range map[string]string{"crash": "broken verifier", "hang": "longer than 200ms", "flood": "more than 10000 bytes", "nonsense": `wrote "reward: yes"`,
		"no reward": "want {", "infinite": "1e999", "memory": "exit status"} {
		l := Limits{Time: 10 * time.Second, Output: 10000}
		switch how {
		case "hang":
			l.Time = 200 * time.Millisecond
		case "crash": // a traceback needs some room, and Go much address space
			l.Output = 64 << 10
		}
		task := verifier(t, how, l)
		start := time.Now()
		v, err := task.Verify(context.Background(), task.Prompt(Draw{}), "x")
		if err == nil || !strings.Contains(err.Error(), says) || v != (Verdict{}) {
			t.Errorf("%s: %+v, %v; want %q", how, v, err, says)
		}
		if took := time.Since(start); took > l.Time+5*time.Second {
			t.Errorf("%s: took %v", how, took)
		}
	}
}

// The context of the run ends a call too.
func TestCallEndsWithItsContext(t *testing.T) {
	task := verifier(t, "hang", Limits{Time: time.Minute})
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := task.Verify(ctx, task.Prompt(Draw{}), "x"); err == nil || time.Since(start) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

func TestVerifierHasNoNetworkWhereTheSystemAllows(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("no loopback here: %v", err)
	}
	defer l.Close()
	t.Setenv("HEDDLE_TEST_ADDR", l.Addr().String())
	task := verifier(t, "network", Limits{Time: 20 * time.Second})
	v, err := task.Verify(context.Background(), task.Prompt(Draw{}), "x")
	if err != nil {
		t.Fatal(err)
	}
	if v.Reward == 1 {
		if namespaces() {
			t.Error("the verifier reached a port of this machine")
		} else {
			t.Skip("this system gives an ordinary user no network namespace")
		}
	}
}

func namespaces() bool {
	cmd := []string{"true"}
	c := exec.Command(cmd[0])
	isolate(c, false)
	return c.Run() == nil
}

func TestPromptFilesAreRefusedByLine(t *testing.T) {
	many := ""
	for i := range 30 {
		many += fmt.Sprintf("{\"prompt\": \"p%d\"}\n", i)
	}
	for text, says := range map[string]string{
		"": "no prompts", "{\"prompt\": \"a\"}\n": "more prompts", many + "{": "line 31", many + "{\"prompt\": \"\"}": "line 31", many + "{\"prompt\": \"x\", \"level\": -1}": "level of",
		many + "{\"prompt\": \"x\", \"other\": 1}": "other", many + "{\"id\": \"line 3\", \"prompt\": \"x\"}": "that of line 3", many + "{\"prompt\": \"" + strings.Repeat("x", 2<<20) + "\"}": "line 31",
	} {
		err := (&External{}).read(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60q: %v, want %q", text, err, says)
		}
	}
	if err := (&External{}).read(strings.NewReader(many)); err != nil {
		t.Error(err)
	}
	if _, err := Load("nowhere.jsonl", []string{"/bin/true"}, 10, Limits{}); err == nil {
		t.Error("a file that is not there was read")
	}
	if _, err := Load("nowhere.jsonl", nil, 10, Limits{}); err == nil || !strings.Contains(err.Error(), "hint") {
		t.Errorf("%v", err)
	}
}

func TestLimitsHaveDefaults(t *testing.T) {
	l := Limits{Output: 7}.filled()
	if l.Output != 7 || l.Time <= 0 || l.Memory <= 0 || math.IsInf(l.Time.Seconds(), 0) {
		t.Errorf("%+v", l)
	}
}
