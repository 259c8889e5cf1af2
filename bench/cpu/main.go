// Command cpu measures the CPU kernels beside their peers, alternating the two
// in one run, and prints JSON on stdout:
//
//	go run ./bench/cpu -threads 1,2 > bench/results/cpu-gemm.json
//	go run ./bench/cpu -what kernels > bench/results/cpu-kernels.json
//	go run ./bench/cpu -only square -peer=false
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"heddle/compute/cpu/blas"
)

// report is the file: where it was measured, and the rows.
type report struct {
	Command, Date, Machine, Go, Set, Peer string
	Rounds                                int
	Each                                  string
	Load                                  string            `json:",omitempty"` // of the machine when it began, from /proc/loadavg
	Gemm                                  []result          `json:",omitempty"`
	Rows                                  []rowResult       `json:",omitempty"`
	Attention                             []attentionResult `json:",omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	what := flag.String("what", "gemm", "gemm or kernels")
	threads := flag.String("threads", "1", "thread counts, comma-separated")
	only := flag.String("only", "", "rows whose description contains this")
	peer := flag.Bool("peer", true, "measure OpenBLAS beside")
	rounds := flag.Int("rounds", 5, "alternated rounds; the median counts")
	each := flag.Duration("each", 100*time.Millisecond, "time a round of one side takes")
	flag.Parse()
	var counts []int
	for _, t := range strings.Split(*threads, ",") {
		n, err := strconv.Atoi(t)
		if err != nil || n < 1 {
			return fmt.Errorf("bench: threads %q, want numbers of 1 or more", t)
		}
		counts = append(counts, n)
	}
	r := report{Command: "go run ./bench/cpu " + strings.Join(os.Args[1:], " "), Date: time.Now().UTC().Format(time.RFC3339),
		Machine: machine(), Go: runtime.Version(), Set: blas.BestSet().String(), Rounds: *rounds, Each: each.String()}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		r.Load = strings.TrimSpace(string(load))
	}
	switch *what {
	case "gemm":
		if err := gemm(&r, counts, *only, *peer, *each); err != nil {
			return err
		}
	case "kernels":
		r.Rows, r.Attention = runRows(*rounds, *each), runAttention(*rounds, *each)
	default:
		return fmt.Errorf("bench: what %q, want gemm or kernels", *what)
	}
	enc := json.NewEncoder(os.Stdout)
	enc.SetIndent("", " ")
	return enc.Encode(r)
}

// gemm fills the report's table of products.
func gemm(r *report, counts []int, only string, peer bool, each time.Duration) error {
	var lib *openblas
	if peer {
		var err error
		if lib, err = openOpenBLAS(); err != nil {
			return err
		}
		r.Peer = lib.config
	}
	var shapes []shape
	for _, s := range table() {
		if strings.Contains(s.What, only) {
			shapes = append(shapes, s)
		}
	}
	rows, err := runTable(counts, shapes, lib, r.Rounds, each)
	if err != nil {
		return err
	}
	r.Gemm = rows
	return nil
}

// machine is the processor's name, from /proc/cpuinfo where there is one, and
// the number of processors.
func machine() string {
	name := runtime.GOARCH
	info, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for _, line := range strings.Split(string(info), "\n") {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d processors", name, runtime.NumCPU())
}
