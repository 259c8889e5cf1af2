package tasks

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"
)

// Limits hold one call of a verifier command. The zero value takes the defaults: 5 s, 4 GiB, 64 KiB.
type Limits struct {
	Time   time.Duration `json:"time"`
	Memory int64         `json:"memory"` // bytes of address space; where the system has such a limit
	Output int           `json:"output"` // bytes of standard output and error together
}

func (l Limits) filled() Limits {
	return Limits{cmp.Or(l.Time, 5*time.Second), cmp.Or(l.Memory, 4<<30), cmp.Or(l.Output, 64<<10)}
}

// External is a task of somebody else's: prompts from a JSONL file, completions judged by a command. Each line has "prompt" and, if wanted, "id", "answer" and
// "level". The command is started without a shell, once a completion, in a process group and, where the system lets an ordinary user do so, a network
// namespace of its own. It reads one JSON object with prompt, answer and completion from standard input and writes one with "reward" and, if it can tell,
// "lost", the byte at which the completion was lost. Anything else, a crash, a time-out, a flood of output, is an error: the completion is unscorable.
type External struct {
	File    string
	Command []string
	Limits  Limits

	levels [][2][]Prompt // of a level: trained on, held out
	prompt int           // bytes of the longest
	answer int           // bytes that a completion may have
}

const mostFile = 1 << 30

// Load reads the prompts. longest is how many bytes a completion may have.
func Load(file string, command []string, longest int, limits Limits) (*External, error) {
	if len(command) == 0 {
		return nil, errors.New("tasks: no verifier command; hint: --verify ./check")
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return nil, fmt.Errorf("tasks: verifier: %w", err)
	}
	t := &External{File: file, Command: append([]string{path}, command[1:]...), Limits: limits.filled(), answer: longest}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("tasks: %w", err)
	}
	defer f.Close()
	if err := t.read(f); err != nil {
		return nil, fmt.Errorf("tasks: %s: %w", file, err)
	}
	return t, nil
}

func (t *External) read(r io.Reader) error {
	lines := bufio.NewScanner(io.LimitReader(r, mostFile))
	lines.Buffer(nil, 1<<20)
	seen := map[string]int{}
	n := 0
	for lines.Scan() {
		if n++; len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		p := Prompt{ID: "line " + strconv.Itoa(n)}
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&p); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if p.Text == "" || p.Level < 0 || p.Level > 1000 {
			return fmt.Errorf("line %d: prompt of %d bytes at level %d, want text and a level of 0 to 1000", n, len(p.Text), p.Level)
		}
		if before := seen[p.ID]; before > 0 {
			return fmt.Errorf("line %d: id %q is that of line %d", n, p.ID, before)
		}
		seen[p.ID] = n
		t.add(p)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	t.levels = slices.DeleteFunc(t.levels, func(l [2][]Prompt) bool { return len(l[0])+len(l[1]) == 0 })
	for i, l := range t.levels {
		if len(l[0]) == 0 || len(l[1]) == 0 {
			return fmt.Errorf("difficulty %d has %d prompts to train on and %d held out (a quarter by chance), want one of each; hint: more prompts", i, len(l[0]), len(l[1]))
		}
	}
	if len(t.levels) == 0 {
		return errors.New("no prompts")
	}
	return nil
}

func (t *External) add(p Prompt) {
	for len(t.levels) <= p.Level {
		t.levels = append(t.levels, [2][]Prompt{})
	}
	kind := 0
	if heldOut(p.Text) {
		kind = 1
	}
	t.levels[p.Level][kind] = append(t.levels[p.Level][kind], p)
	t.prompt = max(t.prompt, len(p.Text))
}

func (t *External) Name() string                      { return "external" }
func (t *External) Levels() int                       { return len(t.levels) }
func (t *External) Alphabet() []string                { return nil }
func (t *External) Longest() (prompt, completion int) { return t.prompt, t.answer }

// Prompt draws one of a level's.
func (t *External) Prompt(d Draw) Prompt {
	kind := 0
	if d.HeldOut {
		kind = 1
	}
	list := t.levels[d.Level][kind]
	return list[Random(d.Seed, d.Index, "external").IntN(len(list))]
}

// Verify runs the command.
func (t *External) Verify(ctx context.Context, p Prompt, completion string) (Verdict, error) {
	in, err := json.Marshal(map[string]string{"id": p.ID, "prompt": p.Text, "answer": p.Answer, "completion": completion})
	if err != nil {
		return Verdict{}, err
	}
	out, err := confined(ctx, t.Command, in, t.Limits)
	if err != nil {
		return Verdict{}, fmt.Errorf("tasks: verifier %s: %w", t.Command[0], err)
	}
	v := struct {
		Reward *float64 `json:"reward"`
		Lost   *int     `json:"lost"`
	}{}
	if err := json.Unmarshal(out, &v); err != nil {
		return Verdict{}, fmt.Errorf("tasks: verifier %s wrote %q: %w", t.Command[0], clip(out), err)
	}
	if v.Reward == nil || math.IsInf(*v.Reward, 0) || math.Abs(*v.Reward) > 1e6 {
		return Verdict{}, fmt.Errorf("tasks: verifier %s wrote %q, want {\"reward\": a number of at most 1e6}", t.Command[0], clip(out))
	}
	lost := Kept
	if v.Lost != nil && *v.Lost >= 0 && *v.Lost <= len(completion) {
		lost = *v.Lost
	}
	return Verdict{Reward: *v.Reward, Lost: lost}, nil
}

func clip(b []byte) string {
	if len(b) > 80 {
		return string(b[:77]) + "..."
	}
	return string(b)
}
