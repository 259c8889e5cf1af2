package bench

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"heddle/ptx"
	"heddle/tile"
)

// AccessKinds are the shared-memory instructions that the bank benchmark knows.
func AccessKinds() []string {
	return []string{"ld 4 B", "ld 8 B", "ld 16 B", "st 4 B", "st 8 B", "st 16 B", "ldmatrix", "stmatrix", "ldmatrix trans", "stmatrix trans"}
}

// BankResult is one access pattern: what tile's model predicts, and what a saturated SM needs for it.
type BankResult struct {
	Kind    string  `json:"kind"`
	Pattern string  `json:"pattern"`
	Offsets []int   `json:"offsets,omitempty"` // bytes, by lane
	Model   int     `json:"model_wavefronts"`
	Cycles  float64 `json:"cycles"` // of the SM, a warp access; 32 warps keep the load-store unit full
}

const (
	bankWarps  = 32
	bankWindow = 8 << 10 // bytes that a pattern may span; accesses move over 8 such windows, so that none repeats the last
	bankLoop   = 128     // iterations
	bankUnroll = 4       // accesses an iteration
)

// bankKernel is one CTA of 32 warps in which every warp makes bankLoop × bankUnroll accesses of one kind at base + offset[lane] between two clock readings:
//
//	for i := range bankLoop { for j := range bankUnroll { access(window[4·(i%2) + j] + offset[lane]) } }
type bankKernel struct {
	module           *ptx.Module
	offsets, cycles  ptx.ParamPtr
	iterations, keep ptx.ParamU32
}

func newBankKernel(kind string) (*bankKernel, error) {
	k := ptx.New("banks", bankWarps*32, 1)
	b := &bankKernel{offsets: k.ParamPtr("offsets"), cycles: k.ParamPtr("cycles"), iterations: k.ParamU32("iterations"), keep: k.ParamU32("keep")}
	shared := k.Shared("windows", 2*bankUnroll*bankWindow, 1024).Addr()
	zero := k.U32(0)
	for i := range 2 * bankUnroll * bankWindow / (bankWarps * 32 * 16) { // every byte is written before it is read
		shared.At(k.Tid().Times(16)).Plus(i * bankWarps * 32 * 16).StoreU32x4([4]ptx.U32{zero, zero, zero, zero})
	}
	at := shared.At(b.offsets.At(k.Lane().Times(4).U64()).LoadU32())
	sum := ptx.NewVarAt(k, ptx.Lane, zero)
	k.SyncCTA()
	begin := k.Clock()
	k.For(zero, b.iterations.U32, k.U32(1), func(i ptx.U32) {
		half := at.At(i.And(k.U32(1)).Times(bankUnroll * bankWindow))
		for j := range bankUnroll {
			access(kind, half.Plus(j*bankWindow), sum)
		}
	})
	k.SyncCTA()
	took := k.Clock().Sub(begin)
	// The sum is stored where keep says so, which is never: without a use the compiler would drop the loads.
	k.If(b.keep.Ne(zero), func() { b.cycles.At(k.Tid().Times(4).U64()).StoreU32(sum.Get()) })
	k.If(k.Tid().Eq(zero), func() { b.cycles.StoreU32(took) })
	e, err := k.Build()
	b.module = &ptx.Module{Entries: []*ptx.Entry{e}}
	return b, err
}

// access emits one access and adds what it read to sum, all of it: a load whose parts are unused would be narrowed.
func access(kind string, at ptx.SAddr, sum *ptx.Var[ptx.U32]) {
	s := sum.Get()
	switch kind {
	case "ld 4 B":
		sum.Set(s.Add(at.LoadU32()))
	case "ld 8 B":
		x := at.LoadF32x2()
		sum.Set(s.Add(x[0].Add(x[1]).Bits()))
	case "ld 16 B":
		x := at.LoadF32x4()
		sum.Set(s.Add(x[0].Add(x[1]).Add(x[2]).Add(x[3]).Bits()))
	case "ldmatrix", "ldmatrix trans":
		load := at.LoadMatrix4
		if kind == "ldmatrix trans" {
			load = at.LoadMatrix4T
		}
		x := load()
		sum.Set(s.Add(x[0]).Add(x[1]).Add(x[2]).Add(x[3]))
	case "st 4 B":
		at.StoreU32(s)
	case "st 8 B":
		at.StoreF32x2([2]ptx.F32{s.FloatBits(), s.FloatBits()})
	case "st 16 B":
		at.StoreU32x4([4]ptx.U32{s, s, s, s})
	case "stmatrix":
		at.StoreMatrix4([4]ptx.U32{s, s, s, s})
	case "stmatrix trans":
		at.StoreMatrix4T([4]ptx.U32{s, s, s, s})
	}
}

