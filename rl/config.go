// Package rl reinforces a model on tasks that a program can check: rollouts, rewards, the policy gradient, synchronous and not.
//
// A Learner holds the ranks of a model and its optimiser and takes steps; a Generator draws completions from weights of its own, which may be older; Trainer
// joins them. Experiment is the whole comparison: supervised to a plateau, then reinforcement beside the same time of further supervision.
//
// Read Config, then Trainer (trainer.go), then learner.go and generator.go. rl/grpo is the loss, rl/tasks are the tasks, async.go is generation that runs
// ahead of learning.
package rl

import (
	"errors"
	"fmt"
	"time"

	"heddle/model"
	"heddle/optim"
	"heddle/parallel"
	"heddle/rl/grpo"
	"heddle/rl/tasks"
	"heddle/train"
)

// Config is an experiment. Preset fills it; a file and flags change it.
type Config struct {
	Init      string          `yaml:"init" json:"init"` // a Hugging Face folder or .gguf file to start from: its weights, shape and tokenizer; empty: fresh
	Task      Task            `yaml:"task" json:"task"`
	Model     model.Config    `yaml:"model" json:"model"` // vocab 0: the task's symbols
	Parallel  parallel.Layout `yaml:"parallel" json:"parallel"`
	Workers   int             `yaml:"workers" json:"workers"` // that generate, one thread each
	Seed      uint64          `yaml:"seed" json:"seed"`
	Seeds     int             `yaml:"seeds" json:"seeds"` // repetitions, each with a task and a model of its own
	Supervise Supervise       `yaml:"supervise" json:"supervise"`
	Reinforce Reinforce       `yaml:"reinforce" json:"reinforce"`
	Staleness Staleness       `yaml:"staleness" json:"staleness"`
	Eval      Eval            `yaml:"eval" json:"eval"`
	On        train.Machine   `yaml:"-" json:"-"`     // what learns; generation is the CPU's
	Out       string          `yaml:"out" json:"out"` // folder of the run; empty: runs/rl- and the time
}

// Task names a task and its sizes; sizes that the task does not have are ignored.
type Task struct {
	Name   string `yaml:"name" json:"name"`     // path, mul, countdown, add, arithmetic, or external
	Layers int    `yaml:"layers" json:"layers"` // path: of the graph
	Width  int    `yaml:"width" json:"width"`
	Degree int    `yaml:"degree" json:"degree"`
	Least  int    `yaml:"least" json:"least"`   // path: edges between start and goal, at least
	Shown  bool   `yaml:"shown" json:"shown"`   // path: each prompt has a graph of its own and lists it
	Digits int    `yaml:"digits" json:"digits"` // add, mul: of the operands
	Most   int    `yaml:"most" json:"most"`     // countdown: the largest number

	File    string   `yaml:"file" json:"file"`       // external: prompts, JSONL
	Command []string `yaml:"command" json:"command"` // external: the verifier
	Longest int      `yaml:"longest" json:"longest"` // external: bytes of a completion
	Seconds float64  `yaml:"seconds" json:"seconds"` // external: of one call of the verifier; 0: 5
	Memory  int64    `yaml:"memory" json:"memory"`   // external: bytes of its address space; 0: 4 GiB
	Output  int      `yaml:"output" json:"output"`   // external: bytes that it may write; 0: 64 KiB
}

// Supervise is learning from demonstrations, which comes first.
type Supervise struct {
	Steps    int          `yaml:"steps" json:"steps"`
	Batch    int          `yaml:"batch" json:"batch"`   // demonstrations of a step
	Errors   float64      `yaml:"errors" json:"errors"` // chance that a step of a demonstration is taken at random
	Optim    optim.Config `yaml:"optim" json:"optim"`
	LR       float64      `yaml:"lr" json:"lr"`
	Warmup   int          `yaml:"warmup" json:"warmup"`
	EvalEach int          `yaml:"eval_each" json:"eval_each"` // steps between looks at the held-out success; 0: none before the end
}

