package train

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strconv"
	"time"

	"heddle/comm"
	"heddle/compute"
	"heddle/data"
	"heddle/model"
	"heddle/optim"
	"heddle/parallel"
	"heddle/sample"
	"heddle/trace"
)

// Event is something that a run tells its subscribers: the printer, the metrics file. Exactly one field is set.
type Event struct {
	Step *Metrics
	Eval *Evaluation
	Talk string
}

// Evaluation is the loss on held-out text. The tokens' losses in bits, over the text's UTF-8 bytes, do not depend on the
// tokenizer.
type Evaluation struct {
	Step        int     `json:"step"`
	Loss        float64 `json:"val/loss"` // nats a token
	BitsPerByte float64 `json:"val/bits_per_byte"`
	Bytes       int64   `json:"bytes"`
	Tokens      int64   `json:"tokens"`
}

// Result is what a run leaves in memory.
type Result struct {
	Steps       int        // done, those before a checkpoint included
	Tokens      int64      // seen in them
	Train       []Metrics  // of this process's steps
	Eval        Evaluation // at the end; zero if the run was stopped
	Stopped     bool       // before its last step
	TrainTime   time.Duration
	Collectives []comm.Summary
	Memory      Memory
	Traces      []*trace.Recorder
	Samples     []string
	Weights     *Whole

	before int64 // tokens seen before this process
}

// Rate is this process's tokens a second, 0 where it ran no step.
func (r *Result) Rate() float64 {
	if r.TrainTime <= 0 {
		return 0
	}
	return float64(r.Tokens-r.before) / r.TrainTime.Seconds()
}

// Memory is the per-rank maximum of each category, in bytes, and the peak of each phase.
type Memory struct {
	Weights   int            `json:"weights"`
	Gradients int            `json:"gradients"`
	Moments   int            `json:"moments"`
	Saved     int            `json:"saved"`
	Scratch   int            `json:"scratch"`
	Comm      int            `json:"comm"`
	Held      int            `json:"held"` // between steps
	Peak      int            `json:"peak"`
	Phases    map[string]int `json:"phases"`
}

// MemoryOf joins the ranks' arenas.
func MemoryOf(ranks []compute.Memory) Memory {
	m := Memory{Phases: map[string]int{}}
	for _, r := range ranks {
		for _, x := range []struct {
			to *int
			v  int
		}{{&m.Weights, r.Max[compute.Weights]}, {&m.Gradients, r.Max[compute.Gradients]}, {&m.Moments, r.Max[compute.Moments]}, {&m.Saved, r.Max[compute.Saved]},
			{&m.Scratch, r.Max[compute.Scratch] + r.Max[compute.Constant]}, {&m.Comm, r.Max[compute.Comm]}, {&m.Held, r.Held}, {&m.Peak, r.Peak}} {
			*x.to = max(*x.to, x.v)
		}
		for k, v := range r.Phases {
			m.Phases[k] = max(m.Phases[k], v)
		}
	}
	return m
}

// Run trains a job on local ranks. The context's end stops it after the step in hand. Events come from one goroutine at a
// time.
func (j *Job) Run(ctx context.Context, on func(Event)) (*Result, error) {
	n := j.Scheme.Mesh.Size()
	res := &Result{Weights: &Whole{}, Traces: make([]*trace.Recorder, n)}
	meters, memory := make([]*comm.Meter, n), make([]compute.Memory, n)
	begin, err := j.begin()
	if err != nil {
		return nil, err
	}
	if c := j.Checkpoints.From; c != nil {
		defer c.Close()
	}
	res.Steps, res.Tokens, res.before = begin.step, begin.tokens, begin.tokens
	saver := j.saver()
	feed := j.feed(ctx, n, j.Config.Steps-begin.step)
	work := func(r *Rank) error {
		t, err := j.start(r)
		if err != nil {
			return err
		}
		w := &worker{trainer: t, job: j, res: res, on: on, lead: r.Index == 0, at: begin, first: begin.step, saver: saver}
		w.rec = trace.NewRecorder(r.Index)
		if w.spans.ranges = j.Ranges; j.Ranges != nil {
			runtime.LockOSThread() // a profiler keeps ranges by thread
			defer runtime.UnlockOSThread()
		}
		res.Traces[r.Index] = w.rec
		if err := w.train(feed.to[r.Index]); err != nil {
			return err
		}
		meters[r.Index], memory[r.Index] = r.Grp.Meter, r.Dev.Memory()
		if !feed.stopped() {
			w.finish()
		}
		res.Weights.Add(r, t.model)
		return nil
	}
	err = Machine{Type: j.Config.dtype(), Fleet: j.Fleet}.Planned(n, func(m Machine) error {
		if m.Dry {
			return Ranks(j.Scheme.Mesh, m, j.plan)
		}
		return Ranks(j.Scheme.Mesh, m, work)
	})
	feed.stop() // a rank that failed reads no more
	if err = errors.Join(err, feed.err); err != nil {
		return nil, err
	}
	res.Stopped = feed.stopped()
	res.Collectives, res.Memory = comm.Summarize(meters), MemoryOf(memory)
	return res, nil
}

