// Command ranks runs training steps of four ranks under seeds: each draws a scheme, delays, an order of turns and one fault, and
// must end with the right diagnosis.
//
//	go run ./bench/ranks --seeds 10000 --json > bench/results/seeds.json
//	go run ./bench/ranks --seed 17
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"heddle/parity"
)

type report struct {
	Command string  `json:"command"`
	Date    string  `json:"date"`
	Go      string  `json:"go"`
	Machine string  `json:"machine"`
	Seconds float64 `json:"wall_s"`
	*parity.Seeds
}

func main() {
	seeds := flag.Int("seeds", 10000, "how many seeds")
	first := flag.Uint64("from", 1, "the first of them")
	replay := flag.Int("replay", 20, "every n-th seed is run twice and compared; 0: none")
	one := flag.Uint64("seed", 0, "run this seed alone and show its report")
	asJSON := flag.Bool("json", false, "print the result as JSON")
	flag.Parse()
	if err := run(*first, *seeds, *replay, *one, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "ranks:", err)
		os.Exit(1)
	}
}

func run(first uint64, seeds, replay int, one uint64, asJSON bool) error {
	if one > 0 {
		var lab parity.Laboratory
		o, err := lab.Seed(one)
		if err != nil {
			return err
		}
		text, err := json.MarshalIndent(o, "", "  ")
		if err != nil {
			return err
		}
		fmt.Printf("%s\n%s\n", text, o.Report)
		return nil
	}
	began, done := time.Now(), 0
	s, err := parity.RunSeeds(first, seeds, runtime.GOMAXPROCS(0), replay, func(parity.Outcome) {
		if done++; done%500 == 0 {
			fmt.Fprintf(os.Stderr, "%d of %d seeds, %.0f s\n", done, seeds, time.Since(began).Seconds())
		}
	})
	if err != nil {
		return err
	}
	r := report{Command: strings.Join(append([]string{"go run ./bench/ranks"}, os.Args[1:]...), " "), Date: began.UTC().Format(time.RFC3339), Go: runtime.Version(),
		Machine: machine(), Seconds: time.Since(began).Seconds(), Seeds: s}
	if asJSON {
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", text)
	} else {
		show(&r)
	}
	if s.Hung+s.Wrong > 0 {
		return errors.New("not every seed ended with the right diagnosis")
	}
	return nil
}

func show(r *report) {
	fmt.Printf("%d seeds from %d on, %d turns, %.0f s: %d hung, %d wrong diagnoses; %d run twice alike\n\n", r.Count, r.First, r.Turns, r.Seconds, r.Hung, r.Wrong, r.Replayed)
	fmt.Printf("%-20s %8s %12s %12s %12s\n", "fault", "seeds", "rank named", "both sides", "harmless")
	for _, f := range r.Faults {
		fmt.Printf("%-20s %8d %12d %12d %12d\n", f.Plant, f.Seeds, f.Named, f.Sides, f.Harmless)
	}
	for _, f := range r.Failures {
		fmt.Printf("\nseed %d, %s: %s of rank %d in %s: %s\n%s\n", f.Seed, f.Scheme, f.Plant, f.Rank, f.Call, f.Wrong, f.Report)
	}
}

// machine is the processor's name and the threads in use.
func machine() string {
	name := runtime.GOARCH
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			name = strings.TrimSpace(v)
			break
		}
	}
	return fmt.Sprintf("%s, %d threads", name, runtime.GOMAXPROCS(0))
}
