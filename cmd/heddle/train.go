package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"heddle/cuda/nvtx"
	"heddle/cuda/timeline"
	"heddle/internal/cli"
	"heddle/parallel"
	"heddle/train"
)

type trainCmd struct {
	Args        []string `arg:"" optional:"" help:"A config.yaml, then key=value overrides; --print-config lists the keys."`
	Nproc       int      `help:"Local ranks to start; must be the product of parallel.{dp,fsdp,pp,cp,tp}."`
	Device      string   `help:"What the ranks compute on: cpu, or the GPU that all of them share: cuda, cuda:1, in bf16 unless dtype says otherwise. Short for device=."`
	Data        paths    `help:"Files, folders or globs of text. Default: the Go source tree of this machine."`
	Out         string   `help:"The run's folder. Default: runs/ and the time."`
	Resume      string   `placeholder:"RUN[@STEP]" help:"Go on from the newest whole checkpoint of a run's folder, or from that of a step. Alone: of the newest run."`
	Allow       []string `placeholder:"FIELD" help:"Fields that may differ from the run that is resumed: accumulate, batch, data, dtype, model, optim, schedule (with steps), seed, seq, tokenizer."`
	Trace       int      `placeholder:"STEPS" help:"Record this many steps, from the third on, in trace.json (trace_steps)."`
	PrintConfig bool     `help:"Print the effective configuration with the origin of each value, and stop."`
	DryRun      bool     `help:"Print configuration, parameters, memory, steps and tokens, and stop."`

	step int // of --resume; -1: the newest
}

func (trainCmd) Help() string {
	return `heddle train
    trains a small Qwen3 on the Go source tree with four local ranks (fsdp 2 ×
    tp 2, Megatron sequence parallelism)
heddle train --resume=runs/20260101-120000
    goes on from the newest checkpoint of that run, bit for bit as if it had not
    stopped
heddle train steps=500 parallel.fsdp=1 parallel.cp=2 parallel.tp=1 parallel.sp=ulysses --data ./notes --nproc 2
    two ranks, Ulysses, one's own text`
}

func (c *trainCmd) Run(ctx context.Context, env *cli.Env) error {
	if err := c.findRun(); err != nil {
		return err
	}
	cfg, from, err := c.config()
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	if c.PrintConfig {
		return env.Emit(cfg, func(w io.Writer) { io.WriteString(w, cli.PrintConfig(cfg, from)) })
	}
	if c.DryRun {
		return c.dryRun(env, cfg, from)
	}
	if err := c.before(cfg); err != nil {
		return err
	}
	if len(cfg.Data.Paths) == 0 {
		if cfg.Data.Paths, err = goroot(ctx); err != nil {
			return err
		}
	}
	p := &trainPrinter{env: env, start: time.Now(), total: cfg.Steps}
	job, err := train.Prepare(cfg, p.talk)
	if err != nil {
		return exitOf(err)
	}
	if ctx.Err() != nil {
		return cli.Stopped(ctx, "train: stopped before the first step; nothing was written")
	}
	if job.Ranges, err = profiler(); err != nil {
		return cli.Exit(cli.Absent, err)
	}
	on, card, err := onDevice(cfg.Device, dtypeOf(cfg.DType))
	if err != nil {
		return err
	}
	job.Fleet = on.Fleet
	if err := job.Fits(); err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	if card != nil {
		p.talk("computing on %s\n", card.Device.Name)
		if cfg.TraceSteps > 0 && c.Trace > 0 { // libcupti makes launches dearer from its start on, so it is asked for
			card.Timeline = timeline.Open(card.Device, 0, findCUPTI(""))
			job.Timeline = card.Timeline
			p.talk("recording the device by %s\n", card.Timeline.How)
		}
	}
	if cfg.Out == "" {
		cfg.Out = filepath.Join("runs", time.Now().Format("20060102-150405"))
	}
	folder, err := c.folder(job, cfg, from, os.Args, p)
	if err != nil {
		return err
	}
	p.talk("%d parameters, %d ranks, run folder %s\n", job.Config.Model.Table(job.Scheme).Elems(), job.Scheme.Mesh.Size(), cfg.Out)
	if p.first, p.before, err = job.Start(); err != nil {
		return exitOf(err)
	}
	if c := job.Checkpoints.From; c != nil {
		p.first = c.Step
	}
	p.begin()
	running, stop := context.WithCancel(ctx)
	defer stop()
	var failed error
	res, err := job.Run(running, func(e train.Event) {
		p.event(e)
		if failed == nil {
			if failed = folder.Add(e); failed != nil { // a disk is full: save what there is, if that can be
				stop()
			}
		}
	})
	p.end()
	if err = errors.Join(err, failed); err != nil {
		return exitOf(err)
	}
	if err := folder.Finish(job, res); err != nil {
		return err
	}
	out := summary(job, res, cfg.Out)
	if err := env.Emit(out, func(w io.Writer) { printSummary(w, out, job, res) }); err != nil {
		return err
	}
	if res.Stopped {
		return cli.Stopped(ctx, "train: stopped after step %d; the weights are saved", res.Steps)
	}
	return nil
}

