package gemm

import (
	"testing"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
	"heddle/ptx/emulate"
	"heddle/tile"
)

// What heddle tile epilogue says of an element is where the kernel has it on the emulator, for every element of the tile: the accumulator register, the lane whose
// address stores it, the swizzled byte, the TMA box. Elements are told apart by running the kernel once a bit of their number, with that bit as the product.
func TestEveryElementTakesTheWayThatTileFollows(t *testing.T) {
	for _, c := range []Config{
		{BM: 128, BN: 256, BK: 64, Stages: 2, Consumers: 2, ClusterM: 1, ClusterN: 1},
		{BM: 128, BN: 256, BK: 64, Stages: 2, Consumers: 2, ClusterM: 1, ClusterN: 1, In: num.F16},
		{BM: 128, BN: 256, BK: 64, Stages: 2, Consumers: 2, ClusterM: 1, ClusterN: 1, Out: num.F32},
		{BM: 256, BN: 128, BK: 64, Stages: 2, Consumers: 2, ClusterM: 1, ClusterN: 1},
	} {
		t.Run(c.String(), func(t *testing.T) {
			g := build(t, c)
			c = g.Config
			fit := tile.H200().Fit(tile.Choice{BM: c.BM, BN: c.BN, BK: c.BK, In: 2, Out: c.Out.Size(), Warpgroups: 2, Buffers: c.Buffers})
			e, err := fit.Epilogue(false)
			if err != nil {
				t.Fatal(err)
			}
			s := stations{t: t, c: c, e: e, seen: map[string]int{}, bytes: map[int]int{}, stores: map[int]int{}}
			for _, r := range g.Entry.Regions {
				if r.Name == "D" {
					s.base, s.end = r.Off, r.Off+r.Bytes
				}
			}
			s.run(g)
			for i := range s.events {
				s.check(&s.events[i])
			}
			for _, what := range []string{"register", "store", "box"} {
				if s.seen[what] != c.BM*c.BN {
					t.Errorf("%d elements pass a %s, want %d", s.seen[what], what, c.BM*c.BN)
				}
			}
		})
	}
}

// stations follows a tile's elements: their numbers are row·BN + column.
type stations struct {
	t         *testing.T
	c         Config
	e         tile.Epilogue
	base, end int // the store buffers, in shared memory
	events    []station
	seen      map[string]int
	bytes     map[int]int // number of the element that lies at a byte of shared memory now
	stores    map[int]int // stmatrix so far, by warp
}

type station struct {
	emulate.Event
	ids []int // of the elements in Words
}

// run executes the kernel once a bit and puts the elements' numbers together.
func (s *stations) run(g *Gemm) {
	for bit := 0; 1<<bit < s.c.BM*s.c.BN; bit++ {
		x := &Exact{M: s.c.BM, N: s.c.BN, K: s.c.BK}
		x.a, x.b = make([]float32, x.M*x.K), make([]float32, x.N*x.K)
		one := func(of []float32, i, shift int, here bool) {
			if of[i*x.K] = 1; here {
				of[i*x.K] = float32(i >> shift & 1)
			}
		}
		columns := 1<<bit < s.c.BN
		for m := range x.M {
			one(x.a, m, bit-log2(s.c.BN), !columns)
		}
		for n := range x.N {
			one(x.b, n, bit, columns)
		}
		k, err := x.Case(g, 1)
		if err != nil {
			s.t.Fatal(err)
		}
		n := 0
		watch := func(v emulate.Event) {
			if bit == 0 {
				s.events = append(s.events, station{Event: v, ids: make([]int, len(v.Words)*4/s.size(v))})
			}
			s.add(&s.events[n], v, bit)
			n++
		}
		if err := (emulate.Emulator{Seed: 1, Watch: watch}).Run(g.Module(), k.Launch, k.Args); err != nil {
			s.t.Fatal(err)
		}
	}
}

