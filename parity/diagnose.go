package parity

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"heddle/comm"
	"heddle/comm/local"
	"heddle/tensor"
	"heddle/train"
)

// planted is a fault, where it strikes, and how its report is judged.
type planted struct {
	kind  Plant
	rank  int
	call  local.Called
	fault local.Fault
	nan   *poisoner
}

// choose draws the call that the fault strikes.
func (p *planted) choose(rng *rand.Rand, calls []local.Called) {
	kind := plantOf(p.kind)
	for {
		n := rng.IntN(len(calls))
		p.call = calls[n]
		p.fault = local.Fault{Kind: kind, Rank: p.rank, Call: n}
		switch {
		case kind == local.Reorder:
			next := slices.IndexFunc(calls[n+1:], func(c local.Called) bool {
				return slices.Equal(c.Ranks, p.call.Ranks) && c.Signature != p.call.Signature
			})
			if next < 0 {
				continue
			}
			p.fault.Next = calls[n+1+next].Signature
		case kind == local.NoFault && p.kind != Plant(local.NoFault.String()): // one of the NaNs
			if p.call.Elems == 0 || p.call.Type == tensor.I32 {
				continue
			}
			p.nan = &poisoner{like: p.call.Signature, once: p.kind != NaN}
		}
		return
	}
}

// ready prepares a rank before its step.
func (p *planted) ready(r *train.Rank) {
	r.Grp.Guard = p.kind == Guarded
	if p.nan != nil && r.Index == p.rank {
		r.Grp.Watch(p.nan.look)
	}
}

// judge says what is wrong with a step's end, given what was planted: nothing where it names the rank at fault, or, where two
// sides are all that calls can tell, shows that rank's side, and the call.
func (p *planted) judge(err error, got, clean *train.Trial) (named bool, wrong string) {
	if p.kind == Plant(local.NoFault.String()) {
		switch {
		case err != nil:
			return false, "nothing was wrong"
		case !slices.Equal(got.Digests, clean.Digests) || !slices.Equal(got.Losses, clean.Losses) || !slices.Equal(got.Norms, clean.Norms):
			return false, "other bits than without delays"
		}
		return true, ""
	}
	if err == nil && p.nan != nil && slices.Equal(got.Digests, clean.Digests) && slices.Equal(got.Losses, clean.Losses) {
		return false, "" // nobody has used what was NaN: rows of tokens that the batch does not have
	}
	if err == nil {
		return false, "no error"
	}
	switch p.kind {
	case NaNOnce:
		if _, ok := errors.AsType[*train.Passing](err); !ok {
			return false, "not reported as passing"
		}
		return true, ""
	case NaN, Guarded:
		return p.says(err, fmt.Sprintf("rank %d: ", p.rank), p.call.Site, "would send NaN", " in "+p.call.Kind.String()+" over ")
	case Plant(local.Panic.String()):
		return p.says(err, fmt.Sprintf("rank %d: panic: %v", p.rank, local.Planted{Call: p.call.Signature}))
	case Plant(local.Stall.String()):
		if h, ok := errors.AsType[*local.Hang](err); !ok || h.Rank != p.rank {
			return false, "the stalled rank is not named"
		}
		return p.says(err, p.call.Signature.String(), fmt.Sprintf("rank %d", p.rank))
	}
	return p.calls(err)
}

// calls judges the report of calls that differ.
func (p *planted) calls(err error) (named bool, wrong string) {
	at, sides := -1, []local.Side(nil)
	if m, ok := errors.AsType[*local.Mismatch](err); ok {
		at, sides = m.Odd, m.Sides
	} else if h, ok := errors.AsType[*local.Hang](err); ok {
		at, sides = h.Rank, h.Sides
	}
	if named = at >= 0; !named { // of two ranks none can be told to be right: both must be shown
		if len(sides) != 2 || len(sides[0].Ranks) != 1 || len(sides[1].Ranks) != 1 || sides[0].Ranks[0] != p.rank && sides[1].Ranks[0] != p.rank {
			return false, "the rank is on no side"
		}
		at = p.rank
	}
	if at != p.rank {
		return false, fmt.Sprintf("rank %d is blamed", at)
	}
	_, wrong = p.says(err, p.sent().String())
	return named, wrong
}

// sent is the call whose signature the report must show: what the rank made or left out.
func (p *planted) sent() comm.Signature {
	s := p.call.Signature
	switch p.fault.Kind {
	case local.Reorder:
		return p.fault.Next
	case local.OtherSize:
		s.Elems++
	case local.OtherType:
		s.Type = tensor.I32
	case local.OtherOp:
		if s.Kind != comm.AllReduceMax {
			s.Kind = comm.AllReduceMax
		} else {
			s.Kind = comm.AllReduceSum
		}
	}
	return s
}

// says looks for words in an error.
func (p *planted) says(err error, words ...string) (named bool, wrong string) {
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			return false, fmt.Sprintf("the report does not say %q", w)
		}
	}
	return true, ""
}
