package study

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"heddle/rl"
	"heddle/rl/tasks"
)

func policy(t *testing.T) *rl.Policy {
	t.Helper()
	c, err := rl.Preset("path", "tiny")
	if err != nil {
		t.Fatal(err)
	}
	c.Task.Layers, c.Task.Width, c.Supervise.Steps, c.Eval.Prompts = 5, 5, 150, 24
	p, err := rl.Teach(context.Background(), c, func(rl.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// The exact value of a prefix is what continuations come to: for every prompt, at its start and after one token, the share of 400 fresh continuations that
// succeed lies within 4.5 standard deviations, √(V(1−V)/400), of it; 48 comparisons all hold with a chance of 0.9997.
func TestExactValueIsTheShareOfContinuations(t *testing.T) {
	p := policy(t)
	ways, err := p.Ways(p.HeldOut)
	if err != nil {
		t.Fatal(err)
	}
	const n = 400
	whole, err := p.Draw(context.Background(), rl.Draw{Starts: rl.Starts(p.HeldOut), Group: n, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	var starts []rl.Start
	var first []float64
	for i, g := range whole.Groups {
		v := value(newTrace(g.Rollouts[0]).IDs, ways[i])
		near(t, g.Prompt.Text, float64(g.Successes())/n, v[0], n)
		starts, first = append(starts, rl.Start{Prompt: g.Prompt, Prefix: []int32{g.Rollouts[0].Tokens[0].ID}}), append(first, v[1])
	}
	rest, err := p.Draw(context.Background(), rl.Draw{Starts: starts, Group: n, Seed: 6})
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range rest.Groups {
		near(t, g.Prompt.Text+" after one token", float64(g.Successes())/n, first[i], n)
	}
}

func near(t *testing.T, what string, got, want, n float64) {
	t.Helper()
	if math.Abs(got-want) > 4.5*math.Sqrt(want*(1-want)/n)+1e-6 {
		t.Errorf("%s: %.3f of continuations succeed, the value is %.3f", what, got, want)
	}
}

// A study of a taught policy: the sham changes nothing, not a token; arms whose gain enumeration gives have it within their interval, widened by half for
// being many; the report is well formed and names the answer. The later policy is a later one.
func TestStudyOfATaughtPolicy(t *testing.T) {
	p := policy(t)
	c := Default()
	c.Group, c.Bootstrap, c.Later = 24, 200, 3
	s := Of(p)
	res, err := Run(context.Background(), c, s, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	exact := 0
	for _, a := range res.Arms {
		if a.Action == Nothing && (a.Gain.Value != 0 || a.Extra != 0 || a.Fired == 0) {
			t.Errorf("the sham gains %+v for %g tokens where %g fired", a.Gain, a.Extra, a.Fired)
		}
		if a.Expected != nil {
			exact++
			wide := 0.5*(a.Gain.High-a.Gain.Low) + 0.01
			if *a.Expected < a.Gain.Low-wide || *a.Expected > a.Gain.High+wide {
				t.Errorf("%s: gain %+v, by enumeration %.4f", a.Name(), a.Gain, *a.Expected)
			}
		}
	}
	if exact < 20 || res.Values == nil || len(res.Ladder) != 10 {
		t.Errorf("%d arms with an exact gain, %d rungs", exact, len(res.Ladder))
	}
	for _, r := range res.Ladder {
		if (r.Later == nil) != (r.Kind == Exact) {
			t.Errorf("%s on the later policy: %+v", r.Kind, r.Later)
		}
	}
	var page bytes.Buffer
	if err := res.WriteHTML(&page, "heddle rl study"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Primary outcome", "entropy / fork at cut", "anti-oracle", "by enumeration", "majority vote"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Count(page.String(), "<svg") != 12 || strings.Contains(page.String(), "NaN") {
		t.Errorf("%d pictures", strings.Count(page.String(), "<svg"))
	}
	if _, err := json.Marshal(res); err != nil {
		t.Error(err)
	}
}

// A task that cannot list its successes has no exact values, and the study does without.
func TestStudyWithoutEnumeration(t *testing.T) {
	p := policy(t)
	p.Problem.Task = opaque{p.Problem.Task}
	c := Default()
	c.Group, c.Bootstrap, c.Later, c.Hidden = 6, 50, 0, false
	res, err := Run(context.Background(), c, Of(p), func(string, ...any) {})
	if err != nil || res.Values != nil || len(res.Ladder) != 8 {
		t.Fatalf("%v: %+v", err, res)
	}
	var page bytes.Buffer
	if err := res.WriteHTML(&page, ""); err != nil || strings.Count(page.String(), "<svg") != 10 {
		t.Errorf("%v, %d pictures", err, strings.Count(page.String(), "<svg"))
	}
}

type opaque struct{ tasks.Task }

// Policies of two seeds are one subject: every prompt is drawn from its own policy, in order, its values are that policy's, and both halves have both.
func TestPoolOfPolicies(t *testing.T) {
	a, b := policy(t), policy(t)
	s := Pool(a, b)
	if len(s.Prompts) != len(a.HeldOut)+len(b.HeldOut) || len(Pool(a).Prompts) != len(a.HeldOut) {
		t.Fatalf("%d prompts", len(s.Prompts))
	}
	var starts []rl.Start
	for _, k := range []int{3, 0, 5, 1} {
		starts = append(starts, rl.Start{Prompt: s.Prompts[k], Streams: []uint64{7, 8}})
	}
	d, err := s.World.Draw(context.Background(), rl.Draw{Starts: starts, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range d.Groups {
		own, at := a, strings.TrimPrefix(g.Prompt.ID, "0/")
		if strings.HasPrefix(g.Prompt.ID, "1/") {
			own, at = b, strings.TrimPrefix(g.Prompt.ID, "1/")
		}
		want, err := own.Draw(context.Background(), rl.Draw{Starts: []rl.Start{{Prompt: tasks.Prompt{ID: at, Text: at}, Streams: []uint64{7, 8}}}, Seed: 2})
		if err != nil || g.Prompt.ID != starts[i].Prompt.ID || want.Groups[0].Rollouts[1].Text != g.Rollouts[1].Text {
			t.Errorf("%v: %+v", err, g.Prompt)
		}
	}
	ways, err := s.Ways()
	if err != nil || len(ways) != len(s.Prompts) || ways[1] == nil {
		t.Fatal(err)
	}
	c := Default()
	c.Group, c.Bootstrap, c.Later = 6, 50, 1
	if res, err := Run(context.Background(), c, s, func(string, ...any) {}); err != nil || res.Values == nil || !strings.Contains(res.Task, "2 policies") {
		t.Errorf("%v", err)
	}
}
