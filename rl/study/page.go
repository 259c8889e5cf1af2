package study

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"heddle/report"
)

//go:embed page.html
var pageText string

// picture is an SVG with a sentence under it.
type picture struct {
	SVG     template.HTML
	Caption string
}

// WriteHTML writes the study as a page that needs nothing else. command is what made it.
func (r *Result) WriteHTML(w io.Writer, command string) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"pct": func(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) },
		"points": func(e Estimate) string {
			return fmt.Sprintf("%+.1f (%+.1f … %+.1f)", 100*e.Value, 100*e.Low, 100*e.High)
		},
		"auc":   func(e Estimate) string { return fmt.Sprintf("%.3f (%.3f … %.3f)", e.Value, e.Low, e.High) },
		"three": func(x float64) string { return fmt.Sprintf("%.3f", x) },
		"two":   func(x float64) string { return fmt.Sprintf("%+.2f", x) },
		"p":     func(x float64) string { return fmt.Sprintf("%.2g", x) },
		"mid":   func(a []AUC) AUC { return a[len(a)/2] },
	}).Parse(pageText)
	if err != nil {
		return err
	}
	pictures, err := r.pictures()
	if err != nil {
		return err
	}
	return t.Execute(w, struct {
		*Result
		Pictures []picture
		Command  string
		Primary  Comparison
	}{r, pictures, command, r.Primary})
}

// pictures are the plots of the page, in order.
func (r *Result) pictures() (out []picture, err error) {
	for _, x := range []struct {
		caption string
		draw    func(io.Writer) error
	}{
		{"Within prompts: the chance that a success scores above a failure of the same prompt. 0.5 is no knowledge; length and difficulty cannot do better, because all rollouts of a prompt share them, except through their length so far. The band is entropy's 95 % interval over prompts.", r.aucPicture(true)},
		{"Pooled: the same over all pairs. It also rewards telling easy prompts from hard ones, which no restart can use.", r.aucPicture(false)},
		{"Entropy by outcome, lined up at the first token.", r.startPicture},
		{"Entropy by outcome, lined up at the last token.", r.endPicture},
		{"Entropy around the token that lost a failure (0), beside successes of the same prompts at the same tokens.", r.lossPicture},
		{"The exact chance of success before each token, of rollouts that will succeed and that will fail; dashed: at the tokens before the loss.", r.valuePicture},
		{"How much of the variance of that chance lies within prompts.", r.variancePicture},
		{"Reliability: what the entropy predictor says, and what happened, on the frozen policy and after reinforcement.", r.reliabilityPicture},
		{"False alarms asked for and got on prompts the threshold was not set on.", r.ratePicture},
		{"Gain of every arm with its 95 % interval over prompts. Where the value of a prefix is exact, the ring is the gain that enumeration expects.", r.forestPicture},
		{"Gain beside extra tokens, the control's tokens being 1.", r.paretoPicture},
		{"Held-out success of the policy alone while it is trained with each arm, over the tokens that were drawn (mean of seeds).", r.learningPicture(false)},
		{"The same over wall time.", r.learningPicture(true)},
		{"Compute-matched: what independent samples buy with the same tokens.", r.baselinePicture},
	} {
		var b bytes.Buffer
		if err := x.draw(&b); err != nil {
			return nil, fmt.Errorf("study: picture %q: %w", x.caption, err)
		}
		if b.Len() > 0 {
			if at := bytes.Index(b.Bytes(), []byte("<svg")); at > 0 {
				b.Next(at) // without the XML header
			}
			out = append(out, picture{template.HTML(b.String()), x.caption})
		}
	}
	return out, nil
}

func (r *Result) aucPicture(within bool) func(io.Writer) error {
	return func(w io.Writer) error {
		a := report.Axes{Title: "AUC within prompts", X: "tokens seen", Y: "AUC", YMin: 0.4, YMax: 1, Across: []float64{0.5}, Beside: 0.4}
		if !within {
			a.Title = "AUC pooled over prompts"
		}
		var curves []report.Curve
		for _, g := range r.Ladder {
			c := report.Curve{Name: string(g.Kind), Dots: true, Dashed: g.Kind == Exact || g.Kind == Length || g.Kind == Prior}
			for _, x := range g.AUC {
				e := x.Pooled
				if within {
					e = x.Within
				}
				c.Points = append(c.Points, report.Point{X: float64(x.At), Y: e.Value})
				if g.Kind == Entropy {
					c.Low, c.High = append(c.Low, e.Low), append(c.High, e.High)
				}
			}
			curves = append(curves, c)
		}
		return report.CurvesSVG(w, a, curves)
	}
}

