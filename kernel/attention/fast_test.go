package attention

import (
	"testing"

	"heddle/ptx/emulate"
)

// Every pass gives what float64 gives, on broken blocks and shared keys, under several schedules.
func TestFastAttentionIsRight(t *testing.T) {
	for _, d := range []int{64, 128} {
		for pass := Forward; pass <= KeyGrad; pass++ {
			f, err := NewFast(FastConfig{Pass: pass, D: d})
			if err != nil {
				t.Fatal(err)
			}
			cases, err := f.Cases(4)
			if err != nil {
				t.Fatal(err)
			}
			for i, k := range cases {
				if err := (emulate.Emulator{Seed: int64(i), Async: emulate.When(i % 3)}).Run(f.Module(), k.Launch, k.Args); err != nil {
					t.Fatal(f.Entry.Name, k.Name, err)
				}
				if err := k.Check(); err != nil {
					t.Error(k.Name, err)
				}
			}
		}
	}
}
