package signature

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"heddle/num"
	"heddle/ptx"
)

// product is a made-up kernel: d [m, n] = a [m, k] · b [n, k]ᵀ · alpha, with a through a tensor map and rows of b a pitch apart.
type product struct {
	A, B, D Tensor
	Alpha   float32
}

// block is a launch that remembers what it was told.
type block struct {
	words  map[int]uint64
	maps   map[int]uint64
	queued []uintptr
	refuse error
	moves  int
}

func (b *block) SetWord(i int, v uint64)      { b.words[i] = v }
func (b *block) SetMap(i int, v uint64) error { b.maps[i] = v; b.moves++; return b.refuse }
func (b *block) Queue(s uintptr) error        { b.queued = append(b.queued[:0], s); return nil }

// now is where parameter i points.
func (b *block) now(i int) uint64 {
	if at, ok := b.maps[i]; ok {
		return at
	}
	return b.words[i]
}

type stream uintptr

func (s stream) Handle() uintptr { return uintptr(s) }

// declared is the signature of the kernel, its entry, and the loader's record of launches laid out.
func declared(t testing.TB) (*Signature[product], *ptx.Entry, func(ptx.Launch, *ptx.Args) (Block, error), *[]*block) {
	t.Helper()
	kb := ptx.New("product", 128, 1)
	pa, pb, pd, rows, alpha := kb.ParamMap("a"), kb.ParamPtr("b"), kb.ParamPtr("d"), kb.ParamU32("rows"), kb.ParamF32("alpha")
	entry, err := kb.Build()
	if err != nil {
		t.Fatal(err)
	}
	s := New[product]("product")
	m, n, k, pitch := s.Size("m", 1), s.Size("n", 4), s.Size("k", 8), s.Size("pitch", 16)
	a := s.Tensor("A", func(p *product) *Tensor { return &p.A }, Spec{Type: num.BF16, Dims: []Size{m, k}, Align: 16})
	b := s.Tensor("B", func(p *product) *Tensor { return &p.B }, Spec{Type: num.BF16, Dims: []Size{n, k}, Strides: []Size{pitch, {}}})
	d := s.Tensor("D", func(p *product) *Tensor { return &p.D }, Spec{Type: num.F32, Dims: []Size{m, n}, Order: []int{1, 0}})
	s.F32("alpha", func(p *product) *float32 { return &p.Alpha })
	s.Plan(func(x *Shape) (ptx.Launch, *ptx.Args, error) {
		args := entry.NewArgs()
		pa.Put(args, &ptx.Map{Type: num.BF16, Buffer: x.Buffer(a), Dims: []int{x.Size(k), x.Size(m)}, Strides: []int{2 * x.Size(k)}, Box: []int{64, 64}, Swizzle: ptx.Swizzle128})
		pb.Put(args, x.Buffer(b), 4)
		pd.Put(args, x.Buffer(d), 0)
		rows.Put(args, uint32(x.Size(m)))
		alpha.Put(args, 0)
		return ptx.Launch{Entry: "product", Grid: ptx.Dim3{X: x.Size(m) * x.Size(pitch)}}, args, nil
	})
	var made []*block
	return s, entry, func(l ptx.Launch, args *ptx.Args) (Block, error) {
		if l.Grid.X == 13*16 {
			return nil, errors.New("no such grid")
		}
		bl := &block{words: map[int]uint64{}, maps: map[int]uint64{}, queued: make([]uintptr, 0, 1)}
		for i := range args.Len() {
			a := args.At(i)
			bl.words[i] = a.Bits
			if a.Map != nil {
				bl.maps[i] = a.Map.Buffer.Device
			} else if a.Buffer != nil {
				bl.words[i] = a.Buffer.Device + uint64(a.Offset)
			}
		}
		made = append(made, bl)
		return bl, nil
	}, &made
}