// plan is a rank's program as far as its memory goes: a step, then an evaluation.
func (j *Job) plan(r *Rank) error {
	t, err := newTrainer(r, j.Config, j.Scheme)
	if err != nil {
		return err
	}
	if _, _, err := t.step(j.Config.blank(), j.Config.Accumulate, j.Config.Schedule.Peak); err != nil {
		return err
	}
	for b := range j.Eval.Batches() {
		t.loss(b)
		break
	}
	return nil
}

// newTrainer makes a rank's model and optimiser with fresh weights.
func newTrainer(r *Rank, c Config, s *parallel.Scheme) (*trainer, error) {
	t, err := emptyTrainer(r, c, s)
	if err != nil {
		return nil, err
	}
	src, done, err := c.values(t.model.Shards.Table)
	if err != nil {
		return nil, err
	}
	return t, errors.Join(t.model.Shards.Load(src), done())
}

// emptyTrainer is a trainer whose weights are zero: a checkpoint fills them.
func emptyTrainer(r *Rank, c Config, s *parallel.Scheme) (*trainer, error) {
	m, err := model.New(c.Model, s, r.Dev, r.Grp)
	if err != nil {
		return nil, err
	}
	m.Use(c.Recompute)
	m.Shards.ZeroWeights()
	return &trainer{Rank: r, model: m, opt: optim.New(c.Optim, r.Dev, m.Shards)}, nil
}

// start is the trainer of a job: from its checkpoint, or fresh.
func (j *Job) start(r *Rank) (*trainer, error) {
	c := j.Checkpoints.From
	if c == nil {
		return newTrainer(r, j.Config, j.Scheme)
	}
	t, err := emptyTrainer(r, j.Config, j.Scheme)
	if err != nil {
		return nil, err
	}
	return t, t.load(c)
}

// worker is one rank's way through a run. The lead rank reports.
type worker struct {
	*trainer
	job  *Job
	res  *Result
	on   func(Event)
	lead bool
	rec  *trace.Recorder

	spans    spans    // what the device reports, into rec or to a profiler
	timeline Timeline // running
	at       position
	first    int    // steps done before this process
	saver    *saver // nil: none
}

func (w *worker) train(batches <-chan fed) error {
	c := &w.job.Config
	schedule := c.Schedule
	schedule.Steps = c.Steps
	start := time.Now()
	for step := w.first + 1; ; step++ {
		b, ok := <-batches
		if !ok {
			break
		}
		w.Dev.Step = step
		if err := w.watch(step - w.first); err != nil {
			return &StepError{Step: step, Err: err}
		}
		lr := schedule.At(step - 1)
		w.spans.step(step)
		began := w.rec.Now()
		loss, norm, err := w.step(b.Batch, c.Accumulate, lr)
		if err != nil {
			return &StepError{Step: step, Err: err}
		}
		if w.Dev.Rec != nil {
			w.Dev.At("", -1) // ends the last phase
			w.spans.into.Since(w.spans.row(), "step "+strconv.Itoa(step), trace.Step, began, trace.Int("step", int64(step)))
		}
		w.spans.stepEnd()
		w.at = position{step, w.at.tokens + int64(b.Tokens), b.after}
		if w.lead {
			m := Metrics{Step: step, Tokens: w.at.tokens, Loss: loss, GradNorm: norm, LR: lr}
			w.res.Steps, w.res.Tokens, w.res.Train = step, w.at.tokens, append(w.res.Train, m)
			w.on(Event{Step: &m})
		}
		if w.saver != nil && step%c.SaveEvery == 0 { // before evaluating, which may fail
			if err := w.saver.save(w.trainer, w.at); err != nil {
				return err
			}
		}
		if c.EvalEvery > 0 && step%c.EvalEvery == 0 && step < c.Steps {
			w.glance(w.job.Eval, step)
		}
	}
	w.Dev.Rec = nil
	if err := w.endTimeline(); err != nil {
		return err
	}
	if w.saver != nil && w.at.step > w.first && w.at.step%c.SaveEvery != 0 {
		if err := w.saver.save(w.trainer, w.at); err != nil {
			return err
		}
	}
	if w.lead {
		w.res.TrainTime = time.Since(start)
	}
	return nil
}

