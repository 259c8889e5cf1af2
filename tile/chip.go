package tile

// Chip holds what the calculators need to know of a GPU.
type Chip struct {
	Name           string  `json:"name"`
	SMs            int     `json:"sms"`
	SharedPerCTA   int     `json:"shared_per_cta"`   // bytes of dynamic shared memory a CTA may ask for
	Registers      int     `json:"registers"`        // 32-bit, of one SM
	RegsPerThread  int     `json:"regs_per_thread"`  // what an instruction can name
	L2Bytes        int     `json:"l2_bytes"`         // of the whole chip
	L2Halves       int     `json:"l2_halves"`        // partitions, each serving half of the SMs
	SharedPerClock int     `json:"shared_per_clock"` // bytes a clock and SM
	L2PerClock     float64 `json:"l2_per_clock"`     // bytes a clock and SM, measured
	FlopPerClock   int     `json:"flop_per_clock"`   // dense 16-bit tensor FLOP a clock and SM
}

// H100 is the SXM5 part; L2PerClock is a microbenchmark's 4.5 KB a clock over 132 SMs (arXiv 2402.13499), 16-bit FLOP are 989.5 T at 1.83 GHz.
func H100() Chip {
	return Chip{Name: "H100", SMs: 132, SharedPerCTA: 232448, Registers: 65536, RegsPerThread: 255, L2Bytes: 50 << 20, L2Halves: 2,
		SharedPerClock: 128, L2PerClock: 34, FlopPerClock: 4096}
}

// H200 has H100's SMs and reports a larger L2.
func H200() Chip {
	c := H100()
	c.Name, c.L2Bytes = "H200", 60<<20
	return c
}

// Chips lists the known ones.
func Chips() []Chip { return []Chip{H200(), H100()} }