// Reinforce is learning from rewards.
type Reinforce struct {
	Steps       int          `yaml:"steps" json:"steps"`
	Prompts     int          `yaml:"prompts" json:"prompts"`   // of a step
	Group       int          `yaml:"group" json:"group"`       // completions of a prompt
	Epochs      int          `yaml:"epochs" json:"epochs"`     // passes over them
	Resample    int          `yaml:"resample" json:"resample"` // dynamic sampling: most draws of a step, until there are enough groups of mixed rewards; 1: one draw, whatever comes
	Temperature float64      `yaml:"temperature" json:"temperature"`
	Loss        grpo.Config  `yaml:"loss" json:"loss"`
	Optim       optim.Config `yaml:"optim" json:"optim"`
	LR          float64      `yaml:"lr" json:"lr"`
	Rows        int          `yaml:"rows" json:"rows"`           // sequences of a micro-batch, at most; 0: all at once
	Verifiers   int          `yaml:"verifiers" json:"verifiers"` // that judge at once
	SaveEvery   int          `yaml:"save_every" json:"save_every"`
	EvalEach    int          `yaml:"eval_each" json:"eval_each"`
}

// Eval is how success is measured: held-out prompts, completions of each, drawn at temperature 1.
type Eval struct {
	Prompts int `yaml:"prompts" json:"prompts"`
	Samples int `yaml:"samples" json:"samples"`
}

// Preset is a configuration that is known to work: quick takes minutes on two cores, tiny seconds (tests and smoke), text is for a model with a tokenizer.
func Preset(task, name string) (Config, error) {
	loss, err := grpo.Preset("dapo")
	if err != nil {
		return Config{}, err
	}
	loss.Overlong = grpo.Keep
	adam := optim.Config{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Clip: 1}
	c := Config{
		Task:      Task{Name: task, Layers: 8, Width: 8, Degree: 3, Least: 3, Digits: 2, Most: 20},
		Model:     model.Config{Layers: 2, Hidden: 64, Heads: 4, KV: 2, Head: 16, MLP: 192, Theta: 1e4, Eps: 1e-6, Tied: true, Std: 0.08},
		Parallel:  parallel.Layout{DP: 2},
		Workers:   2,
		Seed:      1,
		Seeds:     3,
		Supervise: Supervise{Steps: 500, Batch: 128, Errors: 0.35, Optim: adam, LR: 3e-3, Warmup: 20, EvalEach: 100},
		Reinforce: Reinforce{Steps: 100, Prompts: 48, Group: 8, Epochs: 1, Resample: 1, Temperature: 1, Loss: loss, Optim: adam, LR: 1e-3, Verifiers: 2, EvalEach: 20},
		Staleness: Staleness{Old: Drop, Sync: AtRounds},
		Eval:      Eval{Prompts: 256, Samples: 8},
	}
	switch name {
	case "quick":
	case "text":
		c.Supervise.Steps, c.Parallel, c.Task.Digits = 0, parallel.Layout{}, 2
		c.Reinforce.Steps, c.Reinforce.Prompts, c.Reinforce.LR, c.Reinforce.Rows, c.Reinforce.EvalEach = 20, 16, 5e-6, 16, 10
		c.Eval = Eval{Prompts: 128, Samples: 2}
	case "tiny":
		c.Task.Layers, c.Task.Width, c.Task.Degree, c.Task.Least, c.Task.Digits = 4, 4, 2, 2, 1
		c.Model.Layers, c.Model.Hidden, c.Model.Heads, c.Model.KV, c.Model.MLP = 1, 32, 2, 1, 64
		c.Seeds, c.Supervise.Steps, c.Supervise.Batch, c.Supervise.Warmup = 2, 60, 32, 5
		c.Reinforce.Steps, c.Reinforce.Prompts, c.Reinforce.Group = 10, 8, 4
		c.Eval = Eval{Prompts: 16, Samples: 4}
	default:
		return c, fmt.Errorf("rl: no preset %q; hint: quick, tiny or text", name)
	}
	return c, nil
}

