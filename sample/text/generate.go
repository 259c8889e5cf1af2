package text

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"heddle/sample"
)

// Ask is one prompt: plain text, or a conversation that the chat template writes.
type Ask struct {
	Prompt   string    `json:"prompt"`
	Messages []Message `json:"messages"`
}

const maxPrompts = 64 << 20 // bytes of a file of prompts

// ReadAsks reads prompts: a .jsonl file holds {"prompt": …} or {"messages": […]} a line, any other one prompt a line; empty
// lines count for nothing.
func ReadAsks(path string) (asks []Ask, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := io.ReadAll(io.LimitReader(f, maxPrompts+1))
	if err != nil {
		return nil, err
	}
	if len(all) > maxPrompts {
		return nil, fmt.Errorf("text: %s has more than %d bytes", path, maxPrompts)
	}
	n := 0
	for line := range bytes.Lines(all) {
		n++
		if line = bytes.TrimRight(line, "\r\n"); len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		a := Ask{Prompt: string(line)}
		if strings.HasSuffix(path, ".jsonl") {
			if a, err = parseAsk(line); err != nil {
				return nil, fmt.Errorf("text: %s, line %d: %w", path, n, err)
			}
		}
		asks = append(asks, a)
	}
	if len(asks) == 0 {
		return nil, fmt.Errorf("text: %s holds no prompt", path)
	}
	return asks, nil
}

func parseAsk(line []byte) (a Ask, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return a, err
	}
	if _, err := d.Token(); err != io.EOF {
		return a, errors.New("more than one JSON value")
	}
	if (a.Prompt == "") == (len(a.Messages) == 0) {
		return a, errors.New("want either prompt or messages")
	}
	return a, nil
}

// Request is what to generate.
type Request struct {
	Asks    []Ask
	Each    int // continuations of each prompt; 0: 1
	Options sample.Options
	Piece   func(text string) // nil, or told the text of the first continuation as it comes
}

// Result is what came of it.
type Result struct {
	Model   string      `json:"model"`
	Answers []Answer    `json:"answers"`
	Bill    sample.Bill `json:"bill"`

	Seconds      float64 `json:"seconds"`       // from the first prompt token to the last of all
	FirstSeconds float64 `json:"first_seconds"` // of it until every sequence of the first batch had a token
	Rate         float64 `json:"tok_s"`         // tokens drawn after that, a second; 0 when there were none
}

// Answer is one continuation.
type Answer struct {
	*sample.Sequence
	Ask  string  `json:"prompt_text"` // as the model read it
	Text string  `json:"text"`        // without the token that ended it
	IDs  []int32 `json:"prompt_ids"`
}

// Generate answers a request. When the context ends, what there is by then is returned with its error.
func (m *Model) Generate(ctx context.Context, d sample.Decoder, q Request) (*Result, error) {
	stream := Stream{Tokenizer: m.Tokenizer}
	o := q.Options
	o.Stop = append(append([]int32(nil), o.Stop...), m.Stop...)
	if hook := o.Hook; q.Piece != nil {
		o.Hook = func(s *sample.State) (a sample.Action) {
			if t := s.Sequence.Tokens; s.Index == 0 && s.Sequence.End != sample.ByStop {
				q.Piece(stream.Add(t[len(t)-1].ID))
			}
			if hook != nil {
				a = hook(s)
			}
			return a
		}
	}
	g, err := sample.New(d, o)
	if err != nil {
		return nil, err
	}
	prompts := make([]Answer, len(q.Asks))
	for i, a := range q.Asks {
		p := sample.Prompt{Streams: make([]uint64, max(1, q.Each))}
		for j := range p.Streams {
			p.Streams[j] = uint64(i*len(p.Streams) + j)
		}
		if prompts[i].Ask, p.IDs, err = m.ids(a); err != nil {
			return nil, fmt.Errorf("prompt %d: %w", i, err)
		}
		prompts[i].IDs = p.IDs
		if err := g.Add(p); err != nil {
			return nil, err
		}
	}
	r := &Result{Model: m.Path}
	if err = r.run(ctx, g); err != nil && ctx.Err() == nil {
		return nil, err
	}
	if q.Piece != nil {
		q.Piece(stream.End())
	}
	r.Bill = g.Bill()
	for _, s := range g.Sequences {
		a := prompts[s.Prompt]
		a.Sequence, a.Text = s, m.Text(s)
		r.Answers = append(r.Answers, a)
	}
	return r, err
}

// run steps through and takes the times.
func (r *Result) run(ctx context.Context, g *sample.Generator) error {
	start := time.Now()
	first := 0 // tokens drawn in the first step
	for more := true; more; {
		if ctx.Err() != nil {
			g.Interrupt()
			break
		}
		var err error
		if more, err = g.Step(); err != nil {
			return err
		}
		if r.FirstSeconds == 0 {
			r.FirstSeconds, first = time.Since(start).Seconds(), g.Bill().Sampled
		}
	}
	r.Seconds = time.Since(start).Seconds()
	if n := g.Bill().Sampled - first; n > 0 {
		r.Rate = float64(n) / (r.Seconds - r.FirstSeconds)
	}
	return ctx.Err()
}

func (m *Model) ids(a Ask) (string, []int32, error) {
	if len(a.Messages) > 0 {
		return m.Chat(a.Messages...)
	}
	ids, err := m.Prompt(a.Prompt)
	return a.Prompt, ids, err
}

// Text is a sequence's tokens as text, without the stop token at its end.
func (m *Model) Text(s *sample.Sequence) string {
	stream := Stream{Tokenizer: m.Tokenizer}
	var b strings.Builder
	tokens := s.Tokens
	if s.End == sample.ByStop {
		tokens = tokens[:len(tokens)-1]
	}
	for _, t := range tokens {
		b.WriteString(stream.Add(t.ID))
	}
	return b.String() + stream.End()
}
