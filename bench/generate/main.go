// Command generate measures greedy generation of SmolLM2-135M on the CPU beside PyTorch, the sides alternating in one run, and
// prints JSON on stdout:
//
//	go run ./bench/generate -model SmolLM2-135M-Instruct.Q4_1.gguf -python python3 -batch 1 > bench/results/generate-cpu-batch1.json
//
// The peers (peer.py) are transformers' generate and a minimal loop in PyTorch over the same weights, dequantised to float32.
// Times are of the tokens after the first: one row of the forward pass each. Beside them stands how fast this machine reads
// memory, since at batch 1 every token reads every weight.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"heddle/compute/cpu/blas"
	"heddle/compute/cpu/vec"
	"heddle/sample"
	"heddle/sample/cpu"
	"heddle/sample/text"
)

// report is the file.
type report struct {
	Command, Date, Machine, Go, Set string
	Load                            string          `json:",omitempty"` // of the machine when it began
	Peer                            json.RawMessage `json:",omitempty"`
	Threads, Rounds, Prompt, Tokens int
	WeightBytes                     int
	ReadGBs                         []float64 // memory read by all threads, one measurement a round
	Rows                            []row
}

// row is one batch size: seconds of every round by side, and what follows.
type row struct {
	Batch     int
	Seconds   map[string][]float64
	TokS      map[string]float64 // of the median
	Ratio     map[string]float64 `json:",omitempty"` // heddle's (float32) tokens a second over the peer's, medians
	GBs       float64            // weights read a second by heddle
	ReadShare float64            // of what the machine reads
	Agree     map[string]int     // leading tokens of the first sequence that are heddle's
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run() error {
	model := flag.String("model", "", "the .gguf file")
	python := flag.String("python", "", "python with torch, transformers and gguf; none: no peers")
	script := flag.String("peer", "bench/generate/peer.py", "the peers")
	how := flag.String("how", "generate,loop", "peers to run: generate, loop, compiled")
	batches := flag.String("batch", "1,16", "batch sizes")
	r := report{Date: time.Now().UTC().Format(time.RFC3339), Go: runtime.Version(), Set: blas.BestSet().String(), Machine: machine()}
	flag.IntVar(&r.Threads, "threads", runtime.NumCPU(), "of each side")
	flag.IntVar(&r.Rounds, "rounds", 5, "alternated rounds; the median counts")
	flag.IntVar(&r.Tokens, "tokens", 64, "tokens of a sequence in a round")
	flag.Parse()
	r.Command = "go run ./bench/generate -model FILE.gguf " + strings.Join(kept(os.Args[1:]), " ")
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		r.Load = strings.TrimSpace(string(load))
	}
	h, err := open(*model, r.Threads)
	if err != nil {
		return err
	}
	r.WeightBytes, r.Prompt = h.d.WeightBytes(), len(h.prompt)
	var p *peer
	if *python != "" {
		if p, err = start(*python, *script, fmt.Sprint(r.Threads), *model); err != nil {
			return err
		}
		defer p.stop()
		r.Peer = p.about
	}
	for _, b := range strings.Split(*batches, ",") {
		var n int
		if _, err := fmt.Sscan(b, &n); err != nil || n < 1 {
			return fmt.Errorf("batch %q, want a number of 1 or more", b)
		}
		if err := r.measure(h, p, n, strings.Split(*how, ",")); err != nil {
			return err
		}
	}
	r.finish()
	enc := json.NewEncoder(os.Stdout)
	enc.SetIndent("", " ")
	return enc.Encode(r)
}

// kept drops the paths of this machine from the command.
func kept(args []string) (out []string) {
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-model", "-peer":
			i++
		case "-python":
			out = append(out, "-python", "python3")
			i++
		default:
			out = append(out, args[i])
		}
	}
	return out
}

// heddle is our side.
type heddle struct {
	d      *cpu.Decoder
	half   *cpu.Decoder // weights kept as bf16
	pool   *blas.Pool
	prompt []int32
	memory []float32 // read for the machine's bandwidth
}

func open(path string, threads int) (*heddle, error) {
	m, err := text.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	h := &heddle{pool: blas.NewPool(threads), memory: make([]float32, 1<<27)}
	for i := range h.memory {
		h.memory[i] = 1 // pages that were never written are all one page of zeros
	}
	if h.d, err = m.Decoder(h.pool, false); err != nil {
		return nil, err
	}
	if h.half, err = m.Decoder(h.pool, true); err != nil {
		return nil, err
	}
	h.prompt, err = m.Prompt("The loom stood in the corner of the room where the light was best, and every morning")
	return h, err
}