// profiler is what shows ranges of this process; nil where none runs it.
func profiler() (train.Ranges, error) {
	tool, err := nvtx.Open(os.Getenv("NVTX_INJECTION64_PATH"))
	if tool == nil || err != nil {
		return nil, err
	}
	return tool, nil
}

// config is defaults, file, environment, overrides and flags, in rising order.
func (c *trainCmd) config() (train.Config, cli.Origins, error) {
	cfg, args, file := train.Default(), c.Args, ""
	if c.Resume != "" {
		file = filepath.Join(c.Resume, "config.yaml")
	}
	if len(args) > 0 && !strings.Contains(args[0], "=") {
		file, args = args[0], args[1:]
	}
	from, err := cli.LoadConfig(&cfg, file, os.Environ(), args)
	if err != nil {
		return cfg, nil, c.hinted(err, file)
	}
	if len(c.Data) > 0 {
		cfg.Data.Paths, from["data.paths"] = c.Data, "--data"
	}
	if len(cfg.Data.Paths) > 0 && from["data.suffix"] == "" {
		cfg.Data.Suffix = "" // one's own text is whatever stands there
	}
	fitDefaults(&cfg, from)
	if c.Out != "" {
		cfg.Out, from["out"] = c.Out, "--out"
	}
	if c.Device != "" {
		cfg.Device, from["device"] = c.Device, "--device"
	}
	if cfg.Device != "cpu" && from["dtype"] == "" {
		cfg.DType, from["dtype"] = "bf16", "device"
	}
	if c.Resume != "" {
		cfg.Out, from["out"] = c.Resume, "--resume"
	}
	if c.Trace != 0 {
		cfg.TraceSteps, from["trace_steps"] = c.Trace, "--trace"
	}
	if n := cfg.Parallel.World(); c.Nproc != 0 && c.Nproc != n {
		l := cfg.Parallel
		return cfg, nil, fmt.Errorf("train: --nproc %d is not dp %d × fsdp %d × pp %d × cp %d × tp %d = %d; hint: --nproc %d, or parallel.fsdp=%d", c.Nproc, l.DP, l.FSDP, l.PP, l.CP, l.TP, n, n, max(1, c.Nproc*l.FSDP/n))
	}
	_, err = cfg.Check()
	return cfg, from, err
}

// hinted says what a configuration file that is not there was meant to be.
func (c *trainCmd) hinted(err error, file string) error {
	if _, missing := os.Stat(file); file == "" || !errors.Is(missing, os.ErrNotExist) {
		return err
	}
	if c.Resume != "" && file == filepath.Join(c.Resume, "config.yaml") {
		return fmt.Errorf("train: %s is no run's folder: %w; hint: ls runs", c.Resume, err)
	}
	return fmt.Errorf("%w; hint: the first word is a config.yaml, overrides are key=value", err)
}

// fitDefaults shortens what nobody asked for to the run that somebody did: a short run warms up over a tenth of its steps, and
// short sequences end in short samples.
//
// A run that starts from a model keeps most of what it knows: one rank unless asked for more, and a learning rate for
// fine-tuning. The main job's are for a small fresh model.
func fitDefaults(cfg *train.Config, from cli.Origins) {
	if cfg.Init != "" {
		const origin = "init"
		asked := false
		for _, axis := range []string{"dp", "fsdp", "pp", "cp", "tp", "sp"} {
			asked = asked || from["parallel."+axis] != ""
		}
		if !asked {
			cfg.Parallel = parallel.Layout{DP: 1, FSDP: 1, PP: 1, CP: 1, TP: 1, SP: "none"}
			from["parallel.fsdp"], from["parallel.tp"], from["parallel.sp"] = origin, origin, origin
		}
		if from["schedule.lr"] == "" {
			cfg.Schedule.Peak, from["schedule.lr"] = 5e-5, origin
		}
	}
	if from["schedule.warmup"] == "" && cfg.Schedule.Warmup >= cfg.Steps {
		cfg.Schedule.Warmup, from["schedule.warmup"] = cfg.Steps/10, "a tenth of steps"
	}
	if from["samples"] == "" && cfg.Samples >= cfg.Seq {
		cfg.Samples, from["samples"] = cfg.Seq/2, "half of seq"
	}
}

