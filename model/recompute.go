package model

import (
	"fmt"
	"strconv"
	"strings"
)

// Policy says what Forward keeps for Backward.
type Policy struct {
	Mode  Keep `yaml:"mode" json:"mode"`
	Every int  `yaml:"every" json:"every"` // with mode full: every n-th layer keeps its input only, the others are selective; 0 counts as 1
}

// Keep is how much is kept.
type Keep string

const (
	Selective Keep = "selective" // what norms, RoPE and SwiGLU made is rebuilt from x, q, k, gate and up
	All       Keep = "all"       // nothing is rebuilt (collectives of Enter are made again all the same)
	Full      Keep = "full"      // only a layer's input is kept; Backward runs the layer forward again
)

// Check refuses a policy that does not exist or has no effect.
func (p Policy) Check() error {
	switch {
	case p.Mode != "" && p.Mode != Selective && p.Mode != All && p.Mode != Full:
		return fmt.Errorf("model: recompute.mode is %q, want selective, all or full", p.Mode)
	case p.Every < 0:
		return fmt.Errorf("model: recompute.every is %d, want 0 or more", p.Every)
	case p.Every > 1 && p.Mode != Full:
		return fmt.Errorf("model: recompute.every has no effect with mode %q; hint: recompute.mode=full", p.Mode)
	}
	return nil
}

// full tells whether layer l keeps its input only.
func (p Policy) full(l int) bool { return p.Mode == Full && l%max(1, p.Every) == 0 }

// ParsePolicy reads a policy's name: none (nothing is rebuilt), selective, full, or everyN (every N-th layer is full).
func ParsePolicy(name string) (Policy, error) {
	switch name {
	case "none":
		return Policy{Mode: All, Every: 1}, nil
	case "selective":
		return Policy{Mode: Selective, Every: 1}, nil
	case "full":
		return Policy{Mode: Full, Every: 1}, nil
	}
	if n, ok := strings.CutPrefix(name, "every"); ok {
		if every, err := strconv.Atoi(n); err == nil && every >= 2 && every <= 1<<12 && n[0] != '0' && n[0] != '+' {
			return Policy{Mode: Full, Every: every}, nil
		}
	}
	return Policy{}, fmt.Errorf("model: recomputation %q, want none, selective, full, or everyN with N of 2 or more; hint: every2", name)
}

// Name is the policy as ParsePolicy reads it.
func (p Policy) Name() string {
	switch {
	case p.Mode == All:
		return "none"
	case p.Mode == Full && p.Every > 1:
		return "every" + strconv.Itoa(p.Every)
	case p.Mode == Full:
		return "full"
	}
	return "selective"
}