// StepError says in which step a run failed.
type StepError struct {
	Step int
	Err  error
}

func (e *StepError) Error() string { return "step " + strconv.Itoa(e.Step) + ": " + e.Err.Error() }
func (e *StepError) Unwrap() error { return e.Err }

// watch turns recording on for the steps of this process that trace.json shows, and metering on after its first step, which is
// not like the others (memory is fresh).
func (w *worker) watch(step int) error {
	steps := w.job.Config.Steps - w.first
	if step == 2 || step == 1 && steps == 1 {
		w.Grp.Meter = comm.NewMeter()
	}
	from := min(3, steps)
	w.spans.into = nil
	if step >= from && step < from+w.job.Config.TraceSteps {
		w.spans.into = w.rec
	}
	w.Dev.Rec = w.spans.recorder()
	if w.job.Timeline == nil {
		return nil
	}
	if step == from && w.spans.into != nil {
		w.spans.thread = w.job.Timeline.Row()
		if w.lead {
			w.timeline = w.job.Timeline
			return w.timeline.Start()
		}
	}
	if w.spans.into == nil {
		return w.endTimeline()
	}
	return nil
}

// endTimeline takes what the device did, if it is being recorded, into the lead rank's trace.
func (w *worker) endTimeline() error {
	if w.timeline == nil {
		return nil
	}
	all, err := w.timeline.Stop()
	w.timeline = nil
	w.rec.Add(all)
	return err
}

func (w *worker) glance(e *data.Eval, step int) Evaluation {
	nats := w.evaluate(e)
	v := Evaluation{Step: step, Loss: nats / float64(e.Tokens), BitsPerByte: nats / math.Ln2 / float64(e.Bytes), Bytes: e.Bytes, Tokens: e.Tokens}
	if w.lead {
		w.on(Event{Eval: &v})
	}
	return v
}

// finish evaluates and lets the model write.
func (w *worker) finish() {
	c := &w.job.Config
	if w.lead {
		w.on(Event{Talk: "evaluating on held-out text"})
	}
	v := w.glance(w.job.Eval, c.Steps)
	if w.lead {
		w.res.Eval = v
	}
	if c.Samples == 0 {
		return
	}
	prompts := make([][]int32, c.Parallel.DP*c.Parallel.FSDP)
	for i := range prompts {
		prompts[i] = w.job.Tokenizer.EncodeText(nil, []byte("package "))
	}
	window := c.window(len(prompts[0]) + c.Samples)
	texts := sample.Continue(w.model, w.Dev, w.Grp, prompts, window, sample.Plain{Tokens: min(c.Samples, window-len(prompts[0])), Seed: c.Seed, Temperature: 0.8})
	if w.lead {
		for _, ids := range texts {
			text, err := w.job.Tokenizer.Decode(nil, ids)
			if err == nil {
				w.res.Samples = append(w.res.Samples, string(text))
			}
		}
	}
}

// window is the shortest sequence of at least n tokens that the layout can cut, at most Seq.
func (c *Config) window(n int) int {
	step := max(1, c.Parallel.CP) * max(1, c.Parallel.TP)
	return min(c.Seq, (n+step-1)/step*step)
}

// fed is a batch and where the data goes on after it. The loader itself is batches ahead of the ranks.
type fed struct {
	*data.Batch
	after data.Cursor
}

// feed gives every rank the same batches. When the context ends, every rank has got the same number of them.
type feed struct {
	to   []chan fed
	err  error
	quit chan struct{}
	done chan struct{}
	cut  bool
}

func (j *Job) feed(ctx context.Context, ranks, steps int) *feed {
	f := &feed{quit: make(chan struct{}), done: make(chan struct{})}
	for range ranks {
		f.to = append(f.to, make(chan fed, 1))
	}
	go func() {
		defer close(f.done)
		defer func() {
			for _, c := range f.to {
				close(c)
			}
		}()
		for range steps {
			if ctx.Err() != nil {
				f.cut = true
				return
			}
			b, err := j.Loader.Next()
			if err != nil { // the ranks stop after the batches they have: what they learned is saved
				f.err, f.cut = err, true
				return
			}
			after := j.Loader.Cursor()
			for _, c := range f.to {
				select {
				case c <- fed{b, after}:
				case <-f.quit:
					return
				}
			}
		}
	}()
	return f
}

// stopped tells whether the context cut the run short. It is for ranks whose channel has closed.
func (f *feed) stopped() bool {
	<-f.done
	return f.cut
}

func (f *feed) stop() {
	close(f.quit)
	<-f.done
}
