package bench

import (
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestQuantilesOfKnownSets(t *testing.T) {
	x := []float64{4, 1, 3, 2}
	for q, want := range map[float64]float64{0: 1, 0.5: 2.5, 1: 4, 0.25: 1.75} {
		if got := Quantile(x, q); math.Abs(got-want) > 1e-12 {
			t.Errorf("quantile %v = %v, want %v", q, got, want)
		}
	}
	if !math.IsNaN(Median(nil)) {
		t.Error("the median of nothing is a number")
	}
}

// Two sides that share drift of ±20 % and differ by 5 % with 1 % noise: the paired interval must hold 1.05 and be far narrower than the drift. Of 200 such experiments a 95 % interval misses about
// 10; more than 24 misses has probability under 1e-4 (binomial).
func TestPairedIntervalSeesThroughDrift(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	missed, width := 0, 0.0
	for range 200 {
		num, den := make([]float64, 50), make([]float64, 50)
		for i := range num {
			drift := 1 + 0.2*math.Sin(float64(i)/5)
			num[i], den[i] = 1.05*drift*(1+0.01*rng.NormFloat64()), drift*(1+0.01*rng.NormFloat64())
		}
		r := MeanRatio(num, den)
		if r.Low > 1.05 || r.High < 1.05 {
			missed++
		}
		width += (r.High - r.Low) / 200
	}
	if missed > 24 || width > 0.02 {
		t.Errorf("missed %d of 200, mean width %.4f", missed, width)
	}
	same := []float64{1, 2, 3}
	if r := MedianRatio(same, same); r != (Interval{1, 1, 1}) {
		t.Errorf("a side against itself: %+v", r)
	}
	if r := MeanRatio([]float64{2}, []float64{1}); r.Value != 2 || r.Low != 0 || !math.IsInf(r.High, 1) {
		t.Errorf("one round: %+v", r)
	}
}

func TestSummaryJudgesTheFasterPeer(t *testing.T) {
	r := Result{Rows: []Row{{M: 1000, N: 1000, K: 1000, Mode: "sustained", Samples: []Samples{
		{Side: "heddle", Micros: []float64{10, 10}, Joules: []float64{0.9, 0.9}, Watts: []float64{600, 600}, SMClocks: []uint32{1500, 1500}},
		{Side: "slow", Micros: []float64{20, 20}, Joules: []float64{1, 1}, Watts: []float64{650, 650}},
		{Side: "fast", Micros: []float64{11, 11}}}}}}
	s := r.Summary()
	if len(s) != 2 || s[0].Best || !s[1].Best || s[1].Joules != nil {
		t.Fatalf("got %+v", s)
	}
	if s[0].Ours != 200 || s[0].Theirs != 100 || math.Abs(s[0].Speed.Value-2) > 1e-12 || math.Abs(s[0].Joules.Value-0.9) > 1e-12 || math.Abs(s[1].Speed.Value-1.1) > 1e-12 {
		t.Errorf("got %+v", s)
	}
	var out strings.Builder
	Print(&out, s)
	if !strings.Contains(out.String(), "*1.100 (1.100..1.100)") || !strings.Contains(out.String(), "600/650") {
		t.Errorf("printed %s", out.String())
	}
}

func TestKernelFilesAreReadOrRefused(t *testing.T) {
	text := `.visible .entry gemm(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128], .param .align 64 .b8 c[128], .param .u32 m, .param .u32 n, .param .u32 k)
.maxntid 384,1,1
.reqnctapercluster 2,1,1`
	k, err := parseTilePTX(text, "gemm_bf16_128x256x64_c2_s4.ptx")
	if err != nil {
		t.Fatal(err)
	}
	// ring 4·(128+256)·64·2 = 196608; store buffers 2 groups · 2 · 8192 = 32768; barriers 4·2·8 = 64
	if k.Entry != "gemm" || k.Threads != 384 || k.Cluster != 2 || k.TileM != 128 || k.TileN != 256 || k.Stages != 4 || k.Shared != 229440 {
		t.Errorf("got %+v", k)
	}
	for want, c := range map[string][2]string{
		"no .visible .entry":  {"nothing", "128x256x64_s4"},
		"has parameters":      {strings.Replace(text, ".param .u32 k", ".param .u64 k", 1), "128x256x64_s4"},
		"names no tile":       {text, "gemm.ptx"},
		"a thread count":      {strings.Replace(text, ".maxntid", ".none", 1), "128x256x64_s4"},
		"tile 128x256x32, 4 ": {text, "128x256x32_s4"},
	} {
		if _, err := parseTilePTX(c[0], c[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if k.Legal(512, 256, 64) != nil || k.Legal(128, 256, 64) == nil || k.Legal(256, 128, 64) == nil || k.Legal(256, 256, 32) == nil || k.Legal(0, 256, 64) == nil {
		t.Error("legal shapes")
	}
}

func FuzzKernelFile(f *testing.F) {
	f.Add(".visible .entry g(.param .b8 a[128],.param .b8 b[128],.param .b8 c[128],.param .u32 m,.param .u32 n,.param .u32 k)\n.maxntid 128", "64x64x64_s2")
	f.Fuzz(func(t *testing.T, text, tile string) {
		k, err := parseTilePTX(text, tile)
		if err == nil && (k.Shared <= 0 || k.Shared > 1<<22 || k.Threads > 1024) {
			t.Errorf("accepted %+v", k)
		}
	})
}

func TestHelperKernelsAssemble(t *testing.T) {
	ptxas, err := exec.LookPath("ptxas")
	if err != nil {
		t.Skip("no ptxas here")
	}
	file := filepath.Join(t.TempDir(), "h.ptx")
	if err := os.WriteFile(file, []byte(helpersPTX), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(ptxas, "-arch=sm_90a", "-o", os.DevNull, file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestDamagedResultsAreErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	if err := os.WriteFile(file, []byte(`{"rows": 7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v", err)
	}
}
