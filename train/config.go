package train

import (
	"errors"
	"fmt"
	"strings"

	"heddle/data"
	"heddle/model"
	"heddle/model/hf"
	"heddle/optim"
	"heddle/parallel"
	"heddle/token"
)

// Config is everything a run is made of. Default fills it; a file and flags change it.
type Config struct {
	Init     string          `yaml:"init" json:"init"` // a Hugging Face folder or a .gguf file to start from: its weights, shape and tokenizer; empty: fresh
	Model    model.Config    `yaml:"model" json:"model"`
	Parallel parallel.Layout `yaml:"parallel" json:"parallel"`
	Data     Data            `yaml:"data" json:"data"`
	Optim    optim.Config    `yaml:"optim" json:"optim"`
	Schedule optim.Schedule  `yaml:"schedule" json:"schedule"`

	Seq        int          `yaml:"seq" json:"seq"`               // S, tokens of a sequence
	Batch      int          `yaml:"batch" json:"batch"`           // sequences of a global batch
	Documents  bool         `yaml:"documents" json:"documents"`   // attention stays within documents, positions start at 0 in each; else a sequence is one text
	Recompute  model.Policy `yaml:"recompute" json:"recompute"`   // what Forward keeps for Backward
	Accumulate int          `yaml:"accumulate" json:"accumulate"` // micro-batches of a step
	Steps      int          `yaml:"steps" json:"steps"`
	Seed       uint64       `yaml:"seed" json:"seed"`
	DType      string       `yaml:"dtype" json:"dtype"`             // f32 or f64; bf16, with float32 weights and sums, on a GPU
	Device     string       `yaml:"device" json:"device"`           // cpu, or the GPU that all ranks share: cuda, cuda:1
	EvalEvery  int          `yaml:"eval_every" json:"eval_every"`   // steps between evaluations; 0: at the end only
	EvalBytes  int64        `yaml:"eval_bytes" json:"eval_bytes"`   // of held-out text, whole files, to evaluate on; 0: all of it
	Samples    int          `yaml:"samples" json:"samples"`         // tokens of each sample at the end; 0: none
	TraceSteps int          `yaml:"trace_steps" json:"trace_steps"` // steps recorded in trace.json, from the third on
	SaveEvery  int          `yaml:"save_every" json:"save_every"`   // steps between checkpoints; 0: none
	Keep       int          `yaml:"keep" json:"keep"`               // newest checkpoints that stay; 0: all
	Out        string       `yaml:"out" json:"out"`                 // the run's folder; empty: runs/ and the time
}

// Data is the text of a run.
type Data struct {
	Paths          []string `yaml:"paths" json:"paths"`                     // files, folders, globs
	Suffix         string   `yaml:"suffix" json:"suffix"`                   // of files taken from folders
	TokenizerBytes int      `yaml:"tokenizer_bytes" json:"tokenizer_bytes"` // of text that the tokenizer learns from
	HoldOutEvery   int      `yaml:"hold_out_every" json:"hold_out_every"`
	Field          string   `yaml:"field" json:"field"`         // of JSONL and Parquet: a column of text, prompt (with completion) or messages; empty: the one there is
	Template       string   `yaml:"template" json:"template"`   // folder whose chat template writes messages; empty: that of init
	Tokenizer      string   `yaml:"tokenizer" json:"tokenizer"` // a tokenizer.json to use instead of learning one
}

// Default is the main job: four ranks, fsdp 2 × tp 2 with Megatron sequence parallelism, a small Qwen3.
func Default() Config {
	return Config{
		Model:     model.Config{Family: hf.Qwen3, Layers: 4, Hidden: 128, Heads: 4, KV: 2, Head: 32, MLP: 384, Vocab: 2048, Theta: 1e4, Eps: 1e-6, Tied: true, Std: 0.08},
		Parallel:  parallel.Layout{DP: 1, FSDP: 2, PP: 1, CP: 1, TP: 2, SP: "megatron"},
		Data:      Data{Suffix: ".go", TokenizerBytes: 8 << 20, HoldOutEvery: 50},
		Optim:     optim.Config{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, Clip: 1},
		Schedule:  optim.Schedule{Peak: 8e-3, Floor: 0.1, Warmup: 20},
		Recompute: model.Policy{Mode: model.Selective, Every: 1},
		Seq:       256, Batch: 8, Accumulate: 1, Steps: 360, Seed: 1, DType: "f32", Device: "cpu", EvalBytes: 256 << 10, Samples: 64, TraceSteps: 2, SaveEvery: 100, Keep: 2,
	}
}