// right are arguments that pass.
func right(m, n, k int) *product {
	p := &product{A: Packed(0x1000, num.BF16, m, k), B: Packed(0x2002, num.BF16, n, k), D: Packed(0x3000, num.F32, n, m), Alpha: 2}
	p.B.Strides[0] = (k + 15) / 16 * 16
	p.D.Dims, p.D.Strides = [MaxRank]int{m, n}, [MaxRank]int{1, m}
	return p
}

func TestLaunchPacksAddressesAndScalars(t *testing.T) {
	s, entry, load, made := declared(t)
	h, err := s.Bind(entry, load)
	if err != nil {
		t.Fatal(err)
	}
	p := right(3, 8, 24)
	if err := h.Launch(stream(7), p); err != nil {
		t.Fatal(err)
	}
	p.Alpha = 1.5
	if err := h.Launch(stream(9), p); err != nil { // the same place: nothing but the scalar changes
		t.Fatal(err)
	}
	b := (*made)[0]
	if len(*made) != 1 || b.moves != 0 || b.words[4] != 0x3fc00000 || b.words[3] != 3 || b.queued[0] != 9 {
		t.Errorf("%d laid out, block %+v", len(*made), b)
	}
	// Other sizes lay out another launch; the first sizes find theirs again.
	for _, m := range []int{3, 4, 3} {
		if err := h.Launch(stream(1), right(m, 8, 24)); err != nil {
			t.Fatal(err)
		}
	}
	if len(*made) != 2 || (*made)[1].words[3] != 4 {
		t.Errorf("%d laid out, rows %d", len(*made), (*made)[1].words[3])
	}
	if err := h.Launch(stream(1), right(13, 8, 16)); err == nil || !strings.Contains(err.Error(), "no such grid") {
		t.Errorf("a loader's error became %v", err)
	}
}

// A launch keeps some places and moves between the rest: whatever was launched before, the block that is queued has the addresses of the call.
func TestTensorsInEverChangingPlaces(t *testing.T) {
	s, entry, load, made := declared(t)
	h, err := s.Bind(entry, load)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		p := right(3, 8, 24)
		p.A.Addr, p.B.Addr, p.D.Addr = 16*uint64(rng.IntN(12)+1), 2*uint64(rng.IntN(12)+1), 4*uint64(rng.IntN(12)+1)
		if err := h.Launch(stream(i), p); err != nil {
			t.Fatal(err)
		}
		var got *block
		for _, b := range *made {
			if len(b.queued) > 0 && b.queued[0] == uintptr(i) {
				got = b
			}
		}
		if i == 0 {
			continue // stream 0 is every block's first
		}
		if got == nil || got.now(0) != p.A.Addr || got.now(1) != p.B.Addr+4 || got.now(2) != p.D.Addr {
			t.Fatalf("launch %d of %#x %#x %#x queued %+v", i, p.A.Addr, p.B.Addr, p.D.Addr, got)
		}
	}
	moves := 0
	for _, b := range *made {
		moves += b.moves
	}
	if len(*made) > 1<<placeBits || len(*made) < 1<<placeBits/2 || moves < 1000 {
		t.Errorf("%d places, %d moves", len(*made), moves)
	}
	(*made)[0].refuse = errors.New("cannot move")
	for i := range 200 {
		p := right(3, 8, 24)
		p.A.Addr = 0x10000 + 16*uint64(i)
		err = errors.Join(err, h.Launch(stream(1), p))
	}
	if !errors.Is(err, (*made)[0].refuse) {
		t.Errorf("a refused move became %v", err)
	}
}