// Check refuses what cannot run, before anything is allocated.
func (c *Config) Check() error {
	for _, x := range []struct {
		name        string
		n, lo, most int
	}{{"seeds", c.Seeds, 1, 1000}, {"workers", c.Workers, 1, 256}, {"supervise.steps", c.Supervise.Steps, 0, 1 << 30}, {"supervise.batch", c.Supervise.Batch, 1, 1 << 20},
		{"supervise.warmup", c.Supervise.Warmup, 0, 1 << 30}, {"reinforce.steps", c.Reinforce.Steps, 0, 1 << 30}, {"reinforce.prompts", c.Reinforce.Prompts, 1, 1 << 20},
		{"reinforce.group", c.Reinforce.Group, 2, 1 << 16}, {"reinforce.epochs", c.Reinforce.Epochs, 1, 1000}, {"reinforce.resample", c.Reinforce.Resample, 1, 1000},
		{"reinforce.verifiers", c.Reinforce.Verifiers, 1, 1 << 12}, {"reinforce.save_every", c.Reinforce.SaveEvery, 0, 1 << 30}, {"eval.prompts", c.Eval.Prompts, 1, 1 << 20}, {"eval.samples", c.Eval.Samples, 1, 1 << 16}} {
		if x.n < x.lo || x.n > x.most {
			return fmt.Errorf("rl: %s is %d, want %d to %d", x.name, x.n, x.lo, x.most)
		}
	}
	switch r := c.Reinforce; {
	case !(c.Supervise.Errors >= 0 && c.Supervise.Errors <= 1):
		return fmt.Errorf("rl: supervise.errors is %g, want a chance of 0 to 1", c.Supervise.Errors)
	case !(c.Supervise.LR > 0) || !(r.LR > 0) || c.Supervise.LR > 1e3 || r.LR > 1e3:
		return fmt.Errorf("rl: supervise.lr %g and reinforce.lr %g, want more than 0", c.Supervise.LR, r.LR)
	case r.Temperature != 1:
		return fmt.Errorf("rl: reinforce.temperature is %g: the loss takes log-probabilities of the policy itself, so that rollouts must be drawn from it; hint: 1", r.Temperature)
	case r.Resample > 1 && !r.Loss.DropEqual:
		return fmt.Errorf("rl: reinforce.resample of %d looks for groups of mixed rewards, but the loss keeps the others; hint: reinforce.loss.drop_equal=true", r.Resample)
	case c.Staleness.Ahead > 0 && r.Loss.ImportanceCap == 0:
		return fmt.Errorf("rl: staleness.ahead is %d: older policies draw the tokens, and nothing makes up for it; hint: reinforce.loss.importance_cap=2", c.Staleness.Ahead)
	}
	return errors.Join(c.Reinforce.Loss.Check(), c.Staleness.Check())
}

// task makes the task of a repetition.
func (t Task) New(seed uint64) (tasks.Task, error) {
	if t.Digits < 1 || t.Digits > 5 {
		return nil, fmt.Errorf("rl: task.digits is %d, want 1 to 5", t.Digits)
	}
	switch t.Name {
	case "path":
		return tasks.NewPath(tasks.Path{Seed: seed, Layers: t.Layers, Width: t.Width, Degree: t.Degree, Least: t.Least, Shown: t.Shown})
	case "mul":
		return tasks.Multiplication{First: t.Digits, Second: t.Digits}, nil
	case "add":
		return tasks.Addition{Digits: t.Digits}, nil
	case "arithmetic":
		return tasks.Arithmetic{Digits: t.Digits}, nil
	case "countdown":
		if t.Most < 2 || t.Most > 999 {
			return nil, fmt.Errorf("rl: task.most is %d, want 2 to 999", t.Most)
		}
		return tasks.Countdown{Largest: t.Most}, nil
	case "external":
		if t.Longest < 1 || t.Longest > 1<<20 || !(t.Seconds >= 0 && t.Seconds <= 1e6) || t.Memory < 0 || t.Output < 0 {
			return nil, fmt.Errorf("rl: task.longest is %d, task.seconds %g, task.memory %d, task.output %d, want 1 to 2^20, and none below 0", t.Longest, t.Seconds, t.Memory, t.Output)
		}
		return tasks.Load(t.File, t.Command, t.Longest, tasks.Limits{Time: time.Duration(t.Seconds * float64(time.Second)), Memory: t.Memory, Output: t.Output})
	}
	return nil, fmt.Errorf("rl: no task %q; hint: path, mul, countdown, add, arithmetic or external", t.Name)
}
