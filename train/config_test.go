package train

import (
	"math"
	"strings"
	"testing"

	"heddle/parallel"
)

// Every number of a configuration is refused where it is out of range, with the range, before anything is read or allocated.
func TestNumbersOutOfRangeAreRefused(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for name, c := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"steps 0":                {func(c *Config) { c.Steps = 0 }, "steps is 0, want 1 to"},
		"steps 2^31":             {func(c *Config) { c.Steps = 1 << 31 }, "steps is 2147483648, want 1 to 1073741824"},
		"batch and seq":          {func(c *Config) { c.Batch, c.Seq = 1<<20, 1<<20 }, "67108864 tokens in all"},
		"accumulate 0":           {func(c *Config) { c.Accumulate = 0 }, "accumulate is 0"},
		"batch by accumulate":    {func(c *Config) { c.Accumulate = 3 }, "not divisible by accumulate 3"},
		"warmup -1":              {func(c *Config) { c.Schedule.Warmup = -1 }, "schedule.warmup is -1, want 0 to"},
		"tokenizer bytes -1":     {func(c *Config) { c.Data.TokenizerBytes = -1 }, "tokenizer_bytes is -1"},
		"hold out none":          {func(c *Config) { c.Data.HoldOutEvery = -1 }, "hold_out_every is -1"},
		"hold out all":           {func(c *Config) { c.Data.HoldOutEvery = 1 }, "hold_out_every is 1"},
		"keep -1":                {func(c *Config) { c.Keep = -1 }, "keep is -1"},
		"vocab below bytes":      {func(c *Config) { c.Model.Vocab = 256 }, "model.vocab=257"},
		"layers 2^24":            {func(c *Config) { c.Model.Layers = 1 << 24 }, "layers is 16777216, want 1 to 4096"},
		"heads beyond a product": {func(c *Config) { c.Model.Heads, c.Model.Head = 1<<24, 1<<24 }, "wide, want at most"},
		"norm_eps 0":             {func(c *Config) { c.Model.Eps = 0 }, "norm_eps is 0"},
		"norm_eps below float32": {func(c *Config) { c.Model.Eps = 1e-50 }, "norm_eps is 1e-50"},
		"rope_theta":             {func(c *Config) { c.Model.Theta = inf }, "rope_theta is +Inf"},
		"init_std -1":            {func(c *Config) { c.Model.Std = -1 }, "init_std is -1"},
		"init_std nan":           {func(c *Config) { c.Model.Std = nan }, "init_std is NaN"},
		"beta1 1":                {func(c *Config) { c.Optim.Beta1 = 1 }, "beta1 1"},
		"beta1 -1":               {func(c *Config) { c.Optim.Beta1 = -1 }, "beta1 -1"},
		"beta2 1.5":              {func(c *Config) { c.Optim.Beta2 = 1.5 }, "beta2 1.5"},
		"eps 0":                  {func(c *Config) { c.Optim.Eps = 0 }, "eps is 0"},
		"eps nan":                {func(c *Config) { c.Optim.Eps = nan }, "eps is NaN"},
		"eps below float32":      {func(c *Config) { c.Optim.Eps = 1e-50 }, "eps is 1e-50"},
		"decay -1":               {func(c *Config) { c.Optim.Decay = -1 }, "weight_decay is -1"},
		"clip -1":                {func(c *Config) { c.Optim.Clip = -1 }, "clip is -1"},
		"clip inf":               {func(c *Config) { c.Optim.Clip = inf }, "clip is +Inf"},
		"lr 0":                   {func(c *Config) { c.Schedule.Peak = 0 }, "lr 0"},
		"fsdp -1":                {func(c *Config) { c.Parallel.FSDP = -1 }, "fsdp is -1"},
		"65536 ranks":            {func(c *Config) { c.Parallel.FSDP, c.Batch = 1<<15, 1<<15 }, "65536 ranks in one process"},
		"fsdp 2^31":              {func(c *Config) { c.Parallel.FSDP = 1 << 31 }, "fsdp"},
	} {
		cfg := Default()
		if _, err := cfg.Check(); err != nil {
			t.Fatal(err)
		}
		c.change(&cfg)
		if _, err := cfg.Check(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want it to say %q", name, err, c.says)
		}
	}
}

// An axis of 0 ranks has one, in everything that reads the configuration after Check.
func TestAnAxisLeftAtZeroHasOneRank(t *testing.T) {
	c := Default()
	c.Parallel = parallel.Layout{TP: 2}
	s, err := c.Check()
	if want := (parallel.Layout{DP: 1, FSDP: 1, PP: 1, CP: 1, TP: 2, SP: "none"}); err != nil || c.Parallel != want || s.Layout != want {
		t.Errorf("%v: %+v and %+v, want %+v", err, c.Parallel, s.Layout, want)
	}
}