// pattern is the offsets of a warp's lanes.
type pattern struct {
	name    string
	offsets [tile.Lanes]int
}

// bankWidth is the bytes a lane's address stands for.
func bankWidth(kind string) int {
	switch kind {
	case "ld 4 B", "st 4 B":
		return 4
	case "ld 8 B", "st 8 B":
		return 8
	}
	return 16
}

// bankPatterns are the textbook cases and random ones: lane l reads column 0 of row l at each pitch, plain and swizzled (16-byte kinds: rows l%8 of a tile each for l/8), and random addresses
// of the kind's width drawn from 1, 2, … up to all places of the window, so that broadcasts and conflicts of every degree occur.
func bankPatterns(kind string, random int) []pattern {
	w := bankWidth(kind)
	var all []pattern
	line := pattern{name: "consecutive"}
	for l := range line.offsets {
		line.offsets[l] = l * w
	}
	all = append(all, line)
	swizzles := map[int]ptx.Swizzle{128: ptx.Swizzle128, 64: ptx.Swizzle64, 32: ptx.Swizzle32}
	for _, pitch := range []int{128, 64, 32} {
		plain, mixed := pattern{name: fmt.Sprintf("pitch %d", pitch)}, pattern{name: fmt.Sprintf("pitch %d swizzled", pitch)}
		for l := range plain.offsets {
			o := l%8*pitch + l/8*1024 // four columns of eight rows, in tiles of their own
			plain.offsets[l], mixed.offsets[l] = o, int(swizzles[pitch].Apply(uint32(o)))
		}
		all = append(all, plain, mixed)
	}
	rng := rand.New(rand.NewPCG(uint64(w), uint64(len(kind))))
	for i := range random {
		p, places := pattern{name: fmt.Sprintf("random %d", i)}, 1<<(1+i%9)
		spread := 1 << rng.IntN(4) // a power of two between places makes conflicts likely
		for l := range p.offsets {
			p.offsets[l] = rng.IntN(places) * spread * w % bankWindow
		}
		all = append(all, p)
	}
	return all
}

// Banks measures every kind on every pattern.
func Banks(run ptx.Runner, random int, each func(BankResult)) error {
	for _, kind := range AccessKinds() {
		k, err := newBankKernel(kind)
		if err != nil {
			return err
		}
		for _, p := range bankPatterns(kind, random) {
			r, err := k.measure(run, kind, p, bankLoop)
			if err != nil {
				return fmt.Errorf("bench: %s, %s: %w", kind, p.name, err)
			}
			each(r)
		}
	}
	return nil
}

func (k *bankKernel) measure(run ptx.Runner, kind string, p pattern, loop int) (BankResult, error) {
	report, err := tile.Access{Addr: p.offsets, Width: bankWidth(kind)}.Conflicts()
	if err != nil {
		return BankResult{}, err
	}
	r := BankResult{Kind: kind, Pattern: p.name, Model: report.Wavefronts, Offsets: p.offsets[:]}
	offsets, out := &ptx.Buffer{Name: "offsets"}, &ptx.Buffer{Name: "cycles", Data: make([]byte, bankWarps*32*4)}
	for _, o := range p.offsets {
		offsets.Data = binary.LittleEndian.AppendUint32(offsets.Data, uint32(o))
	}
	best := uint32(1<<32 - 1)
	for range 2 { // the first run fetches the instructions
		a := k.module.Entries[0].NewArgs()
		k.offsets.Put(a, offsets, 0)
		k.cycles.Put(a, out, 0)
		k.iterations.Put(a, uint32(loop))
		k.keep.Put(a, 0)
		if err := run.Run(k.module, ptx.Launch{Entry: "banks", Grid: ptx.Dim3{X: 1}}, a); err != nil {
			return r, err
		}
		best = min(best, binary.LittleEndian.Uint32(out.Data))
	}
	r.Cycles = float64(best) / float64(loop*bankUnroll*bankWarps)
	return r, nil
}