// before refuses what a long start would only find at its end: a folder that is there, a run that this machine cannot hold.
func (c *trainCmd) before(cfg train.Config) error {
	if cfg.Out != "" && c.Resume == "" {
		if _, err := os.Lstat(cfg.Out); err == nil {
			return cli.Exitf(cli.Invalid, "train: %s exists already; hint: another --out, or --resume=%s", cfg.Out, cfg.Out)
		}
	}
	have := memory()
	if have == 0 || cfg.Device != "cpu" { // a GPU's memory is counted where it is taken
		return nil
	}
	ranks, err := train.DryRun(cfg)
	if err != nil {
		return exitOf(err)
	}
	need := int64(0)
	for _, m := range ranks {
		need += int64(m.Peak)
	}
	if s, err := cfg.Check(); err == nil {
		need += 4 * int64(cfg.Model.Table(s).Elems()) // the whole model on the host, at the end
	}
	if need > have {
		const gib = 1 << 30
		return &cli.Error{Code: cli.Invalid, Err: fmt.Errorf("train: all ranks together need about %.1f GiB, this machine has %.1f GiB free", float64(need)/gib, float64(have)/gib),
			Hint: "--dry-run shows what needs it; accumulate, seq and the model make it smaller"}
	}
	return nil
}

// paths are files, folders and globs. An empty one, as of a shell's variable that is not set, is refused: it would stand for the default.
type paths []string

// Decode takes one flag's value; commas separate paths.
func (p *paths) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("path", &text); err != nil {
		return err
	}
	for one := range strings.SplitSeq(text, ",") {
		if one == "" {
			return fmt.Errorf("an empty path in %q; hint: leave the flag out for the Go source tree", text)
		}
		*p = append(*p, one)
	}
	return nil
}

// goroot is the source tree of this machine's Go.
func goroot(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, &cli.Error{Code: cli.Absent, Err: fmt.Errorf("train: go is needed to find its source tree: %w", err), Hint: "install Go, or name text with --data"}
	}
	return []string{filepath.Join(strings.TrimSpace(string(out)), "src")}, nil
}

// exitOf gives an error of the library its exit code.
func exitOf(err error) error {
	if _, ok := errors.AsType[*train.Invalid](err); ok {
		return cli.Exit(cli.Invalid, err)
	}
	return err
}

func (c *trainCmd) dryRun(env *cli.Env, cfg train.Config, from cli.Origins) error {
	s, err := cfg.Check()
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	mem, err := train.DryRun(cfg)
	if err != nil {
		return exitOf(err)
	}
	m := train.MemoryOf(mem)
	tokens := int64(cfg.Steps) * int64(cfg.Batch) * int64(cfg.Seq)
	out := map[string]any{"parameters": cfg.Model.Table(s).Elems(), "ranks": s.Mesh.Size(), "steps": cfg.Steps, "tokens": tokens, "memory": m}
	return env.Emit(out, func(w io.Writer) {
		io.WriteString(w, cli.PrintConfig(cfg, from))
		fmt.Fprintf(w, "\n%d parameters on %d ranks; %d steps, %d tokens\n\n", cfg.Model.Table(s).Elems(), s.Mesh.Size(), cfg.Steps, tokens)
		printMemory(w, m)
	})
}

// overridesFirst moves key=value words that stand after flags to the front, so that they may stand anywhere: the parser wants
// positional words together. A word after a flag that takes a value is that value.
func overridesFirst(args []string) []string {
	verb := slices.Index(args, "train")
	if verb < 0 || slices.ContainsFunc(args[:verb], func(a string) bool {
		return !strings.HasPrefix(a, "--") && a != "auto" && a != "always" && a != "never"
	}) {
		return args // "train" is a word of another verb
	}
	front, rest := slices.Clone(args[:verb+1]), []string(nil)
	for i := verb + 1; i < len(args); i++ {
		word, before := args[i], args[i-1]
		if word == "--resume" { // its value, if any, stands after "="
			word = bareResume
		}
		key, _, is := strings.Cut(word, "=")
		value := strings.HasPrefix(before, "--") && !strings.Contains(before, "=") && !slices.Contains([]string{"--json", "--print-config", "--dry-run", "--resume"}, before)
		if is && !value && !strings.HasPrefix(key, "-") {
			front = append(front, word)
		} else {
			rest = append(rest, word)
		}
	}
	if len(rest) > 0 && !strings.HasPrefix(rest[0], "-") { // the configuration file stays first
		front = slices.Insert(front, verb+1, rest[0])
		rest = rest[1:]
	}
	return append(front, rest...)
}
