package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"heddle/internal/cli"
)

func TestCompareGivesTheSchemesInJSON(t *testing.T) {
	code, out, errs := command("compare", "--schemes", "single,fsdp2-megatron2,ulysses2", "--json")
	var v struct {
		Schemes []struct {
			Scheme        string
			GradErr       float64          `json:"max_rel_grad_err"`
			NormRatio     float64          `json:"grad_norm_ratio"`
			Loss          float64          `json:"loss"`
			Bytes         map[string]int64 `json:"bytes"`
			Expected      map[string]int64 `json:"bytes_expected"`
			Saved         int64            `json:"saved_bytes"`
			SavedExpected int64            `json:"saved_bytes_expected"`
			Peak          int64            `json:"peak_bytes"`
			StepMS        float64          `json:"step_ms"`
		}
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != cli.OK || len(v.Schemes) != 3 {
		t.Fatalf("code %d, %v, stderr %q, stdout %.300s", code, err, errs, out)
	}
	m := v.Schemes[1]
	// Megatron's gathers of 6L+2 streams [B/2, S, H] of float64, half of each received, L 2, B 4, S 32, H 64.
	if m.Scheme != "fsdp2-megatron2" || m.Bytes["tp/all-gather"] != 14*2*32*64*8/2 || m.Bytes["tp/all-gather"] != m.Expected["tp/all-gather"] {
		t.Errorf("got %+v", m)
	}
	if m.Saved != m.SavedExpected || m.Saved == 0 || m.Peak <= m.Saved || m.StepMS <= 0 || m.Loss < 4 || m.NormRatio == 0 || v.Schemes[0].GradErr != 0 || m.GradErr == 0 {
		t.Errorf("got %+v", m)
	}
}

func TestCompareTellsNoiseAndCrossingsWithin80Columns(t *testing.T) {
	code, out, errs := command("compare", "--schemes", "single,megatron2,ulysses2", "--dtype", "f32")
	if code != cli.OK || !strings.Contains(out, "float32 noise: one rank") || !strings.Contains(out, "They cross at") {
		t.Errorf("code %d, stderr %q, stdout %s", code, errs, out)
	}
	for line := range strings.SplitSeq(out, "\n") {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestCompareDryNeedsNoMemory(t *testing.T) {
	code, out, errs := command("compare", "--dry", "--model", bigModel(t), "--seq", "4096", "--batch", "1", "--schemes", "megatron8,ulysses8", "--dtype", "f32", "--json")
	var v struct {
		Schemes   []map[string]any
		Crossings []struct {
			Tokens float64 `json:"tokens_per_rank"`
		}
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != cli.OK || len(v.Schemes) != 2 || len(v.Crossings) != 1 {
		t.Fatalf("code %d, %v, stderr %q, stdout %.300s", code, err, errs, out)
	}
	if _, ok := v.Schemes[0]["loss"]; ok || v.Crossings[0].Tokens < 1000 {
		t.Errorf("got %+v", v)
	}
}

func TestCompareRefusesWhatDoesNotFitThisMachine(t *testing.T) {
	if memory() == 0 {
		t.Skip("this system does not say how much memory is available")
	}
	code, out, errs := command("compare", "--model", bigModel(t), "--schemes", "single")
	if code != cli.Invalid || out != "" || !strings.Contains(errs, "need about") || !strings.Contains(errs, "--dry") {
		t.Errorf("code %d, stdout %q, stderr %q", code, out, errs)
	}
}

// bigModel is a folder with the config.json of a model of 400 billion parameters.
func bigModel(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	text := `{"architectures":["Qwen3ForCausalLM"],"model_type":"qwen3","num_hidden_layers":128,"hidden_size":16384,"num_attention_heads":128,
		"num_key_value_heads":8,"head_dim":128,"intermediate_size":53248,"vocab_size":151936,"max_position_embeddings":40960,"rms_norm_eps":1e-6,
		"rope_theta":1000000,"tie_word_embeddings":false,"hidden_act":"silu","initializer_range":0.02,"attention_bias":false,"torch_dtype":"bfloat16"}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCompareRefusesWithTheNearestLegalValue(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--schemes", "megatorn4"}, cli.Invalid, "megatron4"},
		{[]string{"--schemes", "tp3"}, cli.Invalid, "tp may be 2 or 4"},
		{[]string{"--schemes", "dp3"}, cli.Invalid, "use 3 or 6"},
		{[]string{"--schemes", "dp1"}, cli.Invalid, "dp2"},
		{[]string{"--schemes", "ulysses4", "--seq", "30"}, cli.Invalid, "use 28 or 32"},
		{[]string{"--schemes", "megatron4", "--seq", "30"}, cli.Invalid, "use 28 or 32"},
		{[]string{"--schemes", "single", "--batch", "0"}, cli.Invalid, "1 or more"},
		{[]string{"--model", "nowhere"}, cli.Invalid, "nowhere"},
		{[]string{"--dtype", "f16"}, cli.Usage, "f32"},
	} {
		code, out, errs := command(append([]string{"compare"}, c.args...)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%v: code %d, stdout %q, stderr %q, want %q", c.args, code, out, errs, c.want)
		}
	}
}

func TestWalkLaysSchemesSideBySide(t *testing.T) {
	code, out, errs := command("walk", "--schemes", "megatron4,ulysses4")
	if code != cli.OK {
		t.Fatalf("code %d, stderr %q", code, errs)
	}
	for _, want := range []string{"all-gather S(s) → R ", "reduce-scatter P → S(s) ", "all-to-all S(s)·S(s) → S(gr) ", "R·S(gr) → S(gr) ", "10 collectives", " 4 collectives"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	code, out, errs = command("walk", "--schemes", "tp2", "--json")
	var v struct {
		Lines []struct {
			Name  string
			Cells []struct{ Op, After string }
		}
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != cli.OK || len(v.Lines) < 40 || v.Lines[0].Name != "norm" || v.Lines[0].Cells[0].After != "R" && v.Lines[0].Cells[0].After != "I" {
		t.Errorf("code %d, %v, stderr %q, stdout %.300s", code, err, errs, out)
	}
	if code, _, errs := command("walk", "--schemes", "ulysses3"); code != cli.Invalid || !strings.Contains(errs, "cp may be 2 or 4") {
		t.Errorf("code %d, stderr %q", code, errs)
	}
}

func TestMemoryGivesNumbersAndAPicture(t *testing.T) {
	file := filepath.Join(t.TempDir(), "held.svg")
	code, out, errs := command("memory", "--scheme", "fsdp4", "--layers", "12", "--seq", "64", "--svg", file, "--json")
	var v struct {
		Peak   int `json:"peak_bytes"`
		Stages []struct {
			Phase string
			Layer int
			Peak  int   `json:"peak_bytes"`
			End   []int `json:"end_bytes"`
		}
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != cli.OK || len(v.Stages) != 1+12+2+12+2 {
		t.Fatalf("code %d, %v, stderr %q, %d stages", code, err, errs, len(v.Stages))
	}
	most := 0
	for _, s := range v.Stages {
		most = max(most, s.Peak)
	}
	picture, err := os.ReadFile(file)
	if most != v.Peak || err != nil || !strings.Contains(string(picture), "fsdp4 over one training step") {
		t.Errorf("peak %d, of stages %d; %v", v.Peak, most, err)
	}
	if code, out, errs := command("memory", "--scheme", "single", "--svg", "-"); code != cli.OK || !strings.HasPrefix(out, "<svg") || !strings.HasSuffix(strings.TrimSpace(out), "</svg>") {
		t.Errorf("the picture alone: code %d, %.80q, %q", code, out, errs)
	}
	code, out, errs = command("memory", "--scheme", "megatron2", "--recompute", "every2", "--accumulate", "2")
	if code != cli.OK || !strings.Contains(out, "optimizer") || !strings.Contains(out, "Peak ") {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
	for line := range strings.SplitSeq(out, "\n") {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, c := range [][]string{{"--scheme", "fsdp3"}, {"--recompute", "al"}, {"--accumulate", "3"}, {"--scheme", "tp3"}, {"--layers=-1"}} {
		if code, _, errs := command(append([]string{"memory"}, c...)...); code != cli.Invalid || !strings.Contains(errs, "heddle:") {
			t.Errorf("%v: code %d, %q", c, code, errs)
		}
	}
}

// Recomputation and micro-batches are columns of the same table; a combination that does not fit is refused by name.
func TestCompareUnderSchedules(t *testing.T) {
	code, out, errs := command("compare", "--schemes", "single,tp2", "--recompute", "none,full", "--accumulate", "1,2", "--seq", "16", "--json")
	var v struct {
		Schemes []struct {
			Scheme, Recompute string
			Accumulate        int
			DrySame           bool  `json:"dry_same"`
			Peak              int64 `json:"peak_bytes"`
		}
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != cli.OK || len(v.Schemes) != 8 {
		t.Fatalf("code %d, %v, stderr %q, stdout %.300s", code, err, errs, out)
	}
	if a, b := v.Schemes[1], v.Schemes[7]; a.Recompute != "none" || a.Accumulate != 1 || b.Recompute != "full" || b.Accumulate != 2 || b.Scheme != "tp2" || !b.DrySame || a.Peak <= b.Peak {
		t.Errorf("%+v, %+v", a, b)
	}
	code, out, _ = command("compare", "--schemes", "single", "--recompute", "none,selective", "--seq", "16")
	if code != cli.OK || !strings.Contains(out, "recomputation none, micro-batches 1") || !strings.Contains(out, "recomputation selective, micro-batches 1") {
		t.Errorf("code %d, %s", code, out)
	}
	for want, args := range map[string][]string{"want none, selective, full, or everyN": {"--recompute", "most"}, "hint: --batch 6": {"--accumulate", "3"}, "in 2 micro-batches: scheme dp4": {"--schemes", "dp4", "--accumulate", "2"}} {
		if code, _, errs := command(append([]string{"compare"}, args...)...); code != cli.Invalid || !strings.Contains(errs, want) {
			t.Errorf("%v: code %d, %q, want %q", args, code, errs, want)
		}
	}
}