func series(name string, y []float64, x func(i int) float64) report.Curve {
	c := report.Curve{Name: name, Dots: true}
	for i, v := range y {
		c.Points = append(c.Points, report.Point{X: x(i), Y: v})
	}
	return c
}

func (r *Result) startPicture(w io.Writer) error {
	at := func(i int) float64 { return float64(i) }
	return report.CurvesSVG(w, report.Axes{Title: "entropy from the start", X: "token", Y: "nats"}, []report.Curve{series("successes", r.Aligned.Right, at), series("failures", r.Aligned.Wrong, at)})
}

func (r *Result) endPicture(w io.Writer) error {
	flip := func(y []float64) []float64 {
		y = slices.Clone(y)
		slices.Reverse(y)
		return y
	}
	at := func(i int) float64 { return float64(i - len(r.Aligned.EndR) + 1) }
	return report.CurvesSVG(w, report.Axes{Title: "entropy to the end", X: "token (0 is the last)", Y: "nats"}, []report.Curve{series("successes", flip(r.Aligned.EndR), at), series("failures", flip(r.Aligned.EndW), at)})
}

func (r *Result) lossPicture(w io.Writer) error {
	at := func(i int) float64 { return float64(i - lossSpan) }
	return report.CurvesSVG(w, report.Axes{Title: "entropy around the loss", X: "token (0 lost it)", Y: "nats"}, []report.Curve{series("successes, same prompts and tokens", r.Aligned.Control, at), series("failures", r.Aligned.Loss, at)})
}

func (r *Result) valuePicture(w io.Writer) error {
	if r.Values == nil {
		return nil
	}
	var right, wrong []float64
	for _, p := range r.Values.Points {
		right, wrong = append(right, p.Right), append(wrong, p.Wrong)
	}
	at := func(i int) float64 { return float64(i) }
	loss := series("failures, tokens before the loss", r.Values.Losses, func(i int) float64 { return float64(i) })
	loss.Dashed = true
	return report.CurvesSVG(w, report.Axes{Title: "chance of success before a token", X: "token", Y: "V(prefix)", YMin: 0, YMax: 1, Bottom: true, Left: true}, []report.Curve{series("will succeed", right, at), series("will fail", wrong, at), loss})
}

func (r *Result) variancePicture(w io.Writer) error {
	if r.Values == nil {
		return nil
	}
	c := report.Curve{Dots: true}
	for _, p := range r.Values.Points {
		if all := p.Within + p.Between; all > 0 {
			c.Points = append(c.Points, report.Point{X: float64(p.At), Y: p.Within / all})
		}
	}
	return report.CurvesSVG(w, report.Axes{Title: "variance of V within prompts", X: "token", Y: "share", YMin: 0, YMax: 1}, []report.Curve{c})
}

func (r *Result) rung(k Kind) *Rung {
	for _, g := range r.Ladder {
		if g.Kind == k {
			return g
		}
	}
	return nil
}

func (r *Result) reliabilityPicture(w io.Writer) error {
	g := r.rung(Entropy)
	bins := func(name string, c Calibration) report.Curve {
		out := report.Curve{Name: name, Dots: true}
		for _, b := range c.Bins {
			out.Points = append(out.Points, report.Point{X: b.Said, Y: b.Seen})
		}
		return out
	}
	curves := []report.Curve{bins("frozen policy", g.Calibration)}
	if g.Later != nil {
		curves = append(curves, bins("after reinforcement", g.Later.Calibration))
	}
	curves = append(curves, report.Curve{Name: "perfect", Dashed: true, Points: []report.Point{{X: 0, Y: 0}, {X: 1, Y: 1}}})
	return report.CurvesSVG(w, report.Axes{Title: "reliability of the entropy predictor", X: "chance of success said", Y: "seen", YMin: 0, YMax: 1, Left: true}, curves)
}

func (r *Result) ratePicture(w io.Writer) error {
	var labels []string
	var asked, got, later []float64
	for _, g := range r.Ladder {
		labels = append(labels, string(g.Kind))
		asked, got = append(asked, g.Asked), append(got, g.Trigger.OnRight)
		if g.Later != nil {
			later = append(later, g.Later.Trigger.OnRight)
		} else {
			later = append(later, 0)
		}
	}
	for i, l := range labels {
		labels[i] = short(l)
	}
	return report.BarsSVG(w, report.Axes{Title: "share of successes that fire", Y: "share", YMin: 0, YMax: max(0.3, 1.2*slices.Max(append(slices.Clone(got), later...)))}, labels, []string{"asked", "got", "got later"}, [][]float64{asked, got, later})
}