// size is the bytes of an element in an event: a register holds float32.
func (s *stations) size(v emulate.Event) int {
	if v.Off < 0 {
		return 4
	}
	return s.c.Out.Size()
}

func (s *stations) add(to *station, v emulate.Event, bit int) {
	if to.In != v.In || to.Warp != v.Warp || to.Lane != v.Lane || to.Off != v.Off {
		s.t.Fatalf("the schedule depends on the data: %v", v)
	}
	per := 4 / s.size(v)
	for i := range to.ids {
		if v.Words[i/per]>>(32/per*(i%per))&(1<<(32/per)-1) != 0 { // the product is 0 or 1, in any type
			to.ids[i] |= 1 << bit
		}
	}
}

func (s *stations) check(v *station) {
	switch {
	case v.Off < 0:
		s.register(v)
	case v.Off < s.base || v.Off >= s.end:
	case v.Words == nil:
		s.box(v)
	default:
		s.store(v)
	}
}

func (s *stations) follow(id int) tile.Step {
	step, err := s.e.Follow(id/s.c.BN, id%s.c.BN)
	if err != nil {
		s.t.Fatal(err)
	}
	return step
}

// register: the thread and the accumulator register that the element is read from.
func (s *stations) register(v *station) {
	want := s.follow(v.ids[0])
	group, value := v.Warp/4-1, int(v.In.Src[1].Imm())
	if group != want.Warpgroup || v.Warp%4 != want.Warp || v.Lane != want.Lane || value != want.Value {
		s.t.Fatalf("element %d is in warpgroup %d, warp %d, lane %d, register %d, want %+v", v.ids[0], group, v.Warp%4, v.Lane, value, want)
	}
	s.seen["register"]++
}

// store: whose address stores it, with which instruction, from which of its matrices, and to which byte.
func (s *stations) store(v *station) {
	matrix := v.In.Op == ptx.OpStMatrix4
	for i, id := range v.ids {
		want := s.follow(id)
		at := v.Off + i*s.c.Out.Size() - s.base
		chunk, group := want.Chunk%s.c.Buffers, at/(s.c.Buffers*kernel.StoreBytes)
		if s.e.Rows > 64 {
			chunk = (want.Row%s.e.Rows/64*(s.c.BN/s.e.ChunkCols) + want.Chunk) % s.c.Buffers
		}
		if group != want.Warpgroup || at/kernel.StoreBytes%s.c.Buffers != chunk || at%kernel.StoreBytes != want.Byte || at/4%tile.Banks != want.Bank || v.Warp%4 != want.Warp || v.Lane != want.Addresser {
			s.t.Fatalf("element %d: lane %d of warp %d stores it at byte %d, want %+v", id, v.Lane, v.Warp, at, want)
		}
		unit := s.stores[v.Warp] / 32 % (s.c.BN / 16)
		if matrix && (v.Lane/8 != want.Matrix || unit != want.Unit) {
			s.t.Fatalf("element %d: matrix %d of stmatrix %d, want %+v", id, v.Lane/8, unit, want)
		}
		s.bytes[v.Off+i*s.c.Out.Size()] = id
		s.seen["store"]++
	}
	s.stores[v.Warp]++
}

// box: the coordinates of the box that takes it, and its place in the box.
func (s *stations) box(v *station) {
	for at := v.Off; at < v.Off+kernel.StoreBytes; at += s.c.Out.Size() {
		id, ok := s.bytes[at]
		want := s.follow(id)
		if !ok || v.At[0] != want.BoxCol || v.At[1] != want.BoxRow || id%s.c.BN != want.BoxCol+want.InBoxCol || id/s.c.BN != want.BoxRow+want.InBoxRow {
			s.t.Fatalf("byte %d, element %d: the box starts at (%d,%d), want %+v", at-s.base, id, v.At[1], v.At[0], want)
		}
		delete(s.bytes, at)
		s.seen["box"]++
	}
}
