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
	all := []Part{{"copies", len(Copies()) + 1}, {"products", len(Products()) + 1}}
	for _, f := range Families() {
		all = append(all, Part{f, s.Random})
	}
	return all
}

// Program is program i of a part.
func (s Suite) Program(part string, i int) (Program, error) {
	switch all, products := Copies(), Products(); {
	case part == "copies" && i < len(all):
		return all[i].Program()
	case part == "copies":
		return Exchange()
	case part == "products" && i < len(products):
		return products[i].Program()
	case part == "products":
		return WarpProduct(s.First)
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

// together is how many random programs make up a module: a device compiles them in one go.
const together = 40

// Run compares programs from, from+1 … of a part on a runner with the reference, or with their definitions where they have one. It stops behind a program that
// the runner fails on.
func (s Suite) Run(part Part, from int, runner, reference ptx.Runner, each func(Outcome)) error {
	for i := from; i < part.Count; {
		to := i + 1
		if part.Name != "copies" && part.Name != "products" { // those all have the same entry name
			to = min(i+together, part.Count)
		}
		m, batch := &ptx.Module{}, []Program{}
		for j := i; j < to; j++ {
			p, err := s.Program(part.Name, j)
			if err != nil {
				return fmt.Errorf("conform: %s %d: %w", part.Name, j, err)
			}
			m.Entries, batch = append(m.Entries, p.Entry), append(batch, p)
		}
		for j, p := range batch {
			o := p.outcome(m, runner, reference)
			o.Index = i + j
			each(o)
			if o.Lost {
				return nil
			}
		}
		i = to
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
