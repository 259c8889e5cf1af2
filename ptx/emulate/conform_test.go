package emulate_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"heddle/ptx"
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

// failing is a Runner that breaks down in its nth run and answers nothing after that, as a device does that has faulted; again repairs it.
type failing struct {
	runs, at int
}

func (f *failing) Run(m *ptx.Module, l ptx.Launch, a *ptx.Args) error {
	if f.runs++; f.runs >= f.at {
		return errors.New("context lost")
	}
	return emulate.Emulator{}.Run(m, l, a)
}

// A program that breaks the runner ends the run behind it, and the rest is compared when it goes on from there.
func TestASuiteGoesOnBehindALostRunner(t *testing.T) {
	s := conform.Suite{Random: 9, First: 3}
	part := conform.Part{Name: "integer", Count: 9}
	lost, seen := 0, 0
	for from := 0; from < part.Count; {
		err := s.Run(part.Name, from, part.Count, &failing{at: 4}, emulate.Emulator{}, func(o conform.Outcome) {
			if o.Index != seen {
				t.Errorf("program %d comes after %d", o.Index, seen-1)
			}
			seen++
			from = o.Index + 1
			if o.Lost {
				lost++
			}
			if o.Lost == (o.Error == "") || o.Lost == (o.Sum != "") {
				t.Errorf("%+v", o)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen != 9 || lost != 2 { // the fourth of each run
		t.Errorf("%d programs, %d lost, want 9 and 2", seen, lost)
	}
}

// The emulator gives what a card gave: the digests were written by heddle kernels conform --record on an H200.
func TestAgreesWithTheCard(t *testing.T) {
	f, err := os.Open("../conform/testdata/h200.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		var r conform.Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		p, err := conform.Random(r.Family, r.Seed)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Run(emulate.Emulator{Seed: r.Seed})
		if err != nil {
			t.Fatal(err)
		}
		if sum := p.Sum(got); sum != r.Sum {
			t.Errorf("%s: the emulator's result is %s, the card's %s", p.Name, sum, r.Sum)
		}
	}
	if n < 200 {
		t.Errorf("the record has %d programs, want at least 200", n)
	}
}

// Words in which an H200 once differed from the emulator (2026-12-01, driver 580.159.04): a packed multiply-add that underflowed to zero, and the bits of
// the NaN that neg gives.
func TestWordsOfTheCard(t *testing.T) {
	for _, c := range []struct {
		family string
		seed   int64
		word   int
		card   uint32
	}{
		{"narrow", 3, 200, 0x00000081}, {"narrow", 6, 91, 0x47073800}, {"narrow", 11, 508, 0x000000b9}, {"narrow", 13, 163, 0x00002cc5}, {"narrow", 15, 189, 0},
		{"float", 25, 513, 0xba234862},
	} {
		p, err := conform.Random(c.family, c.seed)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Run(emulate.Emulator{})
		if err != nil {
			t.Fatal(err)
		}
		if w := binary.LittleEndian.Uint32(got[4*c.word:]); w != c.card {
			t.Errorf("%s: word %d is %#08x, the card's %#08x", p.Name, c.word, w, c.card)
		}
	}
}