// Check refuses what cannot run before anything is read or allocated.
func (c *Config) Check() (*parallel.Scheme, error) {
	for _, x := range []struct {
		name  string
		n     int
		least int
	}{{"seq", c.Seq, 1}, {"batch", c.Batch, 1}, {"accumulate", c.Accumulate, 1}, {"steps", c.Steps, 1}, {"data.tokenizer_bytes", c.Data.TokenizerBytes, 1},
		{"eval_every", c.EvalEvery, 0}, {"samples", c.Samples, 0}, {"trace_steps", c.TraceSteps, 0}, {"save_every", c.SaveEvery, 0}, {"keep", c.Keep, 0}, {"schedule.warmup", c.Schedule.Warmup, 0}} {
		if x.n < x.least || x.n > most {
			return nil, fmt.Errorf("train: %s is %d, want %d to %d", x.name, x.n, x.least, most)
		}
	}
	switch {
	case c.Device == "cpu" && c.DType != "f32" && c.DType != "f64":
		return nil, fmt.Errorf("train: dtype is %q, want f32 or f64 on a CPU", c.DType)
	case c.Device != "cpu" && c.DType != "f32" && c.DType != "bf16":
		return nil, fmt.Errorf("train: dtype is %q, want f32 or bf16 on device %s", c.DType, c.Device)
	case c.Batch*c.Seq > mostTokens:
		return nil, fmt.Errorf("train: a batch of %d sequences of %d tokens, want at most %d tokens in all; hint: more steps of a smaller batch", c.Batch, c.Seq, mostTokens)
	case c.Batch%c.Accumulate != 0:
		return nil, fmt.Errorf("train: batch of %d sequences is not divisible by accumulate %d", c.Batch, c.Accumulate)
	case c.Schedule.Warmup >= c.Steps:
		return nil, fmt.Errorf("train: schedule.warmup of %d leaves nothing of %d steps; hint: schedule.warmup=%d", c.Schedule.Warmup, c.Steps, c.Steps/10)
	case !(c.Schedule.Peak > 0) || !(c.Schedule.Floor >= 0 && c.Schedule.Floor <= 1):
		return nil, fmt.Errorf("train: schedule.lr %g must be positive and schedule.floor %g within 0 to 1", c.Schedule.Peak, c.Schedule.Floor)
	case c.Data.HoldOutEvery < 0 || c.Data.HoldOutEvery == 1:
		return nil, fmt.Errorf("train: data.hold_out_every is %d, which leaves nothing to evaluate or nothing to train on; hint: 2 or more, or 0 for every 50th file", c.Data.HoldOutEvery)
	case c.EvalBytes < 0:
		return nil, fmt.Errorf("train: eval_bytes is %d, want 0 or more", c.EvalBytes)
	case c.Samples >= c.Seq:
		return nil, fmt.Errorf("train: samples of %d tokens do not fit a sequence of %d; hint: samples=%d", c.Samples, c.Seq, c.Seq/2)
	}
	if c.Init != "" {
		if err := c.adopt(); err != nil {
			return nil, err
		}
	}
	if err := c.Model.Check(); err != nil {
		return nil, err
	}
	if n := c.Model.Vocab; n < token.LeastVocab && c.Init == "" && c.Data.Tokenizer == "" {
		return nil, fmt.Errorf("train: model.vocab is %d, want at least %d: every byte and a separator; hint: model.vocab=%d", n, token.LeastVocab, token.LeastVocab)
	}
	if err := errors.Join(c.Optim.Check(), c.Recompute.Check()); err != nil {
		return nil, err
	}
	if n := c.Parallel.World(); n > mostRanks {
		return nil, fmt.Errorf("train: %d ranks in one process, want at most %d; hint: smaller parallel.{dp,fsdp,pp,cp,tp}", n, mostRanks)
	}
	s, err := parallel.New(c.Parallel, parallel.Heads{G: c.Model.KV, R: c.Model.Rep()})
	if err != nil {
		return nil, err
	}
	c.Parallel = s.Layout // an axis that is left at 0 has one rank
	return s, errors.Join(s.Fits(c.Batch/c.Accumulate, c.Seq, c.Model.MLP), c.Model.Fits(c.Seq))
}

// Limits that keep products of sizes within int64: 2^30 steps of 2^26 tokens are 2^56.
const (
	most       = 1 << 30
	mostTokens = 1 << 26
	mostRanks  = 1 << 10
)

func (c *Config) corpus() (d data.Config, err error) {
	d = data.Config{Paths: c.Data.Paths, Suffix: c.Data.Suffix, HoldOutEvery: c.Data.HoldOutEvery, Field: c.Data.Field,
		PartBytes: int64(max(2<<10, 8*c.Seq))} // several samples even of a long sequence, so that one can see as far back as S
	switch {
	case c.Data.Template != "":
		d.Template, err = data.ReadTemplate(c.Data.Template)
	case strings.HasSuffix(c.Init, ".gguf"):
		text, vars, err := chatOf(c.Init)
		if err != nil || text == "" {
			return d, err
		}
		d.Template, err = data.NewTemplate(text, vars)
		return d, err
	case c.Init != "":
		if t, err := data.ReadTemplate(c.Init); err == nil { // a model may have none; chats need one and say so
			d.Template = t
		}
	}
	return d, err
}
