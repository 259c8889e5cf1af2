package train

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"heddle/checkpoint/pretrained"
	"heddle/checkpoint/safetensors"
	"heddle/internal/atomicfile"
	"heddle/model/hf"
	"heddle/report"
	"heddle/trace"
)

// Folder is where a run leaves what it found: config.yaml, env.json, metrics.jsonl as it goes, and checkpoints with about/,
// which says what their weights belong to; at the end loss.svg, trace.json and model/ with weights, configuration and tokenizer
// in Hugging Face's form.
type Folder struct {
	Path    string
	metrics *os.File
	start   time.Time
	last    time.Time
	tokens  int64
	points  struct{ train, val []report.Point }
}

// Create makes the folder, which must not exist yet, and writes what is known at the start.
func Create(path, config string, args []string) (f *Folder, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, &Invalid{fmt.Errorf("train: the run's folder: %w; hint: another --out", err)}
	}
	if err := os.Mkdir(path, 0o755); errors.Is(err, os.ErrExist) { // of two runs that start at once, one makes it
		return nil, &Invalid{fmt.Errorf("train: %s exists already; hint: another --out", path)}
	} else if err != nil {
		return nil, &Invalid{fmt.Errorf("train: the run's folder: %w; hint: another --out", err)}
	}
	defer func() {
		if err != nil {
			os.RemoveAll(path) // this call made it
		}
	}()
	f = &Folder{Path: path, start: time.Now(), last: time.Now()}
	host, _ := os.Hostname()
	env := map[string]any{"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": runtime.NumCPU(), "host": host, "args": args, "start": f.start.UTC().Format(time.RFC3339)}
	if err := f.write("config.yaml", func(w io.Writer) error { _, err := io.WriteString(w, config); return err }); err != nil {
		return nil, err
	}
	if err := f.write("env.json", func(w io.Writer) error { return json.NewEncoder(w).Encode(env) }); err != nil {
		return nil, err
	}
	if f.metrics, err = os.OpenFile(filepath.Join(path, "metrics.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return f, nil
}

// Reopen opens the folder of a run that goes on after the given step. Lines of metrics.jsonl about later steps, which the run will write anew, are
// dropped, and so is a last line that was cut.
func Reopen(path string, step int) (*Folder, error) {
	f := &Folder{Path: path, start: time.Now(), last: time.Now()}
	name := filepath.Join(path, "metrics.jsonl")
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("train: %w", err)
	}
	var kept []byte
	for text := range bytes.Lines(text) {
		var l line
		if json.Unmarshal(text, &l) != nil || !bytes.HasSuffix(text, []byte("\n")) || l.Step > step {
			continue
		}
		kept = append(kept, text...)
		f.tokens = max(f.tokens, l.Tokens)
		f.start = time.Now().Add(-time.Duration(l.Wall * float64(time.Second))) // wall time goes on too
		if l.Loss != nil {
			f.points.train = append(f.points.train, report.Point{X: float64(l.Tokens), Y: *l.Loss})
		}
		if l.Val != nil {
			f.points.val = append(f.points.val, report.Point{X: float64(l.Tokens), Y: *l.Val})
		}
	}
	if err := f.write("metrics.jsonl", func(w io.Writer) error { _, err := w.Write(kept); return err }); err != nil {
		return nil, err
	}
	if f.metrics, err = os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return f, nil
}

