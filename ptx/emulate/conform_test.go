package emulate_test

import (
	"testing"

	"heddle/ptx/conform"
	"heddle/ptx/emulate"
)

// Copies and products give what their definitions say.
func TestCopiesAndProductsAreAsDefined(t *testing.T) {
	check := func(p conform.Program, err error) {
		t.Helper()
		if err == nil {
			err = p.Check(emulate.Emulator{})
		}
		if err != nil {
			t.Error(err)
		}
	}
	for _, c := range conform.Copies() {
		check(c.Program())
	}
	for _, p := range conform.Products() {
		check(p.Program())
	}
	for seed := range int64(5) {
		check(conform.WarpProduct(seed))
	}
	check(conform.Exchange())
}

// Random programs build, are clean, and give the same under every schedule; each family has many, and no two the same result.
func TestRandomProgramsDoNotDependOnTheSchedule(t *testing.T) {
	for _, family := range conform.Families() {
		seen := map[string]bool{}
		for seed := range int64(40) {
			p, err := conform.Random(family, seed)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Differ(emulate.Emulator{Seed: 1}, emulate.Emulator{Seed: 2, Async: emulate.Late, SMs: 1}); err != nil {
				t.Error(err)
			}
			got, err := p.Run(emulate.Emulator{})
			if err != nil {
				t.Fatal(err)
			}
			seen[string(got)] = true
		}
		if len(seen) < 40 {
			t.Errorf("%s: only %d different results of 40", family, len(seen))
		}
	}
	if _, err := conform.Random("no such family", 1); err == nil {
		t.Error("an unknown family passes")
	}
}
