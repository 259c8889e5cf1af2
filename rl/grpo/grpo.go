// Package grpo is the loss of group relative policy optimisation and its relatives, as a function of log-probabilities.
//
// For every prompt a group of completions is sampled; a completion's advantage is its reward beside the others'. The loss needs of the policy only the
// log-probability of each sampled token, so that this package knows no model: Advantages turns rewards into a Batch, Batch.Loss takes the policy's
// log-probabilities and returns the loss with ∂loss/∂log-probability of each token. A model multiplies the latter into its softmax gradient.
//
// One small table of knobs (Config) covers GRPO (Shao et al. 2024, arXiv 2402.03300), Dr. GRPO (Liu et al. 2025, 2503.20783), DAPO (Yu et al. 2025,
// 2503.14476), GSPO (Zheng et al. 2025, 2507.18071), CISPO (MiniMax 2025, 2506.13585), RLOO (Ahmadian et al. 2024, 2402.14740), the 80/20 mask (Wang et al.
// 2025, 2506.01939) and truncated importance correction. Read Config, advantage.go, loss.go.
package grpo

import (
	"fmt"
	"math"
)

// Config are the knobs. The zero value is no loss: see Default and Preset.
type Config struct {
	Std           bool      `yaml:"std" json:"std"`                     // divide advantages by the group's standard deviation (GRPO); Dr. GRPO does not
	LeaveOneOut   bool      `yaml:"leave_one_out" json:"leave_one_out"` // the baseline is the mean of the others (RLOO)
	Norm          Norm      `yaml:"norm" json:"norm"`
	Length        int       `yaml:"length" json:"length"` // tokens that norm constant divides by, and that a completion may have (overlong penalty)
	Ratio         Ratio     `yaml:"ratio" json:"ratio"`
	Objective     Objective `yaml:"objective" json:"objective"`
	ClipLow       float64   `yaml:"clip_low" json:"clip_low"`     // the ratio is held above 1 − clip_low
	ClipHigh      float64   `yaml:"clip_high" json:"clip_high"`   // and below 1 + clip_high
	KL            float64   `yaml:"kl" json:"kl"`                 // weight of the divergence from the reference
	DropEqual     bool      `yaml:"drop_equal" json:"drop_equal"` // leave groups out whose rewards are all equal; else they count in the mean with gradient 0
	Overlong      Overlong  `yaml:"overlong" json:"overlong"`
	Buffer        int       `yaml:"buffer" json:"buffer"`                 // tokens before Length over which the penalty rises to 1
	TopEntropy    float64   `yaml:"top_entropy" json:"top_entropy"`       // share of a batch's tokens, those of highest entropy, that get a gradient; 0: all
	ImportanceCap float64   `yaml:"importance_cap" json:"importance_cap"` // most that a token counts for having been drawn by another policy; 0: no correction
}

// Norm says what the summed token losses are divided by.
type Norm string

const (
	PerSequence Norm = "sequence" // mean over a completion's tokens, then over completions (GRPO)
	PerToken    Norm = "token"    // mean over the batch's tokens (DAPO)
	Constant    Norm = "constant" // completions times Length (Dr. GRPO)
)

// Ratio says of what the policy's ratio is taken.
type Ratio string

const (
	OfToken    Ratio = "token"
	OfSequence Ratio = "sequence" // exp of the mean log-ratio of its tokens (GSPO)
)

// Objective says what clipping does.
type Objective string

const (
	Clip  Objective = "clip"  // min(ρA, clip(ρ)A): a token outside loses its gradient (PPO)
	CISPO Objective = "cispo" // sg(clip(ρ))·A·log π: a token outside keeps a bounded one
)

// Overlong says what becomes of a completion that was cut off at its greatest length.
type Overlong string

const (
	Keep    Overlong = "keep"    // it has the reward that the verifier gave
	Mask    Overlong = "mask"    // it has no loss, but counts in its group's baseline (DAPO's filtering)
	Penalty Overlong = "penalty" // the reward falls by up to 1 over the last Buffer tokens (DAPO's soft punishment)
)

