package train

import (
	"errors"
	"fmt"
	"iter"

	"heddle/compute"
	"heddle/data"
	"heddle/parallel"
	"heddle/tensor"
	"heddle/token"
)

// Job is a checked run that can start: nothing has been written yet.
type Job struct {
	Config    Config
	Scheme    *parallel.Scheme
	Tokenizer *token.Tokenizer
	Corpus    *data.Corpus
	Loader    *data.Loader
	Eval      *data.Eval

	Checkpoints Checkpoints
	Ranges      Ranges                         // nil: no profiler is told of steps, phases and layers
	Timeline    Timeline                       // nil: the traced steps hold what ranks do, not what their device does
	Fleet       func(ranks int) (Fleet, error) // of Config.Device; nil: the CPU
}

// Invalid marks an error in configuration or data, found before anything was written.
type Invalid struct{ Err error }

func (e *Invalid) Error() string { return e.Err.Error() }
func (e *Invalid) Unwrap() error { return e.Err }

// Prepare checks the configuration, learns a tokenizer from the corpus, unless the run starts from weights that have one, and packs it. talk hears what is going on.
func Prepare(c Config, talk func(format string, args ...any)) (*Job, error) {
	s, err := c.Check()
	if err != nil {
		return nil, &Invalid{err}
	}
	j := &Job{Config: c, Scheme: s}
	d, err := c.corpus()
	if err != nil {
		return nil, invalid(err)
	}
	if j.Corpus, err = data.Open(d); err != nil {
		return nil, invalid(err)
	}
	talk("%s", j.Corpus.Summary())
	if c.Init != "" || c.Data.Tokenizer != "" {
		if j.Tokenizer, err = tokenizerOf(c); err != nil {
			return nil, &Invalid{err}
		}
	} else if err := j.learn(); err != nil {
		return nil, invalid(err)
	}
	if n := j.Tokenizer.VocabSize(); n < c.Model.Vocab && c.Init == "" && c.Data.Tokenizer == "" {
		talk("the text yields a vocabulary of %d, fewer than %d\n", n, c.Model.Vocab)
		j.Config.Model.Vocab = n
	}
	if j.Loader, err = data.NewLoader(j.Corpus, j.Tokenizer, data.Pack{Seq: c.Seq, Batch: c.Batch, Seed: c.Seed, Segments: c.Documents}); err != nil {
		return nil, invalid(err)
	}
	if j.Eval, err = data.NewEval(j.Corpus, j.Tokenizer, data.EvalPack{Seq: c.Seq, Batch: c.Batch, Bytes: c.EvalBytes}); err != nil {
		return nil, invalid(err)
	}
	return j, nil
}

func invalid(err error) error {
	if e, ok := errors.AsType[*data.Error](err); ok {
		return &Invalid{e}
	}
	return err
}

// learn trains the byte-level BPE on documents spread over the corpus.
func (j *Job) learn() (err error) {
	var failed error
	docs := iter.Seq[[]byte](func(yield func([]byte) bool) {
		for text, err := range j.Corpus.Sample(int64(j.Config.Data.TokenizerBytes), j.Config.Seed) {
			if failed = err; err != nil || !yield(text) {
				return
			}
		}
	})
	if j.Tokenizer, err = token.Train(docs, token.TrainOptions{VocabSize: j.Config.Model.Vocab}); err != nil {
		return &Invalid{err}
	}
	return failed
}

// dtype is the type of weights and activations.
func (c *Config) dtype() tensor.DType {
	switch c.DType {
	case "f64":
		return tensor.F64
	case "bf16":
		return tensor.BF16
	}
	return tensor.F32
}

// blank is a batch of the run's shape.
func (c *Config) blank() *data.Batch {
	n := c.Batch * c.Seq
	b := &data.Batch{B: c.Batch, S: c.Seq, IDs: make([]int32, n), Labels: make([]int32, n), Mask: make([]float32, n)}
	if c.Documents {
		b.Segments = make([]int32, n)
	}
	return b
}

// DryRun runs one step of the job on the machine that only counts, and returns every rank's memory.
func DryRun(c Config) ([]compute.Memory, error) {
	t, err := Try(c, Machine{Dry: true}, []*data.Batch{c.blank()}, nil)
	if _, ok := errors.AsType[*Invalid](err); ok {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("train: dry run: %w", err)
	}
	return t.Memory, nil
}
