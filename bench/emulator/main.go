// Command emulator measures how fast package ptx/emulate runs, all checks on, and prints JSON on stdout:
//
//	go run ./bench/emulator > bench/results/emulator-cpu.json
//
// Wall seconds are the best of the rounds (one for the fault suite); processor seconds stand beside them, because a shared machine stretches the wall.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"heddle/kernel/all"
	"heddle/kernel/gemm"
	"heddle/ptx"
	"heddle/ptx/emulate"
)

type row struct {
	What       string  `json:"what"`
	Wall       float64 `json:"wall_s"` // best round
	CPU        float64 `json:"cpu_s"`  // best round
	MPerCPUSec float64 `json:"million_per_cpu_s,omitempty"`
}

type report struct {
	Command string `json:"command"`
	Date    string `json:"date"`
	Go      string `json:"go"`
	Machine string `json:"machine"`
	Rounds  int    `json:"rounds"`
	Rows    []row  `json:"rows"`
}

func main() {
	rounds := flag.Int("rounds", 3, "rounds; the best counts")
	flag.Parse()
	if err := run(*rounds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(rounds int) error {
	runtime.GOMAXPROCS(1) // one core, collector included
	r := report{Command: strings.Join(append([]string{"go run ./bench/emulator"}, os.Args[1:]...), " "), Date: time.Now().UTC().Format(time.RFC3339), Go: runtime.Version(), Machine: machine(), Rounds: rounds}
	measure := func(what string, units float64, work func() error) error {
		best := row{What: what}
		for i := range rounds {
			wall, used := time.Now(), cpu()
			if err := work(); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			w, c := time.Since(wall).Seconds(), cpu()-used
			if i == 0 || w < best.Wall {
				best.Wall = w
			}
			if i == 0 || c < best.CPU {
				best.CPU = c
			}
		}
		if units > 0 {
			best.MPerCPUSec = units / best.CPU / 1e6
		}
		r.Rows = append(r.Rows, best)
		fmt.Fprintf(os.Stderr, "%-40s %8.3f s wall %8.3f s cpu %8.1f M/s\n", what, best.Wall, best.CPU, best.MPerCPUSec)
		return nil
	}
	if err := gemms(measure); err != nil {
		return err
	}
	rounds *= 10 // they take hundredths of a second
	if err := instructions(measure); err != nil {
		return err
	}
	rounds = 1 // the suite is long, and steady
	if err := faults(measure); err != nil {
		return err
	}
	enc := json.NewEncoder(os.Stdout)
	enc.SetIndent("", " ")
	return enc.Encode(r)
}

type measurer func(what string, units float64, work func() error) error

// gemms are squares by the default kernel: 128×256×64, clusters of two, persistent over eight SMs.
func gemms(measure measurer) error {
	g, err := gemm.New(gemm.Default())
	if err != nil {
		return err
	}
	for _, n := range []int{256, 1024, 2048} {
		c, err := gemm.NewExact(n, n, n, 1).Case(g, 8)
		if err != nil {
			return err
		}
		err = measure(fmt.Sprintf("gemm %s, %d cubed", g.Config, n), 0, func() error {
			return emulate.Emulator{SMs: 8, Seed: 1}.Run(g.Module(), c.Launch, c.Args)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// instructions run 64 copies of one instruction in a loop, in four warps.
func instructions(measure measurer) error {
	const loops = 4000
	for _, i := range []struct {
		what string
		f    func(k *ptx.Builder, x ptx.F32, tile ptx.SAddr)
	}{
		{"add.u32, full warp", func(k *ptx.Builder, _ ptx.F32, _ ptx.SAddr) { k.Tid().Add(k.Tid()) }},
		{"fma.rn.f32, full warp", func(_ *ptx.Builder, x ptx.F32, _ ptx.SAddr) { x.FMA(x, x) }},
		{"ld.shared.f32, checked, banks counted", func(_ *ptx.Builder, _ ptx.F32, tile ptx.SAddr) { tile.LoadF32() }},
	} {
		k := ptx.New("rate", 128, 1)
		n := k.ParamU32("n")
		tile := k.Shared("tile", 512, 128).Addr().At(k.Tid().Shl(2))
		tile.StoreU32(k.Tid())
		k.For(k.U32(0), n.U32, k.U32(1), func(ptx.U32) {
			x := k.Tid().F32()
			for range 64 {
				i.f(k, x, tile)
			}
		})
		e, err := k.Build()
		if err != nil {
			return err
		}
		a := e.NewArgs()
		n.Put(a, loops)
		err = measure(i.what, 4*64*loops, func() error {
			return emulate.Emulator{}.Run(&ptx.Module{Entries: []*ptx.Entry{e}}, ptx.Launch{Entry: "rate", Grid: ptx.Dim3{X: 1}}, a)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// faults is the whole suite: every mutant of three GEMMs and the row sum under eight seeds.
func faults(measure measurer) error {
	for _, name := range []string{"gemm-c1", "gemm", "gemm-pingpong", "row-sum"} {
		k, err := all.Find(name)
		if err != nil {
			return err
		}
		b, err := k.Build()
		if err != nil {
			return err
		}
		c, sms, err := b.FaultCase()
		if err != nil {
			return err
		}
		fresh := func() (ptx.Launch, *ptx.Args, error) { return c.Launch, c.Args, nil }
		n, missed := 0, 0
		err = measure("mutants of "+name+", 8 seeds", 0, func() error {
			v, err := emulate.Trial(b.Module().Entries[0], emulate.Emulator{SMs: sms, Dry: true, MaxSteps: 1e6}, 8, fresh, b.Equivalent)
			n, missed = len(v), 0
			for _, x := range v {
				if !x.Passed() {
					missed++
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "    %d mutants, %d missed\n", n, missed)
	}
	return nil
}

// cpu is the processor time of this process so far, in seconds.
func cpu() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// machine names the processor.
func machine() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}
