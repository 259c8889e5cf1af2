// Command fuzz feeds each parser broken inputs, one parser after the other, and writes how many it took and how many crashed: copies of sound files with a few
// edits each (internal/mangle), millions of them, then inputs that go test -fuzz finds by coverage.
//
//	go run ./bench/fuzz -mangled 10000000 -guided 1000000 -out bench/results/fuzz.json
//	go run ./bench/fuzz -mangled 1000000 -only gguf,config.json
//
// A number in the file is kept until the parser takes more. A crash stops its target; the input stands in the test's log, or in the target's testdata.
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

// target is one parser: the test that mangles, and the fuzz target.
type target struct{ Format, Package, Mangle, Fuzz string }

// targets are the parsers of untrusted files, fast ones first.
func targets() []target {
	return []target{
		{"config.json", "./model/hf", "TestMangledConfigurationsDoNotPanic", "FuzzParse"},
		{"safetensors", "./checkpoint/safetensors", "TestMangledFilesDoNotPanic", "FuzzOpen"},
		{"index.json", "./checkpoint/safetensors", "TestMangledIndexesDoNotPanic", "FuzzIndex"},
		{"gguf", "./checkpoint/gguf", "TestMangledFilesDoNotPanic", "FuzzOpen"},
		{"json", "./internal/strictjson", "TestMangledTextsDoNotPanic", "FuzzReader"},
		{"manifest", "./checkpoint", "TestMangledManifestsDoNotPanic", "FuzzManifest"},
		{"tokenizer.json", "./token", "TestMangledTokenizersDoNotPanic", "FuzzParse"},
		{"jsonl", "./data", "TestMangledJSONLDoesNotPanic", "FuzzJSONL"},
		{"tokens", "./data", "TestMangledShardsDoNotPanic", "FuzzShard"},
		{"parquet", "./data", "TestMangledParquetDoesNotPanic", "FuzzParquet"},
	}
}

// row is what became of a parser.
type row struct {
	Format  string `json:"format"`
	Package string `json:"package"`
	Mangled count  `json:"mangled"`
	Guided  count  `json:"guided"`
}

// count is inputs of one kind.
type count struct {
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
	mangled := flag.Int64("mangled", 10_000_000, "mangled inputs to each parser; 0: none")
	guided := flag.Int64("guided", 0, "inputs of go test -fuzz to each parser; 0: none")
	out := flag.String("out", "", "file to write; one that is there is added to")
	only := flag.String("only", "", "formats, separated by commas; empty: all")
	flag.Parse()
	r := result{Command: "go run ./bench/fuzz -mangled N -guided M -out bench/results/fuzz.json", Machine: fmt.Sprintf("%s/%s, %d cores", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()), Go: runtime.Version()}
	if text, err := os.ReadFile(*out); err == nil {
		if err := json.Unmarshal(text, &r); err != nil {
			fail(err)
		}
	}
	for _, t := range targets() {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), t.Format) {
			continue
		}
		row := r.row(t)
		for _, kind := range []struct {
			keep *count
			n    int64
			run  func(target, int64) (count, error)
		}{{&row.Mangled, *mangled, mangle}, {&row.Guided, *guided, fuzz}} {
			if kind.n == 0 {
				continue
			}
			got, err := kind.run(t, kind.n)
			if err != nil {
				fail(fmt.Errorf("%s: %w", t.Format, err))
			}
			fmt.Fprintf(os.Stderr, "%s: %d inputs in %.0f s, %d crashes\n", t.Format, got.Inputs, got.Seconds, got.Crashes)
			if got.Inputs > kind.keep.Inputs || got.Crashes > 0 {
				*kind.keep = got
			}
			if err := r.write(*out); err != nil {
				fail(err)
			}
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "fuzz:", err)
	os.Exit(1)
}

// row is the parser's.
func (r *result) row(t target) *row {
	i := slices.IndexFunc(r.Rows, func(o row) bool { return o.Format == t.Format })
	if i < 0 {
		i, r.Rows = len(r.Rows), append(r.Rows, row{Format: t.Format, Package: t.Package})
	}
	return &r.Rows[i]
}

func (r *result) write(path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil || path == "" {
		fmt.Println(string(text))
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// mangle runs the parser's mangling test, n inputs.
func mangle(t target, n int64) (count, error) {
	return run(t, []string{}, regexp.MustCompile(`(\d+) inputs`), "-test.run=^"+t.Mangle+"$", "-test.v", "-test.timeout=0", fmt.Sprint("-mangle=", n))
}

// fuzz runs the parser's fuzz target with coverage in one worker, n inputs.
func fuzz(t target, n int64) (count, error) {
	return run(t, []string{"-fuzz=" + t.Fuzz}, regexp.MustCompile(`execs: (\d+)`), "-test.run=^$", "-test.fuzz=^"+t.Fuzz+"$", fmt.Sprintf("-test.fuzztime=%dx", n),
		"-test.parallel=1", "-test.fuzzminimizetime=1s", "-test.fuzzcachedir=corpus")
}

// run builds the package's test and runs it in the package's folder, for testdata; inputs finds their number in a line.
func run(t target, build []string, inputs *regexp.Regexp, args ...string) (count, error) {
	tmp, err := os.MkdirTemp("", "heddle-fuzz-")
	if err != nil {
		return count{}, err
	}
	defer os.RemoveAll(tmp)
	binary := filepath.Join(tmp, "target.test")
	if text, err := exec.Command("go", append(append([]string{"test", "-c", "-o", binary}, build...), t.Package)...).CombinedOutput(); err != nil {
		return count{}, fmt.Errorf("%w: %s", err, text)
	}
	for i, a := range args {
		args[i] = strings.Replace(a, "=corpus", "="+filepath.Join(tmp, "corpus"), 1)
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir = filepath.FromSlash(t.Package)
	if _, err := os.Stat("/dev/shm"); err == nil { // parsers that read files read them from memory
		cmd.Env = append(os.Environ(), "TMPDIR=/dev/shm")
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return count{}, err
	}
	cmd.Stderr = cmd.Stdout // progress goes there
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return count{}, err
	}
	r := count{Date: start.UTC().Format(time.DateOnly)}
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		if m := inputs.FindStringSubmatch(lines.Text()); m != nil {
			if r.Inputs, err = strconv.ParseInt(m[1], 10, 64); err != nil {
				return r, err
			}
		} else if strings.Contains(lines.Text(), "FAIL") || strings.Contains(lines.Text(), "panic") || strings.Contains(lines.Text(), "Failing") {
			fmt.Fprintln(os.Stderr, lines.Text())
		}
	}
	r.Seconds = time.Since(start).Seconds()
	if _, failed := errors.AsType[*exec.ExitError](cmd.Wait()); failed {
		r.Crashes = 1
	}
	return r, nil
}