// Every way of being wrong is refused, and the sentence has the symbol and both values.
func TestWrongArgumentsAreRefusedBySymbolAndValues(t *testing.T) {
	s, entry, load, made := declared(t)
	h, err := s.Bind(entry, load)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want  string
		wrong func(p *product)
	}{
		{"k is 24 in A [m, k] but 32 in B [n, k]", func(p *product) { p.B = Packed(0x2000, num.BF16, 8, 32) }},
		{"m is 3 in A [m, k] but 5 in D [m, n]", func(p *product) { p.D.Dims[0] = 5 }},
		{"n is 6 in B [n, k], want a multiple of 4", func(p *product) { p.B.Dims[0], p.D.Dims[1] = 6, 6 }},
		{"k is 20 in A [m, k], want a multiple of 8", func(p *product) { p.A = Packed(0x1000, num.BF16, 3, 20); p.B.Dims[1] = 20 }},
		{"pitch is 24 in B [n, k], want a multiple of 16", func(p *product) { p.B.Strides[0] = 24 }},
		{"A is f16, want bf16", func(p *product) { p.A.Type = num.F16 }},
		{"A has 1 dims, want 2: A [m, k]", func(p *product) { p.A = Packed(0x1000, num.BF16, 72) }},
		{"A lies at 0x1008, want a multiple of 16 bytes", func(p *product) { p.A.Addr += 8 }},
		{"B lies at 0x2001, want a multiple of 2 bytes", func(p *product) { p.B.Addr = 0x2001 }},
		{"D has no address", func(p *product) { p.D.Addr = 0 }},
		{"m is 0 in A [m, k], want 1 or more", func(p *product) { p.A.Dims[0] = 0 }},
		{"k is -1 in A [m, k], want 1 or more", func(p *product) { p.A.Dims[1] = -1 }},
		{"A has strides [48 1] for dims [3 24], that of dim 0 does not fit; want dim 1 without a gap, around it dim 0 without a gap", func(p *product) { p.A.Strides[0] = 48 }},
		{"B has strides [16 1] for dims [8 24], that of dim 0 does not fit; want dim 1 without a gap, around it dim 0 every pitch", func(p *product) { p.B.Strides[0] = 16 }},
		{"D has strides [8 1] for dims [3 8], that of dim 0 does not fit; want dim 0 without a gap, around it dim 1", func(p *product) { p.D.Strides = [MaxRank]int{8, 1} }},
	} {
		p := right(3, 8, 24)
		c.wrong(p)
		if err := h.Launch(stream(1), p); err == nil || !strings.Contains(err.Error(), "signature: product: "+c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	if len(*made) != 0 {
		t.Errorf("%d launches laid out for wrong arguments", len(*made))
	}
	if err := h.Launch(stream(1), right(3, 8, 24)); err != nil {
		t.Errorf("right arguments refused afterwards: %v", err)
	}
}

// bind, which only says yes or no, and refusal, which finds the words, are two programs for one rule. Every small change of right arguments must find them agreed.
func TestRefusalFindsWhatBindRefuses(t *testing.T) {
	s, _, _, _ := declared(t)
	values := []int{-1, 0, 1, 2, 3, 4, 8, 15, 16, 24, 32, 1 << 40}
	refused := 0
	for field := range 3 {
		for what := range 4 {
			for _, v := range values {
				p := right(3, 8, 24)
				x := []*Tensor{&p.A, &p.B, &p.D}[field]
				switch what {
				case 0, 1:
					x.Dims[what] = v
				default:
					x.Strides[what-2] = v
				}
				var sizes [maxSizes]int
				ok, err := s.bind(p, &sizes), s.refusal(p)
				if none := strings.Contains(err.Error(), "no fault found"); none != ok {
					t.Errorf("tensor %d, change %d to %d: bind says %v, refusal %v", field, what, v, ok, err)
				}
				if !ok {
					refused++
				}
			}
		}
	}
	if refused < 100 {
		t.Errorf("only %d of 144 changes refused", refused)
	}
}

func TestSingleElementsHaveAnyStride(t *testing.T) {
	s, _, _, _ := declared(t)
	p := right(1, 8, 24)
	p.A.Strides[0], p.D.Strides[0] = 999, 77
	p.D.Strides[1] = 1
	var sizes [maxSizes]int
	if !s.bind(p, &sizes) {
		t.Error(s.refusal(p))
	}
}

func TestDeclarationsThatMakeNoSense(t *testing.T) {
	good, entry, load, _ := declared(t)
	elsewhere := new(Tensor)
	m := Size{symbol: 1}
	for want, declare := range map[string]func(s *Signature[product]){
		"outside of the arguments": func(s *Signature[product]) {
			s.Tensor("X", func(*product) *Tensor { return elsewhere }, Spec{Type: num.F32, Dims: []Size{m}})
		},
		"order [0 0] is none of its": func(s *Signature[product]) {
			s.Tensor("X", aOf, Spec{Type: num.F32, Dims: []Size{m, m}, Order: []int{0, 0}})
		},
		"0 dims": func(s *Signature[product]) { s.Tensor("X", aOf, Spec{Type: num.F32}) },
		"1 strides": func(s *Signature[product]) {
			s.Tensor("X", aOf, Spec{Type: num.F32, Dims: []Size{m, m}, Strides: []Size{m}})
		},
		"divisor 0":                  func(s *Signature[product]) { s.Size("z", 0) },
		"no parameter beta":          func(s *Signature[product]) { s.F32("beta", func(p *product) *float32 { return &p.Alpha }) },
		"no parameter rows":          func(s *Signature[product]) { s.F32("rows", func(p *product) *float32 { return &p.Alpha }) },
		"z is a dimension or stride": func(s *Signature[product]) { s.Size("z", 1) },
	} {
		s := *good
		declare(&s)
		if _, err := s.Bind(entry, load); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := New[product]("empty").Bind(entry, load); err == nil {
		t.Error("a signature without tensors was bound")
	}
}

func aOf(p *product) *Tensor { return &p.A }

// A launch of sizes that were met before costs no allocation, whether or not its tensors have moved.
func TestLaunchAllocatesNothing(t *testing.T) {
	s, entry, load, _ := declared(t)
	h, err := s.Bind(entry, load)
	if err != nil {
		t.Fatal(err)
	}
	at := uint64(0x10000)
	to := stream(1)
	var on Stream = to // as *cuda.Stream, a pointer, would be: boxed once
	launch := func() {
		at += 16
		p := product{A: Packed(at, num.BF16, 3, 24), B: Packed(at, num.BF16, 8, 24), D: Packed(at, num.F32, 8, 3), Alpha: float32(at)}
		p.B.Strides[0] = 32
		p.D.Dims, p.D.Strides = [MaxRank]int{3, 8}, [MaxRank]int{1, 3}
		if at%32 == 0 {
			p.A.Dims[0], p.D.Dims[0], p.D.Strides[1] = 5, 5, 5
		}
		if err := h.Launch(on, &p); err != nil {
			t.Fatal(err)
		}
	}
	for range 4000 { // every place that is kept has been met
		launch()
	}
	if n := testing.AllocsPerRun(1000, launch); n != 0 {
		t.Errorf("%v allocations a launch", n)
	}
}

func TestManySizesAreForgottenNotKept(t *testing.T) {
	s, entry, load, made := declared(t)
	h, err := s.Bind(entry, load)
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxLaid + 10 {
		if err := h.Launch(stream(1), right(20+i, 8, 24)); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.laid) > maxLaid || len(*made) != maxLaid+10 {
		t.Errorf("%d kept, %d laid out", len(h.laid), len(*made))
	}
}

// quiet is a launch that does nothing: what is left is our side of it.
type quiet struct{ word uint64 }

func (q *quiet) SetWord(_ int, v uint64)      { q.word = v }
func (q *quiet) SetMap(_ int, v uint64) error { q.word = v; return nil }
func (q *quiet) Queue(uintptr) error          { return nil }

func BenchmarkLaunch(b *testing.B) {
	for _, moved := range []bool{false, true} {
		b.Run(fmt.Sprintf("moved=%v", moved), func(b *testing.B) {
			s, entry, _, _ := declared(b)
			h, err := s.Bind(entry, func(ptx.Launch, *ptx.Args) (Block, error) { return new(quiet), nil })
			if err != nil {
				b.Fatal(err)
			}
			var on Stream = stream(1)
			p := right(3, 8, 24)
			b.ReportAllocs()
			for b.Loop() {
				if moved {
					p.A.Addr += 16
				}
				if err := h.Launch(on, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
