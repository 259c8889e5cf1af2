package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"heddle/compute/cpu/blas"
	"heddle/internal/cli"
	"heddle/sample"
	"heddle/sample/text"
)

type generateCmd struct {
	Model       string   `arg:"" help:"A run's folder, RUN@STEP, a Hugging Face folder or a .gguf file."`
	Text        []string `arg:"" optional:"" name:"prompt" help:"Prompts, one an argument; none: a new document."`
	Prompts     string   `placeholder:"FILE" help:"Prompts, one a line; in a .jsonl file {\"prompt\": …} or {\"messages\": […]} a line."`
	Chat        bool     `help:"The prompts are what a user says: write them with the model's chat template."`
	System      string   `help:"With --chat: what the system says first."`
	Each        int      `short:"n" default:"1" help:"Continuations of each prompt."`
	MaxTokens   int      `default:"256" help:"Most tokens of a continuation; 0: until the context is full."`
	Temperature float64  `default:"0.8" help:"0 takes the likeliest token."`
	TopK        int      `help:"Draw from the k likeliest tokens only; 0: from all."`
	TopP        float64  `help:"Draw from the likeliest tokens that together reach p only; 0: from all."`
	Seed        uint64   `default:"1" help:"Chooses the random numbers."`
	Batch       int      `default:"16" help:"Sequences computed at once."`
	Weights     string   `enum:"f32,bf16" default:"f32" help:"How weights are kept: f32, or bf16, rounded: half the memory to read for a token."`
	Top         int      `help:"With --json: report the k likeliest tokens at every position."`
}

func (generateCmd) Help() string {
	return `heddle generate runs/20260101-120000 "package main"
    continues with what a run has learned so far
heddle generate SmolLM2-135M-Instruct.Q4_1.gguf --chat "What is a heddle?"
    lets a chat model answer
heddle generate Qwen3-0.6B --prompts questions.jsonl -n 4 --json
    four answers each: ids, log-probabilities, entropies, tokens a second

What a prompt becomes depends on the seed and its place among the prompts, not on the batch.`
}

func (c *generateCmd) Run(ctx context.Context, env *cli.Env) error {
	q, err := c.request()
	if err != nil {
		return err
	}
	start := time.Now()
	m, err := text.Open(c.Model)
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	defer m.Close()
	pool := blas.NewPool(runtime.GOMAXPROCS(0))
	defer pool.Close()
	d, err := m.Decoder(pool, c.Weights == "bf16")
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	fmt.Fprintf(env.Err, "%s, ready in %.1f s\n", m.Path, time.Since(start).Seconds())
	streams := !env.JSON && len(q.Asks)*q.Each == 1
	if streams {
		q.Piece = func(s string) { io.WriteString(env.Out, s) }
	}
	r, err := m.Generate(ctx, d, q)
	if r == nil {
		return cli.Exit(cli.Invalid, err)
	}
	if failed := env.Emit(r, func(w io.Writer) { printGeneration(w, r, streams) }); failed != nil {
		return failed
	}
	printRate(env.Err, r)
	if err != nil {
		return cli.Stopped(ctx, "generate: stopped after %d tokens", r.Bill.Sampled)
	}
	return nil
}

// request checks the flags.
func (c *generateCmd) request() (q text.Request, err error) {
	switch {
	case c.Prompts != "" && len(c.Text) > 0:
		return q, cli.Exitf(cli.Usage, "generate: both --prompts and prompts; want one of them")
	case c.System != "" && !c.Chat:
		return q, cli.Exitf(cli.Usage, "generate: --system has no effect without --chat")
	case c.Each < 1:
		return q, cli.Exitf(cli.Usage, "generate: -n %d, want 1 or more", c.Each)
	case c.Temperature == 0 && (c.TopK > 0 || c.TopP > 0):
		return q, cli.Exitf(cli.Usage, "generate: --top-k and --top-p have no effect at temperature 0")
	case c.Temperature == 0 && c.Each > 1:
		return q, cli.Exitf(cli.Usage, "generate: at temperature 0 all %d continuations of a prompt are the same", c.Each)
	}
	q.Each = c.Each
	q.Options = sample.Options{MaxTokens: c.MaxTokens, Temperature: c.Temperature, TopK: c.TopK, TopP: c.TopP, Seed: c.Seed, Batch: c.Batch, Top: c.Top}
	for _, t := range c.Text {
		q.Asks = append(q.Asks, text.Ask{Prompt: t})
	}
	if c.Prompts != "" {
		if q.Asks, err = text.ReadAsks(c.Prompts); err != nil {
			return q, cli.Exit(cli.Invalid, err)
		}
	}
	if len(q.Asks) == 0 {
		if c.Chat {
			return q, cli.Exitf(cli.Usage, "generate: --chat wants a prompt")
		}
		q.Asks = []text.Ask{{}}
	}
	for i := range q.Asks {
		if a := &q.Asks[i]; c.Chat && len(a.Messages) == 0 {
			if c.System != "" {
				a.Messages = append(a.Messages, text.Message{Role: "system", Content: c.System})
			}
			a.Messages, a.Prompt = append(a.Messages, text.Message{Role: "user", Content: a.Prompt}), ""
		}
	}
	return q, nil
}

func printGeneration(w io.Writer, r *text.Result, streamed bool) {
	if streamed {
		fmt.Fprintln(w)
		return
	}
	for i, a := range r.Answers {
		fmt.Fprintf(w, "── prompt %d, continuation %d: %d tokens, ended by %s\n%s\n", a.Prompt, i, len(a.Tokens), a.End, a.Text)
	}
}

func printRate(w io.Writer, r *text.Result) {
	fmt.Fprintf(w, "%d prompt tokens; %d tokens in %.2f s", r.Bill.Prompt, r.Bill.Sampled, r.Seconds)
	if r.Rate > 0 {
		fmt.Fprintf(w, ", %.1f tok/s after the first %.2f s", r.Rate, r.FirstSeconds)
	}
	fmt.Fprintln(w)
}
