package rl

import (
	"fmt"
	"math"
)

// Staleness says how old a token may be: how many steps the weights have moved since those that drew it.
type Staleness struct {
	Ahead int       `yaml:"ahead" json:"ahead"` // batches that generation may be ahead of learning; 0: synchronous
	Most  int       `yaml:"most" json:"most"`   // versions that a token may be old; what is older is dropped or weighs less
	Old   OldPolicy `yaml:"old" json:"old"`
	Sync  SyncAt    `yaml:"sync" json:"sync"`
}

// OldPolicy says what becomes of tokens older than Staleness.Most.
type OldPolicy string

const (
	Drop       OldPolicy = "drop"   // a rollout with such a token teaches nothing; its reward still counts in its group's mean
	DownWeight OldPolicy = "weight" // such a token counts 1/(1 + versions beyond Most)
)

// SyncAt says when generation takes newer weights.
type SyncAt string

const (
	AtRounds SyncAt = "round" // where a round begins
	InFlight SyncAt = "token" // between any two tokens, as soon as there are newer ones: a completion may mix versions
)

// Check refuses what has no meaning.
func (s Staleness) Check() error {
	switch {
	case s.Ahead < 0 || s.Ahead > 64 || s.Most < 0:
		return fmt.Errorf("rl: staleness.ahead is %d and staleness.most %d, want 0 to 64 and 0 or more", s.Ahead, s.Most)
	case s.Sync != AtRounds && s.Sync != InFlight:
		return fmt.Errorf("rl: staleness.sync is %q, want round or token", s.Sync)
	case s.Ahead == 0 && s.Sync == InFlight:
		return fmt.Errorf("rl: staleness.sync=token has no effect with staleness.ahead 0; hint: staleness.ahead=1")
	case s.Old != Drop && s.Old != DownWeight:
		return fmt.Errorf("rl: staleness.old is %q, want drop or weight", s.Old)
	}
	return nil
}

func (s Staleness) weight(age int) float64 {
	if s.Old == DownWeight && age > s.Most {
		return 1 / float64(1+age-s.Most)
	}
	return 1
}

func (s Staleness) drops(age int) bool { return s.Old == Drop && age > s.Most }

// StaleCounts is how old the tokens of a batch were when it was learned from.
type StaleCounts struct {
	Histogram map[int]int `json:"histogram"` // tokens by age in versions
	Dropped   int         `json:"dropped"`   // rollouts
}

// reward is NaN where there is none.
func (r *Rollout) reward() float64 {
	if !r.Scored {
		return math.NaN()
	}
	return r.Reward
}