func (f *Folder) write(name string, fill func(io.Writer) error) error {
	if err := atomicfile.Write(atomicfile.OS{}, filepath.Join(f.Path, name), fill); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// line is one line of metrics.jsonl.
type line struct {
	Step     int      `json:"step"`
	Tokens   int64    `json:"tokens"`
	Wall     float64  `json:"wall_s"`
	Loss     *float64 `json:"train/loss,omitempty"`
	LR       *float64 `json:"train/lr,omitempty"`
	GradNorm *float64 `json:"train/grad_norm,omitempty"`
	Rate     *float64 `json:"perf/tok_s,omitempty"`
	Val      *float64 `json:"val/loss,omitempty"`
	ValBPB   *float64 `json:"val/bits_per_byte,omitempty"`
}

// Add appends an event's numbers to metrics.jsonl.
func (f *Folder) Add(e Event) error {
	now := time.Now()
	l := line{Wall: now.Sub(f.start).Seconds()}
	switch {
	case e.Step != nil:
		rate := float64(e.Step.Tokens-f.tokens) / now.Sub(f.last).Seconds()
		f.tokens, f.last = e.Step.Tokens, now
		l.Step, l.Tokens, l.Loss, l.LR, l.GradNorm, l.Rate = e.Step.Step, e.Step.Tokens, &e.Step.Loss, &e.Step.LR, &e.Step.GradNorm, &rate
		f.points.train = append(f.points.train, report.Point{X: float64(e.Step.Tokens), Y: e.Step.Loss})
	case e.Eval != nil:
		l.Step, l.Tokens, l.Val, l.ValBPB = e.Eval.Step, f.tokens, &e.Eval.Loss, &e.Eval.BitsPerByte
		f.points.val = append(f.points.val, report.Point{X: float64(f.tokens), Y: e.Eval.Loss})
	default:
		return nil
	}
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("train: metrics: %w", err)
	}
	if _, err := f.metrics.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("train: metrics: %w", err)
	}
	return nil
}

// Finish writes the model first, then pictures.
func (f *Folder) Finish(j *Job, r *Result) error {
	defer f.metrics.Close()
	if err := f.model(j, r); err != nil {
		return err
	}
	if len(f.points.train) > 1 {
		if err := f.write("loss.svg", func(w io.Writer) error { return report.LossSVG(w, f.points.train, f.points.val) }); err != nil {
			return err
		}
	}
	if j.Config.TraceSteps > 0 {
		return f.write("trace.json", func(w io.Writer) error { return trace.Write(w, r.Traces...) })
	}
	return nil
}

func (f *Folder) model(j *Job, r *Result) error {
	if err := os.RemoveAll(filepath.Join(f.Path, "model")); err != nil { // of a run that was stopped before; its checkpoint is there
		return fmt.Errorf("train: %w", err)
	}
	return atomicfile.Folder(atomicfile.OS{}, filepath.Join(f.Path, "model"), func(dir string) error {
		config, err := j.hf()
		if err != nil {
			return err
		}
		if err := pretrained.Write(dir, config, safetensors.F32, pretrained.MaxShard, r.Weights.Of); err != nil {
			return err
		}
		return j.tokens(dir, config)
	})
}

// about writes what a checkpoint's weights need to be read by other programs: config.json and the tokenizer's files, in Hugging Face's form.
func (j *Job) about(dir string) error {
	config, err := j.hf()
	if err != nil {
		return err
	}
	text, err := config.Encode()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), text, 0o644); err != nil {
		return err
	}
	return j.tokens(dir, config)
}

// hf is the model as config.json describes it.
func (j *Job) hf() (hf.Config, error) {
	config := j.Config.Model.ToHF(j.Config.Seq)
	err := j.ends(&config)
	return config, err
}

// ends says which tokens begin and end a text: what the model that the run started from said, and the separator, which the
// model was trained to predict after a document.
func (j *Job) ends(c *hf.Config) error {
	if j.Config.Init != "" {
		p, err := pretrained.Open(j.Config.Init)
		if err != nil {
			return err
		}
		c.BOS, c.EOS = p.Config.BOS, p.Config.EOS
		if err := p.Close(); err != nil {
			return err
		}
	}
	if end, ok := j.Tokenizer.Separator(); ok && !slices.Contains(c.EOS, int(end)) {
		c.EOS = append(c.EOS, int(end))
	}
	return nil
}

// tokens writes tokenizer.json and tokenizer_config.json.
func (j *Job) tokens(dir string, config hf.Config) error {
	if err := writeTokenizerConfig(dir, j.Config.Init, j.Tokenizer, config); err != nil {
		return err
	}
	return j.Tokenizer.Write(filepath.Join(dir, "tokenizer.json"))
}
