package parallel

import (
	"strings"
	"testing"
)

func TestParseLayoutReadsSchemeNames(t *testing.T) {
	for name, want := range map[string]Layout{
		"single":                  {},
		"dp2":                     {DP: 2},
		"fsdp3":                   {FSDP: 3},
		"tp4":                     {TP: 4},
		"megatron4":               {TP: 4, SP: "megatron"},
		"ulysses2":                {CP: 2, SP: "ulysses"},
		"fsdp2-megatron2":         {FSDP: 2, TP: 2, SP: "megatron"},
		"megatron2-fsdp2":         {FSDP: 2, TP: 2, SP: "megatron"},
		"dp2-fsdp2-megatron2":     {DP: 2, FSDP: 2, TP: 2, SP: "megatron"},
		"ulysses2-tp2":            {CP: 2, TP: 2, SP: "ulysses"},
		"dp2-ulysses2-megatron16": {DP: 2, CP: 2, TP: 16, SP: "megatron"},
	} {
		got, err := ParseLayout(name)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
	}
}

func TestParseLayoutRefusesAndNamesTheNearest(t *testing.T) {
	for name, want := range map[string]string{
		"":                       `hint: single`,
		"megatorn4":              `hint: megatron4`,
		"ulises2":                `hint: ulysses2`,
		"pp2":                    `want single, or dpN`,
		"dp":                     `hint: dp2`,
		"dp1":                    `dp needs 2 ranks or more, got "1"; hint: dp2`,
		"tp0":                    `hint: tp2`,
		"tp02":                   `hint: tp2`,
		"tp-2":                   `hint: tp2`,
		"dp99999999999999999999": `hint: dp2`,
		"dp2-dp2":                `dp stands twice`,
		"tp2-megatron2":          `megatron stands twice`,
		"single-dp2":             `single stands alone`,
		"dp2-":                   `hint: single`,
		"DP2":                    `want single`,
	} {
		if _, err := ParseLayout(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want one with %q", name, err, want)
		}
	}
}

// A name that is read is written so that it is read alike again.
func FuzzParseLayout(f *testing.F) {
	for _, s := range []string{"single", "dp2-fsdp2-megatron2", "ulysses4-tp2", "megatron2-ulysses2", "tp-", "dp1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		l, err := ParseLayout(name)
		if err != nil {
			return
		}
		again, err := ParseLayout(l.Name())
		if err != nil || again != l && again.Name() != l.Name() {
			t.Errorf("%q → %+v → %q → %+v, %v", name, l, l.Name(), again, err)
		}
	})
}
