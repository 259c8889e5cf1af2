package parity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
	"unsafe"

	"heddle/comm"
	"heddle/comm/local"
	"heddle/data"
	"heddle/model"
	"heddle/num"
	"heddle/parallel"
	"heddle/tensor"
	"heddle/train"
)

// Seeds are training steps of four ranks under the seeded scheduler (comm/local.Sim): every seed draws a scheme, a policy of
// recomputation, delays, an order of turns and one fault. A step without a fault must leave the bits of an undisturbed one; a
// step with one must end, and say what went wrong on which rank. Start with Seed; faults and their judges are in judge.go.

// seedSchemes are those of four ranks.
var seedSchemes = [...]string{"dp4", "fsdp4", "tp4", "megatron4", "ulysses4", "dp2-fsdp2", "dp2-tp2", "dp2-megatron2", "fsdp2-tp2", "fsdp2-megatron2",
	"fsdp2-ulysses2", "dp2-ulysses2", "ulysses2-tp2", "ulysses2-megatron2"}

var seedPolicies = [...]model.Policy{{Mode: model.Selective}, {Mode: model.All}, {Mode: model.Full}, {Mode: model.Full, Every: 2}}

// Plant is the fault of a seed.
type Plant string

// NaN comes from a rank every time it makes the call, or once; the other faults are those of the local leaf.
const (
	NaN     Plant = "NaN"
	NaNOnce Plant = "NaN once"
	Guarded Plant = "NaN once, guarded" // every rank looks at what it sends from the start
)

// plants are all faults, in the order of reports.
func plants() (out []Plant) {
	for k := range local.FaultKinds {
		out = append(out, Plant(k.String()))
	}
	return append(out, NaN, NaNOnce, Guarded)
}

// Outcome is what a seed came to.
type Outcome struct {
	Seed   uint64 `json:"seed"`
	Scheme string `json:"scheme"`
	Plant  Plant  `json:"fault"`
	Rank   int    `json:"rank"`
	Call   string `json:"call,omitempty"`    // the call that is hit
	Wrong  string `json:"wrong,omitempty"`   // what is wrong with the diagnosis; empty: nothing
	Hung   bool   `json:"hung,omitempty"`    // no end within the watchdog's time
	Named  bool   `json:"named,omitempty"`   // the rank at fault is named alone; else both sides of a pair are
	Report string `json:"report,omitempty"`  // the error
	Turns  int    `json:"turns"`             // how often another rank went on
	Took   string `json:"virtual,omitempty"` // virtual time
	order  []uint8
}

// watchdog is the seconds that a seed may take; one takes some ms. A process that is stopped spends one of them, however long.
const watchdog = 60

// seedDeadline is on the virtual clock; no delay comes near it.
const seedDeadline = 200 * time.Millisecond

// Laboratory runs seeds. Its zero value is ready; several goroutines may use it.
type Laboratory struct {
	mu    sync.Mutex
	clean map[string]*undisturbed
}

// undisturbed is a step without faults, on ranks that run as they like.
type undisturbed struct {
	trial *train.Trial
	calls [][]local.Called // of each rank
}

// Seed runs one seed.
func (l *Laboratory) Seed(seed uint64) (Outcome, error) {
	p, e, err := l.strike(seed)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Seed: seed, Scheme: e.scheme, Plant: p.kind, Rank: p.rank, Call: p.call.Signature.String(), Hung: e.trial == nil}
	if !out.Hung {
		out.Named, out.Wrong = p.judge(e.err, e.trial, e.clean)
		out.order, out.Turns, out.Took = e.sim.Order(), len(e.sim.Order()), e.sim.Took().String()
	}
	if e.err != nil {
		out.Report = e.err.Error()
	}
	return out, nil
}

// end is how a seed's step ended; without a trial it has not.
type end struct {
	scheme       string
	sim          *local.Sim
	trial, clean *train.Trial
	err          error
}

// strike draws a seed's run and fault, and runs it.
func (l *Laboratory) strike(seed uint64) (*planted, end, error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	cfg, scheme := seedConfig(rng)
	clean, err := l.undisturbed(cfg, scheme)
	if err != nil {
		return nil, end{}, err
	}
	all := plants()
	p := &planted{kind: all[rng.IntN(len(all))], rank: rng.IntN(4)}
	p.choose(rng, clean.calls[p.rank])
	sim := &local.Sim{Seed: seed, Delay: time.Millisecond, Fault: p.fault}
	ended := make(chan end, 1)
	go func() {
		trial, err := train.Try(cfg, train.Machine{Threads: 1, Deadline: seedDeadline, Sim: sim}, seedBatch(cfg), p.ready)
		ended <- end{scheme, sim, trial, clean.trial, err}
	}()
	for range watchdog {
		select {
		case e := <-ended:
			return p, e, nil
		case <-time.After(time.Second):
		}
	}
	return p, end{scheme: scheme}, nil
}

// seedConfig draws a run: a small model of two layers under one of the schemes.
func seedConfig(rng *rand.Rand) (train.Config, string) {
	c := train.Default()
	c.Model = model.Config{Layers: 2, Hidden: 8, Heads: 4, KV: 2, Head: 2, MLP: 8, Vocab: 259, Theta: 1e4, Eps: 1e-6, Tied: rng.IntN(2) == 0, Std: 0.3}
	c.Seq, c.Batch, c.Accumulate, c.DType, c.Samples, c.EvalBytes = 8, 8, 1+rng.IntN(2), "f64", 0, 1
	c.Recompute = seedPolicies[rng.IntN(len(seedPolicies))]
	scheme := seedSchemes[rng.IntN(len(seedSchemes))]
	l, err := parallel.ParseLayout(scheme)
	if err != nil {
		panic(err) // of the list above
	}
	c.Parallel = l
	return c, scheme
}

