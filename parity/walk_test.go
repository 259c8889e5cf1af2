package parity

import (
	"testing"

	"heddle/tensor"
)

func TestWalkAlignsEverySchemesOwnOrder(t *testing.T) {
	in := NewInput(Tiny(), 4, 32, 1, 1)
	names := []string{"single", "megatron4", "ulysses4", "fsdp2-tp2"}
	schemes, err := Schemes(names, in.Config, in.B, in.S)
	if err != nil {
		t.Fatal(err)
	}
	w, err := Walk(in, schemes, tensor.F32)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range schemes {
		alone, err := Walk(in, []Scheme{s}, tensor.F32)
		if err != nil {
			t.Fatal(err)
		}
		k := 0
		for _, l := range w.Lines {
			c := l.Cells[i]
			if c == nil {
				continue
			}
			own := alone.Lines[k]
			if k++; !same(l, own) || c.After != own.Cells[0].After || c.Held != own.Cells[0].Held || c.Bytes != own.Cells[0].Bytes {
				t.Fatalf("%s: cell %d is %+v in line %s %s, alone %+v in %s %s", s.Name, k, c, l.Name, l.Letters, own.Cells[0], own.Name, own.Letters)
			}
		}
		if k != len(alone.Lines) {
			t.Errorf("%s: %d cells of %d", s.Name, k, len(alone.Lines))
		}
	}
	// Aligned: the mathematics stands in one line for all; only collectives have lines of their own.
	for _, l := range w.Lines {
		for i, c := range l.Cells {
			if c == nil && l.Cells[0] != nil {
				t.Errorf("%s %s: %s has no cell", l.Name, l.Letters, names[i])
			}
		}
	}
	// Ten streams [B, S, H] of float32, three quarters of each received; Ulysses' block of q, k, v twice, of o twice, delta.
	const stream, heads, tokens = 4 * 32 * 64 * 4, 2, 4 * 8
	block := (4*16*heads + heads + 4*16) * tokens * 4 * 3
	for i, want := range map[int]int64{0: 0, 1: 10 * stream * 3 / 4, 2: int64(block)} {
		if w.Totals[i].Bytes != want {
			t.Errorf("%s receives %d bytes in a layer, want %d", names[i], w.Totals[i].Bytes, want)
		}
	}
}
