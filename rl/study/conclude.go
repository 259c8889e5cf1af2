package study

import "fmt"

// conclude compares the primary arms.
func (st *study) conclude() {
	r := st.res
	a, b := r.find(st.c.Primary), r.find(st.c.Against)
	if a != nil && b != nil {
		var diff, weight []float64
		for i := range a.gains {
			diff, weight = append(diff, a.gains[i]-b.gains[i]), append(weight, float64(len(st.groups[i])))
		}
		r.Primary = Comparison{a.Name(), b.Name(), bootstrap(len(diff), st.c.Bootstrap, st.c.Seed, meanOf(diff, weight)), twoSided(diff, weight)}
	}
	for _, x := range r.Arms {
		if x.Trigger == "oracle" && (r.Ceiling == nil || x.Gain.Value > r.Ceiling.Gain.Value) {
			r.Ceiling = x
		}
	}
}

// others says which arms of entropy, not named before, differ from the control after Holm's adjustment, and what they cost.
func (r *Result) others(say func(string, ...any)) {
	for _, a := range r.Arms {
		if a.Trigger == string(Entropy) && a.Branches == 1 && a.Action != Stop && a.Holm < 0.05 {
			like := r.find("random / " + string(a.Action))
			say("Not named before: %s changes success by %s, at %.0f %% of the control's tokens, p = %.2g after Holm's adjustment; the random trigger of the same rate by %s.", a.Name(), points(a.Gain), 100*(1+a.Relative), a.Holm, points(like.Gain))
		}
	}
	w, s := r.find(string(Window)+" / "+string(ForkCut)), r.find("window shuffled within prompt / "+string(ForkCut))
	say("With log-probabilities beside entropy: the window logistic's fork at cut gains %s; its firings shuffled within prompts %s.", points(w.Gain), points(s.Gain))
}

func (r *Result) find(name string) *Arm {
	for _, a := range r.Arms {
		if a.Name() == name {
			return a
		}
	}
	return nil
}

func points(e Estimate) string {
	return fmt.Sprintf("%+.1f points (95 %% interval %+.1f to %+.1f)", 100*e.Value, 100*e.Low, 100*e.High)
}

// Conclude says in words what the numbers say. It is for when all phases are there.
func (r *Result) Conclude() {
	r.Answer = nil
	say := func(format string, args ...any) { r.Answer = append(r.Answer, fmt.Sprintf(format, args...)) }
	e, l := r.rung(Entropy), r.rung(Length)
	mid := e.AUC[len(e.AUC)/2]
	base := l.AUC[len(l.AUC)/2]
	say("Does entropy leak fate? After %d of %.1f tokens its AUC within prompts is %.3f (%.3f to %.3f), pooled over prompts %.3f; length and difficulty alone have %.3f within and %.3f pooled.",
		mid.At, r.Length, mid.Within.Value, mid.Within.Low, mid.Within.High, mid.Pooled.Value, base.Within.Value, base.Pooled.Value)
	if len(r.Adds) > 0 {
		x := r.Adds[len(r.Adds)/2]
		verdict := "adds nothing that this study can see"
		if x.Low > 0 {
			verdict = "adds something"
		} else if x.High < 0 {
			verdict = "is worse"
		}
		say("Beyond length and difficulty entropy %s within prompts: %+.3f of AUC (%+.3f to %+.3f).", verdict, x.Value, x.Low, x.High)
	}
	lead := e.Trigger.Lead
	say("Early enough? At the threshold asked to fire on %.0f %% of successes it fires on %.0f %% of them and on %.0f %% of failures; of the failures it fires on, %.0f %% fired before the token that lost them, %.0f %% at it, %.0f %% after.",
		100*e.Asked, 100*e.Trigger.OnRight, 100*e.Trigger.OnWrong, 100*lead.Before, 100*lead.At, 100*lead.After)
	if r.Primary.Arm != "" {
		verdict := "no difference that this study can see"
		if r.Primary.Difference.Low > 0 {
			verdict = "it helps"
		} else if r.Primary.Difference.High < 0 {
			verdict = "it harms"
		}
		say("Does acting on it help? The primary outcome, %s against %s: %s, p = %.2g: %s.", r.Primary.Arm, r.Primary.Against, points(r.Primary.Difference), r.Primary.P, verdict)
	}
	r.others(say)
	if c := r.Ceiling; c != nil {
		say("The ceiling: the oracle gains %s with %q, so that the action can move the number.", points(c.Gain), c.Action)
	}
	if d := r.find("difficulty / " + string(Restart)); d != nil {
		say("The control: a trigger that knows difficulty alone, at the same rate, gains %s by restarting.", points(d.Gain))
	}
	if r.Training != nil {
		r.Training.answer(say)
	}
	say("What would change it: a policy whose steps can be taken back in words (no model trained from scratch on symbols has any), longer rollouts, in which more is decided after the first uncertain token, or a task whose losing steps are uncertain ones. Effects below %.1f points are beyond this study's power.", 100*r.Power.Detectable)
}