// short fits a label under a bar.
func short(s string) string {
	for _, x := range [][2]string{{"prompt prior", "prior"}, {"log-probability", "log-prob."}, {"top-3 entropy", "top-3"}, {"window logistic", "window"}, {"small MLP", "MLP"}, {"hidden state", "hidden"}, {"exact value", "exact"}} {
		if s == x[0] {
			return x[1]
		}
	}
	return s
}

func (r *Result) forestPicture(w io.Writer) error {
	var rows []report.Effect
	for _, a := range r.Arms {
		if a.Action == Stop {
			continue // its loss would squeeze the others
		}
		e := report.Effect{Label: strings.Replace(a.Name(), "shuffled within prompt", "shuffled", 1), Value: 100 * a.Gain.Value, Low: 100 * a.Gain.Low, High: 100 * a.Gain.High}
		if a.Expected != nil {
			x := 100 * *a.Expected
			e.Expected = &x
		}
		rows = append(rows, e)
	}
	return report.ForestSVG(w, report.Axes{Title: "gain over the control", X: "points of success"}, rows)
}

func (r *Result) paretoPicture(w io.Writer) error {
	kinds := []string{"entropy and classifiers", "random, position, difficulty, shuffled", "oracle", "anti-oracle", "choice of branches"}
	var dots []report.Dot
	for _, a := range r.Arms {
		k := 0
		switch {
		case a.Branches > 1:
			k = 4
		case a.Trigger == "oracle":
			k = 2
		case a.Trigger == "anti-oracle":
			k = 3
		case a.Trigger == "random" || a.Trigger == "position" || a.Trigger == "difficulty" || strings.HasSuffix(a.Trigger, "shuffled within prompt"):
			k = 1
		}
		dots = append(dots, report.Dot{Name: a.Name(), X: a.Relative, Y: 100 * a.Gain.Value, Kind: k})
	}
	return report.DotsSVG(w, report.Axes{Title: "gain and its price", X: "extra tokens", Y: "points", Across: []float64{0}}, kinds, dots)
}

func (r *Result) learningPicture(byTime bool) func(io.Writer) error {
	return func(w io.Writer) error {
		if r.Training == nil {
			return nil
		}
		a := report.Axes{Title: "learning by tokens", X: "tokens drawn", Y: "held-out success", Beside: 0.6}
		if byTime {
			a.Title, a.X = "learning by time", "seconds"
		}
		var curves []report.Curve
		for _, arm := range r.Training.Arms {
			curves = append(curves, arm.curve(r.Training.Before, byTime))
		}
		return report.CurvesSVG(w, a, curves)
	}
}

// curve is the mean over seeds of the looks that all of them have.
func (a *TrainArm) curve(before float64, byTime bool) report.Curve {
	c := report.Curve{Name: a.Name, Dots: true, Points: []report.Point{{X: 0, Y: before}}}
	n := len(a.Each[0].Curve)
	for _, run := range a.Each {
		n = min(n, len(run.Curve))
	}
	for k := range n {
		p, seeds := report.Point{}, float64(len(a.Each))
		for _, run := range a.Each {
			x := float64(run.Curve[k].Tokens)
			if byTime {
				x = run.Curve[k].Seconds
			}
			p.X, p.Y = p.X+x/seeds, p.Y+run.Curve[k].Success/seeds
		}
		c.Points = append(c.Points, p)
	}
	return c
}

func (r *Result) baselinePicture(w io.Writer) error {
	var mean, voted, pass []float64
	for _, b := range r.Baselines {
		mean, voted, pass = append(mean, b.Mean), append(voted, b.Vote), append(pass, b.Pass)
	}
	at := func(i int) float64 { return math.Round(10*r.Baselines[i].Tokens) / 10 }
	return report.CurvesSVG(w, report.Axes{Title: "independent samples of a prompt", X: "tokens", Y: "success", YMin: 0, YMax: 1, Bottom: true}, []report.Curve{series("one of them", mean, at), series("majority vote", voted, at), series("any (needs a verifier)", pass, at)})
}