// Preset is a published combination. Length must still be set where it is used.
func Preset(name string) (Config, error) {
	c := Config{Std: true, Norm: PerSequence, Ratio: OfToken, Objective: Clip, ClipLow: 0.2, ClipHigh: 0.2, Overlong: Keep}
	switch name {
	case "grpo":
		c.KL = 0.04
	case "dr-grpo":
		c.Std, c.Norm = false, Constant
	case "dapo":
		c.Norm, c.ClipHigh, c.DropEqual, c.Overlong = PerToken, 0.28, true, Mask
	case "gspo":
		c.Ratio, c.ClipLow, c.ClipHigh = OfSequence, 3e-4, 4e-4
	case "cispo":
		c.Norm, c.Objective, c.ClipLow, c.ClipHigh = PerToken, CISPO, 1, 4
	case "rloo":
		c.Std, c.LeaveOneOut = false, true
	case "80/20":
		c.Norm, c.ClipHigh, c.DropEqual, c.TopEntropy = PerToken, 0.28, true, 0.2
	default:
		return c, fmt.Errorf("grpo: no preset %q; hint: grpo, dr-grpo, dapo, gspo, cispo, rloo or 80/20", name)
	}
	return c, nil
}

// Check refuses what is no loss, and options that would have no effect.
func (c Config) Check() error {
	norm := c.Norm == PerSequence || c.Norm == PerToken || c.Norm == Constant
	within := func(x, lo, hi float64) bool { return x >= lo && x <= hi }
	switch {
	case !norm:
		return fmt.Errorf("grpo: norm is %q, want sequence, token or constant", c.Norm)
	case c.Ratio != OfToken && c.Ratio != OfSequence:
		return fmt.Errorf("grpo: ratio is %q, want token or sequence", c.Ratio)
	case c.Objective != Clip && c.Objective != CISPO:
		return fmt.Errorf("grpo: objective is %q, want clip or cispo", c.Objective)
	case c.Overlong != Keep && c.Overlong != Mask && c.Overlong != Penalty:
		return fmt.Errorf("grpo: overlong is %q, want keep, mask or penalty", c.Overlong)
	case !within(c.ClipLow, 0, 1) || !(c.ClipHigh >= 0) || math.IsInf(c.ClipHigh, 0):
		return fmt.Errorf("grpo: clip_low %g and clip_high %g, want 0 to 1 and 0 or more", c.ClipLow, c.ClipHigh)
	case !within(c.KL, 0, 1e3) || !within(c.TopEntropy, 0, 1):
		return fmt.Errorf("grpo: kl %g and top_entropy %g, want 0 to 1000 and 0 to 1", c.KL, c.TopEntropy)
	case c.ImportanceCap != 0 && !within(c.ImportanceCap, 1, 1e6):
		return fmt.Errorf("grpo: importance_cap is %g, want 0 for no correction, or 1 or more", c.ImportanceCap)
	case (c.Norm == Constant || c.Overlong == Penalty) && c.Length < 1:
		return fmt.Errorf("grpo: length is %d, want the tokens that a completion may have: norm constant and overlong penalty need it", c.Length)
	case c.Overlong == Penalty && (c.Buffer < 1 || c.Buffer > c.Length):
		return fmt.Errorf("grpo: buffer is %d, want 1 to the length, %d", c.Buffer, c.Length)
	case c.Overlong != Penalty && c.Buffer != 0:
		return fmt.Errorf("grpo: buffer has no effect with overlong %s; hint: overlong=penalty", c.Overlong)
	case c.Std && c.LeaveOneOut:
		return fmt.Errorf("grpo: leave_one_out scales a group's advantages by G/(G-1), which std divides out again; hint: std=false")
	}
	return nil
}

// Token is what sampling left of one token.
type Token struct {
	Drawn    float64 // log-probability under the policy that drew it
	Proximal float64 // under the policy that the ratio is taken to: that of the update's start; Drawn where it is not computed
	Ref      float64 // under the reference; read where Config.KL > 0
	Entropy  float64 // of the whole vocabulary; read where Config.TopEntropy > 0
	Weight   float64 // factor of its loss; 0: not trained on, as tokens that were put in; 1 as a rule
}

// Sample is one completion. A Reward that is not finite means that it could not be scored.
type Sample struct {
	Reward    float64
	Truncated bool // cut off at its greatest length
	Tokens    []Token
}

// Group is the completions of one prompt.
type Group []Sample
