// Command fuzz feeds each parser's fuzz target a number of inputs, one target after the other, and writes how many it took.
//
//	go run ./bench/fuzz -inputs 10000000 -out bench/results/fuzz.json
//	go run ./bench/fuzz -inputs 1000000 -only gguf,config.json
//
// A result is kept until the target takes more inputs. A crash stops the target; its input stays in the target's folder.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// target is one parser.
type target struct{ Format, Package, Fuzz string }

// targets are the parsers of untrusted files, fast ones first.
func targets() []target {
	return []target{
		{"config.json", "./model/hf", "FuzzParse"},
		{"safetensors", "./checkpoint/safetensors", "FuzzOpen"},
		{"index.json", "./checkpoint/safetensors", "FuzzIndex"},
		{"gguf", "./checkpoint/gguf", "FuzzOpen"},
		{"json", "./internal/strictjson", "FuzzReader"},
		{"manifest", "./checkpoint", "FuzzManifest"},
		{"tokenizer.json", "./token", "FuzzParse"},
		{"jsonl", "./data", "FuzzJSONL"},
		{"parquet", "./data", "FuzzParquet"},
		{"tokens", "./data", "FuzzShard"},
	}
}

// row is what became of a target.
type row struct {
	Format  string  `json:"format"`
	Package string  `json:"package"`
	Fuzz    string  `json:"target"`
	Inputs  int64   `json:"inputs"`
	Seconds float64 `json:"seconds"`
	Crashes int     `json:"crashes"`
	Date    string  `json:"date"`
}

type result struct {
	Command string `json:"command"`
	Machine string `json:"machine"`
	Go      string `json:"go"`
	Rows    []row  `json:"rows"`
}

func main() {
	inputs := flag.Int64("inputs", 10_000_000, "inputs to each target")
	out := flag.String("out", "", "file to write; one that is there is added to")
	only := flag.String("only", "", "formats, separated by commas; empty: all")
	flag.Parse()
	r := result{Command: "go run ./bench/fuzz -inputs N -out bench/results/fuzz.json", Machine: fmt.Sprintf("%s/%s, %d cores", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()), Go: runtime.Version()}
	if text, err := os.ReadFile(*out); err == nil {
		if err := json.Unmarshal(text, &r); err != nil {
			fail(err)
		}
	}
	for _, t := range targets() {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), t.Format) {
			continue
		}
		got, err := run(t, *inputs)
		if err != nil {
			fail(fmt.Errorf("%s: %w", t.Format, err))
		}
		fmt.Fprintf(os.Stderr, "%s: %d inputs in %.0f s, %d crashes\n", t.Format, got.Inputs, got.Seconds, got.Crashes)
		r.keep(got)
		if err := r.write(*out); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "fuzz:", err)
	os.Exit(1)
}

// keep puts a row in the place of one with fewer inputs.
func (r *result) keep(n row) {
	i := slices.IndexFunc(r.Rows, func(o row) bool { return o.Format == n.Format })
	switch {
	case i < 0:
		r.Rows = append(r.Rows, n)
	case r.Rows[i].Inputs < n.Inputs || n.Crashes > 0:
		r.Rows[i] = n
	}
}

func (r *result) write(path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil || path == "" {
		fmt.Println(string(text))
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// run builds the target with coverage and runs one worker over it in its package's folder, for testdata.
func run(t target, inputs int64) (row, error) {
	tmp, err := os.MkdirTemp("", "heddle-fuzz-")
	if err != nil {
		return row{}, err
	}
	defer os.RemoveAll(tmp)
	binary := filepath.Join(tmp, "target.test")
	build := exec.Command("go", "test", "-c", "-fuzz="+t.Fuzz, "-o", binary, t.Package)
	if text, err := build.CombinedOutput(); err != nil {
		return row{}, fmt.Errorf("%w: %s", err, text)
	}
	cmd := exec.Command(binary, "-test.run=^$", "-test.fuzz=^"+t.Fuzz+"$", fmt.Sprintf("-test.fuzztime=%dx", inputs), "-test.parallel=1", "-test.fuzzcachedir="+filepath.Join(tmp, "corpus"),
		"-test.fuzzminimizetime=1s")
	cmd.Dir = filepath.FromSlash(t.Package)
	if _, err := os.Stat("/dev/shm"); err == nil { // targets that read files read them from memory
		cmd.Env = append(os.Environ(), "TMPDIR=/dev/shm")
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return row{}, err
	}
	cmd.Stderr = cmd.Stdout // progress goes there
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return row{}, err
	}
	r := row{Format: t.Format, Package: t.Package, Fuzz: t.Fuzz, Date: start.UTC().Format(time.DateOnly)}
	execs := regexp.MustCompile(`execs: (\d+)`)
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		if m := execs.FindStringSubmatch(lines.Text()); m != nil {
			if r.Inputs, err = strconv.ParseInt(m[1], 10, 64); err != nil {
				return r, err
			}
			continue
		}
		fmt.Fprintln(os.Stderr, lines.Text())
	}
	r.Seconds = time.Since(start).Seconds()
	if _, failed := errors.AsType[*exec.ExitError](cmd.Wait()); failed {
		r.Crashes = 1
	}
	return r, nil
}
