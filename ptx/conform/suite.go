package conform

import (
	"fmt"

	"heddle/ptx"
)

// Suite is every program, in parts: the copies, the products, and so many random programs of each family.
type Suite struct {
	Random int   // programs of each family
	First  int64 // seed of the first
}

// Part is one part of a suite.
type Part struct {
	Name  string
	Count int
}

// Parts lists the parts in order.
func (s Suite) Parts() []Part {
	all := []Part{{"copies", len(Copies()) + 1}, {"products", len(Products())}, {"mma", s.Random}}
	for _, f := range Families() {
		all = append(all, Part{f, s.Random})
	}
	return all
}

// Program is program i of a part, its entry named after both, so that several fit in one module.
func (s Suite) Program(part string, i int) (Program, error) {
	p, err := s.program(part, i)
	if err == nil {
		p.Entry.Name = fmt.Sprintf("%s_%d", part, s.First+int64(i))
		p.Launch.Entry = p.Entry.Name
	}
	return p, err
}

func (s Suite) program(part string, i int) (Program, error) {
	switch all := Copies(); {
	case part == "copies" && i < len(all):
		return all[i].Program()
	case part == "copies":
		return Exchange()
	case part == "products":
		return Products()[i].Program()
	case part == "mma":
		return WarpProduct(s.First + int64(i))
	}
	return Random(part, s.First+int64(i))
}

// Outcome is what became of one program.
type Outcome struct {
	Index   int    `json:"index"`
	Program string `json:"program"`
	Error   string `json:"error,omitempty"` // where the results differ, or the runner's error
	Lost    bool   `json:"lost,omitempty"`  // the runner under test failed: a device that has faulted answers nothing more
	Sum     string `json:"sum,omitempty"`   // of what it answered
}

// Together is how many programs make up a module: a device compiles them in one go.
const Together = 40

// Run compares programs from … to−1 of a part on a runner with the reference, or with their definitions where they have one. It stops behind a program that the
// runner fails on.
func (s Suite) Run(part string, from, to int, runner, reference ptx.Runner, each func(Outcome)) error {
	for ; from < to; from += Together {
		m, batch := &ptx.Module{}, []Program{}
		for i := from; i < min(from+Together, to); i++ {
			p, err := s.Program(part, i)
			if err != nil {
				return fmt.Errorf("conform: %s %d: %w", part, i, err)
			}
			m.Entries, batch = append(m.Entries, p.Entry), append(batch, p)
		}
		for i, p := range batch {
			o := p.outcome(m, runner, reference)
			o.Index = from + i
			each(o)
			if o.Lost {
				return nil
			}
		}
	}
	return nil
}

func (p Program) outcome(m *ptx.Module, runner, reference ptx.Runner) Outcome {
	o := Outcome{Program: p.Name}
	got, err := p.RunIn(m, runner)
	if err != nil {
		o.Error, o.Lost = err.Error(), true
		return o
	}
	o.Sum = p.Sum(got)
	want, err := p.RunIn(m, reference)
	if err == nil && p.Want != nil {
		if err = p.Same(want, p.Want()); err != nil {
			err = fmt.Errorf("the reference differs from the definition: %w", err)
		}
	}
	if err == nil {
		err = p.Same(got, want)
	}
	if err != nil {
		o.Error = err.Error()
	}
	return o
}
