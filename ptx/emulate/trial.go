package emulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"heddle/ptx"
)

// Verdict is what became of one mutant.
type Verdict struct {
	Mutant     string `json:"mutant"`
	Line       string `json:"line"`          // of the mutated instruction
	Kind       Kind   `json:"kind"`          // of the first report, of the first seed that was not caught, else of the first seed
	Reported   string `json:"reported_line"` // where it was reported
	Text       string `json:"text"`
	Caught     int    `json:"seeds_caught"` // seeds whose first report has the right kind and place
	Seeds      int    `json:"seeds"`
	Equivalent string `json:"equivalent,omitempty"` // proof that the mutant is no fault
}

// Passed tells whether every seed caught the mutant, or none needed to.
func (v Verdict) Passed() bool { return v.Caught == v.Seeds || v.Equivalent != "" }

// Trial runs every mutant of an entry under several seeds. fresh gives new arguments for each run; equivalent gives the proof that a mutant is no fault, or "".
// A mutant is caught where the first report of the run has a kind that the edit can cause and names the mutated line, a line of its block (what it orders),
// a line of a block that uses the same barrier, or a barrier or buffer that the instruction touches. The unmodified entry runs first and must be clean.
func Trial(e *ptx.Entry, opt Emulator, seeds int, fresh func() (ptx.Launch, *ptx.Args, error), equivalent func(ptx.Mutant) string) ([]Verdict, error) {
	opt.Trace = map[*ptx.Inst]map[string]bool{}
	for seed := range seeds {
		if r, err := trialRun(e, opt, seed, fresh); err != nil || r != nil {
			return nil, fmt.Errorf("emulate: the unmodified kernel is not clean: %w", errors.Join(err, asError(r)))
		}
	}
	touched := opt.Trace
	opt.Trace = nil
	opt.Stop = 1
	var all []Verdict
	for _, m := range e.Mutants() {
		v := Verdict{Mutant: fmt.Sprintf("%s #%d %s", m.Op.Mnemonic(), m.Nth, m.Edit), Line: m.Line, Seeds: seeds, Equivalent: equivalent(m)}
		mutated, near, objects := m.Entry(), m.Near(), touched[m.Inst()]
		if objects == nil { // a fence, a wait: what the instructions around it touch
			objects = m.Touched(touched)
		}
		for line := range barrierLines(e, objects, touched) {
			near[line] = true
		}
		for seed := range seeds {
			r, err := trialRun(mutated, opt, seed, fresh)
			if err != nil {
				return nil, err
			}
			caught := r != nil && right(m, r.Faults[0], near, objects)
			if caught {
				v.Caught++
			}
			if r != nil && (v.Text == "" || !caught) {
				v.Kind, v.Reported, v.Text = r.Faults[0].Kind, r.Faults[0].Line, r.Faults[0].String()
			}
		}
		all = append(all, v)
	}
	return all, nil
}

// barrierLines are the lines of the blocks in which a barrier among the objects is used: what it orders.
func barrierLines(e *ptx.Entry, objects map[string]bool, touched map[*ptx.Inst]map[string]bool) map[string]bool {
	lines := map[string]bool{}
	e.Body.WalkBlocks(func(in *ptx.Inst, b *ptx.Block) {
		for o := range touched[in] {
			if objects[o] && strings.Contains(o, "[") && in.Op != ptx.OpMbarInit {
				b.Walk(func(x *ptx.Inst) { lines[x.Line.String()] = true })
				return
			}
		}
	})
	return lines
}

func asError(r *Report) error {
	if r == nil {
		return nil
	}
	return r
}

// trialRun gives the report of one run, nil for a clean one.
func trialRun(e *ptx.Entry, opt Emulator, seed int, fresh func() (ptx.Launch, *ptx.Args, error)) (*Report, error) {
	l, args, err := fresh()
	if err != nil {
		return nil, err
	}
	opt.Seed = int64(seed)
	err = opt.Run(&ptx.Module{Entries: []*ptx.Entry{e}}, l, args)
	if r, ok := errors.AsType[*Report](err); ok {
		return r, nil
	}
	return nil, err
}

// right tells whether a fault is a report of the mutant.
func right(m ptx.Mutant, f Fault, near, objects map[string]bool) bool {
	if !slices.Contains(kinds(m), f.Kind) {
		return false
	}
	if f.Line == m.Line || f.Other == m.Line || near[f.Line] || near[f.Other] {
		return true
	}
	array := func(o string) string { name, _, _ := strings.Cut(o, "["); return name }
	for o := range objects {
		if f.Object != "" && array(o) == array(f.Object) {
			return true
		}
	}
	return false
}

// kinds are the faults that an edit of an instruction can cause.
func kinds(m ptx.Mutant) []Kind {
	switch m.Op {
	case ptx.OpFenceProxyAsync, ptx.OpFenceMbarInit:
		return []Kind{Proxy}
	case ptx.OpWgFence:
		return []Kind{Accumulator}
	case ptx.OpWarpSync:
		return []Kind{Diverged}
	case ptx.OpMbarInit:
		return []Kind{Barrier, Deadlock, Race, Phase, Proxy}
	case ptx.OpMbarWait, ptx.OpMbarTry:
		return []Kind{Race, Uninitialised, Barrier, Phase, Exit, Deadlock}
	case ptx.OpMbarArrive, ptx.OpMbarArriveRemote:
		return []Kind{Deadlock}
	case ptx.OpMbarExpect, ptx.OpMbarExpectTx, ptx.OpMbarExpectRemote:
		return []Kind{Deadlock, Phase}
	case ptx.OpClusterArrive, ptx.OpClusterWait:
		return []Kind{Barrier, Race, Exit}
	case ptx.OpBarSync, ptx.OpBarArrive:
		return []Kind{Race, Uninitialised, Proxy, Barrier, Phase, Deadlock}
	case ptx.OpGridWait:
		return []Kind{Race}
	case ptx.OpWgWait, ptx.OpWgCommit:
		return []Kind{Race, Accumulator}
	case ptx.OpBulkCommit, ptx.OpBulkWait, ptx.OpBulkWaitRead:
		return []Kind{Race, Exit}
	case ptx.OpSetMaxInc, ptx.OpSetMaxDec, ptx.OpTMALoad2Multi:
		return []Kind{Deadlock}
	case ptx.OpDescStep, ptx.OpDescOf:
		return []Kind{Operand, Bounds, Race, Uninitialised}
	}
	return nil
}