// generate is greedy decoding of n equal sequences. The clock starts when all have their first token.
func (h *heddle) generate(d *cpu.Decoder, n, tokens int) (seconds float64, ids []int32, err error) {
	g, err := sample.New(d, sample.Options{MaxTokens: tokens, Batch: n})
	if err != nil {
		return 0, nil, err
	}
	if err := g.Add(sample.Prompt{IDs: h.prompt, Streams: make([]uint64, n)}); err != nil {
		return 0, nil, err
	}
	if _, err := g.Step(); err != nil {
		return 0, nil, err
	}
	start := time.Now()
	if err := g.Run(context.Background()); err != nil {
		return 0, nil, err
	}
	return time.Since(start).Seconds(), g.Sequences[0].IDs(), nil
}

// read is GB/s of reading 512 MiB with every thread, the best of three.
func (h *heddle) read() float64 {
	best := 0.0
	for range 3 {
		parts, sums := h.pool.Threads(), make([]float32, h.pool.Threads())
		start := time.Now()
		h.pool.Run(parts, func(_, i int) { sums[i] = vec.Sum(h.memory[len(h.memory)*i/parts : len(h.memory)*(i+1)/parts]) })
		best = max(best, 4*float64(len(h.memory))/time.Since(start).Seconds()/1e9)
	}
	return best
}

// peer is PyTorch's side, a process that is asked again and again.
type peer struct {
	cmd   *exec.Cmd
	in    *json.Encoder
	out   *bufio.Reader
	about json.RawMessage
	close func() error
}

func start(python, script string, args ...string) (*peer, error) {
	p := &peer{cmd: exec.Command(python, append([]string{script}, args...)...)}
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out, p.close = json.NewEncoder(in), bufio.NewReader(out), in.Close
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("the peer did not start: %w", err)
	}
	p.about = line
	return p, nil
}

func (p *peer) stop() {
	p.close()
	p.cmd.Wait()
}

func (p *peer) ask(how string, batch, tokens int, prompt []int32) (seconds float64, ids []int32, err error) {
	if err := p.in.Encode(map[string]any{"how": how, "batch": batch, "prompt": prompt, "tokens": tokens}); err != nil {
		return 0, nil, err
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return 0, nil, fmt.Errorf("the peer said nothing to %s: %w", how, err)
	}
	var a struct {
		Seconds float64
		IDs     []int32
	}
	err = json.Unmarshal(line, &a)
	return a.Seconds, a.IDs, err
}

// The names of our sides: weights in float32, and rounded to bf16.
const (
	ours     = "heddle"
	oursHalf = "heddle bf16"
)

// measure alternates the sides; a first round of each is not counted.
func (r *report) measure(h *heddle, p *peer, batch int, how []string) error {
	w := row{Batch: batch, Seconds: map[string][]float64{}, Agree: map[string]int{}}
	for round := range r.Rounds + 1 {
		s, want, err := h.generate(h.d, batch, r.Tokens)
		if err != nil {
			return err
		}
		halved, _, err := h.generate(h.half, batch, r.Tokens)
		if err != nil {
			return err
		}
		if round > 0 {
			w.Seconds[ours], w.Seconds[oursHalf] = append(w.Seconds[ours], s), append(w.Seconds[oursHalf], halved)
			r.ReadGBs = append(r.ReadGBs, h.read())
		}
		for _, side := range how {
			if p == nil {
				break
			}
			s, ids, err := p.ask(side, batch, r.Tokens, h.prompt)
			if err != nil {
				return err
			}
			if round > 0 {
				w.Seconds[side] = append(w.Seconds[side], s)
			}
			n := 0
			for n < len(ids) && n < len(want) && ids[n] == want[n] {
				n++
			}
			w.Agree[side] = n
		}
	}
	r.Rows = append(r.Rows, w)
	return nil
}

func (r *report) finish() {
	for i := range r.Rows {
		w := &r.Rows[i]
		w.TokS, w.Ratio = map[string]float64{}, map[string]float64{}
		for side, s := range w.Seconds {
			w.TokS[side] = float64(w.Batch*(r.Tokens-1)) / median(s)
		}
		for side := range w.Seconds {
			if side != ours && side != oursHalf {
				w.Ratio[side] = w.TokS[ours] / w.TokS[side]
			}
		}
		w.GBs = float64(r.WeightBytes) * w.TokS[ours] / float64(w.Batch) / 1e9
		w.ReadShare = w.GBs / median(r.ReadGBs)
	}
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// machine is the processor's name and number of processors.
func machine() string {
	name := runtime.GOARCH
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			name = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%s, %d processors", name, runtime.NumCPU())
}