// seedBatch is one batch in which every rank has labels, but not equally many.
func seedBatch(c train.Config) []*data.Batch {
	n := c.Batch * c.Seq
	b := &data.Batch{B: c.Batch, S: c.Seq, IDs: make([]int32, n), Labels: make([]int32, n), Mask: make([]float32, n)}
	for i := range n {
		b.IDs[i], b.Labels[i] = int32(num.Uniform(7, 1, uint64(i))*float64(c.Model.Vocab)), data.Ignore
		if i%2 == 0 || num.Uniform(7, 3, uint64(i)) < 0.5 {
			b.Labels[i], b.Mask[i] = int32(num.Uniform(7, 2, uint64(i))*float64(c.Model.Vocab)), 1
			b.Tokens++
		}
	}
	return []*data.Batch{b}
}

func (l *Laboratory) undisturbed(c train.Config, scheme string) (*undisturbed, error) {
	key := fmt.Sprint(scheme, c.Recompute, c.Accumulate, c.Model.Tied)
	l.mu.Lock()
	defer l.mu.Unlock()
	if u := l.clean[key]; u != nil {
		return u, nil
	}
	trial, err := train.Try(c, train.Machine{Threads: 1}, seedBatch(c), nil)
	if err != nil {
		return nil, err
	}
	sim := &local.Sim{} // the calls alone: they do not depend on turns
	if _, err := train.Try(c, train.Machine{Threads: 1, Sim: sim}, seedBatch(c), nil); err != nil {
		return nil, err
	}
	if l.clean == nil {
		l.clean = map[string]*undisturbed{}
	}
	l.clean[key] = &undisturbed{trial, sim.Calls()}
	return l.clean[key], nil
}

// poisoner makes what a rank sends NaN in the calls that look like the chosen one.
type poisoner struct {
	like   comm.Signature
	once   bool
	struck int
	kept   [][]float64 // the data are alive as long as the run
}

func (p *poisoner) look(o *comm.Op) {
	if o.Signature() != p.like || p.once && p.struck > 0 {
		return
	}
	p.struck++
	bad := slices.Repeat([]float64{math.NaN()}, o.Src.Elems())
	p.kept = append(p.kept, bad)
	o.Src.Mem = tensor.Mem{Ptr: unsafe.Pointer(&bad[0])}
}

// Seeds is what many seeds came to.
type Seeds struct {
	First    uint64         `json:"first_seed"`
	Count    int            `json:"seeds"`
	Hung     int            `json:"hung"`
	Wrong    int            `json:"wrong_diagnoses"`
	Turns    int64          `json:"turns"`
	Replayed int            `json:"replayed"` // seeds run twice, to the same order of turns and the same report
	Faults   []SeedTally    `json:"faults"`
	Schemes  map[string]int `json:"schemes"`
	Failures []Outcome      `json:"failures"` // the first few
}

// SeedTally counts the seeds of one fault.
type SeedTally struct {
	Plant    Plant `json:"fault"`
	Seeds    int   `json:"seeds"`
	Named    int   `json:"named"`    // the report names the rank at fault, alone
	Harmless int   `json:"harmless"` // a NaN that nobody uses: the step ends with the right bits
	Sides    int   `json:"sides"`    // the report shows the two sides that differ: two ranks, and no third to tell who is right
}

// RunSeeds runs count seeds from first on, on some workers, every replay-th twice. It calls tell, from one goroutine at a time,
// after each seed.
func RunSeeds(first uint64, count, workers, replay int, tell func(Outcome)) (*Seeds, error) {
	var lab Laboratory
	s := &Seeds{First: first, Count: count, Schemes: map[string]int{}, Failures: []Outcome{}}
	tallies := map[Plant]*SeedTally{}
	for _, p := range plants() {
		tallies[p] = &SeedTally{Plant: p}
	}
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < count; i += workers {
				out, err := lab.Seed(first + uint64(i))
				if err == nil && replay > 0 && i%replay == 0 {
					var again Outcome
					again, err = lab.Seed(out.Seed)
					if out.Wrong == "" && (!slices.Equal(again.order, out.order) || again.Report != out.Report) && out.Plant != Plant(local.Panic.String()) { // a panic's report has addresses
						out.Wrong = "run again it takes another way: " + again.Report
					}
				}
				mu.Lock()
				if err != nil && failed == nil {
					failed = err
				}
				if err == nil {
					s.count(out, tallies[out.Plant], replay > 0 && i%replay == 0)
					tell(out)
				}
				stop := failed != nil
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, p := range plants() {
		s.Faults = append(s.Faults, *tallies[p])
	}
	return s, failed
}

func (s *Seeds) count(o Outcome, t *SeedTally, replayed bool) {
	s.Turns += int64(o.Turns)
	s.Schemes[o.Scheme]++
	t.Seeds++
	if replayed {
		s.Replayed++
	}
	switch {
	case o.Hung:
		s.Hung++
	case o.Wrong != "":
		s.Wrong++
	case o.Named:
		t.Named++
	case o.Report == "":
		t.Harmless++
	default:
		t.Sides++
	}
	if (o.Hung || o.Wrong != "") && len(s.Failures) < 10 {
		s.Failures = append(s.Failures, o)
	}
}

// plantOf is the leaf's fault of that name.
func plantOf(p Plant) local.FaultKind {
	for k := range local.FaultKinds {
		if Plant(k.String()) == p {
			return k
		}
	}
	return local.NoFault
}
