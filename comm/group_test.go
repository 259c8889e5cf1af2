package comm_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"heddle/comm"
	commdry "heddle/comm/dry"
	"heddle/compute"
	"heddle/compute/dry"
	"heddle/mesh"
	"heddle/tensor"
	"heddle/train"
)

const kv, rep = mesh.Set(1), mesh.Set(2)

// four is a mesh of four ranks: two key/value heads, two copies of each.
func four(t *testing.T) *mesh.Mesh {
	t.Helper()
	m, err := mesh.New(mesh.Axis{Name: "cp.kv", Size: 2}, mesh.Axis{Name: "cp.rep", Size: 2})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// whole is a tensor's value by its indices, outermost first.
type whole struct {
	letters string
	dims    []int
}

func (w whole) value(idx []int) float64 {
	v := 0.0
	for i, n := range w.dims {
		v = v*float64(n) + float64(idx[i])
	}
	return v + float64(len(w.letters))*1000
}

// part is what a rank holds of w at a place: the block of each cut dim, axes outer first.
func (w whole) part(m *mesh.Mesh, rank int, at mesh.Places, scale float64) (dims []int, v []float64) {
	c := m.Coord(rank)
	lo := make([]int, len(w.dims))
	dims = append(dims, w.dims...)
	for a, axis := range m.Axes() {
		if i := strings.IndexByte(w.letters, at[a].Letter()); at[a].Sharded() && i >= 0 {
			dims[i] /= axis.Size
			lo[i] += c[a] * dims[i]
		}
	}
	n := 1
	for _, d := range dims {
		n *= d
	}
	for e := range n {
		idx, x := make([]int, len(dims)), e
		for i := len(dims) - 1; i >= 0; i-- {
			idx[i], x = lo[i]+x%dims[i], x/dims[i]
		}
		v = append(v, scale*w.value(idx))
	}
	return dims, v
}

func (w whole) on(r *train.Rank, at mesh.Places, scale float64) tensor.Tensor {
	dims, v := w.part(r.Dev.Mesh, r.Index, at, scale)
	t := r.Dev.New(tensor.F64, w.letters, dims, at)
	r.Dev.Upload(t, v)
	return t
}

// is compares a rank's tensor with its part of w at the place.
func (w whole) is(r *train.Rank, got tensor.Tensor, at mesh.Places, scale float64) error {
	dims, want := w.part(r.Dev.Mesh, r.Index, at, scale)
	if got.At != at || fmt.Sprint(got.Dims) != fmt.Sprint(dims) || got.Letters != w.letters {
		return fmt.Errorf("%s %v, want %s %v", r.Dev.Describe(got), got.Dims, r.Dev.Mesh.String(at), dims)
	}
	for i, v := range r.Dev.Download(got) {
		if v != want[i] {
			return fmt.Errorf("%s: element %d is %v, want %v", w.letters, i, v, want[i])
		}
	}
	return nil
}

func on(t *testing.T, m *mesh.Mesh, f func(r *train.Rank) error) {
	t.Helper()
	if err := train.Ranks(m, train.Machine{Type: tensor.F64, Threads: 1}, f); err != nil {
		t.Fatal(err)
	}
}

// A gather of any dim undoes the cut, a reduce-scatter leaves the cut of the sum: over one axis, and over two at once.
func TestGatherAndScatterOfEveryDim(t *testing.T) {
	m := four(t)
	w := whole{"bsh", []int{4, 8, 4}}
	for _, axes := range []mesh.Set{kv, rep, kv | rep} {
		for _, letter := range []byte("bsh") {
			on(t, m, func(r *train.Rank) error {
				at := m.Uniform(mesh.R)
				cut := at.With(axes, mesh.S(letter))
				held := r.Dev.Memory().Held
				x := w.on(r, cut, 1)
				y := r.Grp.AllGather("gather", x, axes, letter)
				if err := w.is(r, y, at, 1); err != nil {
					return err
				}
				// Each rank's part of the sum is scale times the whole; they sum to Σ scales.
				p := w.on(r, at.With(axes, mesh.P), float64(1+m.Index(r.Index, axes)))
				z := r.Grp.ReduceScatter("scatter", p, axes, letter)
				n := m.Count(axes)
				if err := w.is(r, z, cut, float64(n*(n+1)/2)); err != nil {
					return err
				}
				s := r.Grp.AllReduce("sum", p, axes, mesh.I)
				if err := w.is(r, s, at.With(axes, mesh.I), float64(n*(n+1)/2)); err != nil {
					return err
				}
				q := p
				q.At = at.With(axes, mesh.M)
				if err := w.is(r, r.Grp.AllReduceMax("max", q, axes), at.With(axes, mesh.I), float64(n)); err != nil {
					return err
				}
				r.Dev.Free(x, y, p, z, s)
				if now := r.Dev.Memory().Held; now != held+w.bytes() { // the maximum is left
					return fmt.Errorf("%d bytes of staging are left", now-held-w.bytes())
				}
				return nil
			})
		}
	}
}

func (w whole) bytes() int {
	n := 8
	for _, d := range w.dims {
		n *= d
	}
	return n
}

// ToHeads makes head shards of token shards and copies what has no r; ToTokens is its transpose and sums the copies.
func TestToHeadsAndToTokensAreTransposes(t *testing.T) {
	m := four(t)
	h := comm.Heads{KV: kv, Rep: rep}
	q, k := whole{"bsgrd", []int{2, 8, 4, 2, 3}}, whole{"bsgd", []int{2, 8, 4, 3}}
	tokens := m.Uniform(mesh.S('s'))
	heads := mesh.Places{mesh.S('g'), mesh.S('r')}
	copied, parts := mesh.Places{mesh.S('g'), mesh.R}, mesh.Places{mesh.S('g'), mesh.P}
	on(t, m, func(r *train.Rank) error {
		out := r.Grp.ToHeads("heads", h, q.on(r, tokens, 1), k.on(r, tokens, 1))
		if err := errors.Join(q.is(r, out[0], heads, 1), k.is(r, out[1], copied, 1)); err != nil {
			return err
		}
		c := m.Coord(r.Index)
		back := r.Grp.ToTokens("tokens", h, q.on(r, heads, 1), k.on(r, parts, float64(10+c[1]))) // copies 10 and 11 times the whole
		return errors.Join(q.is(r, back[0], tokens, 1), k.is(r, back[1], tokens, 21))
	})
}

func TestSendRecvBroadcastAndVariableAllToAll(t *testing.T) {
	m := four(t)
	w := whole{"xy", []int{3, 2}}
	every := m.Every()
	on(t, m, func(r *train.Rank) error {
		at := m.Uniform(mesh.R)
		x := w.on(r, at, float64(r.Index))
		r.Grp.Broadcast("broadcast", x, every, 2)
		if err := w.is(r, x, at, 2); err != nil {
			return err
		}
		y := w.on(r, at, float64(r.Index))
		switch r.Index {
		case 0:
			r.Grp.Send("hop", y, every, 3)
		case 3:
			r.Grp.Recv("hop", y, every, 0)
			if err := w.is(r, y, at, 0); err != nil {
				return err
			}
		}
		r.Grp.Barrier("barrier", every)
		// Rank i sends j+1 rows to rank j: each receives its own index + 1 from every rank.
		rows := whole{"xy", []int{1 + 2 + 3 + 4, 2}}
		send, recv := []int{1, 2, 3, 4}, []int{r.Index + 1, r.Index + 1, r.Index + 1, r.Index + 1}
		z := r.Grp.AllToAllV("experts", rows.on(r, at, float64(r.Index+1)), every, send, recv)
		_, all := rows.part(m, r.Index, at, 1)
		at0, got := r.Index*(r.Index+1)/2, r.Dev.Download(z)
		for from := range 4 {
			for i := range (r.Index + 1) * 2 {
				if want := float64(from+1) * all[at0*2+i]; got[from*(r.Index+1)*2+i] != want {
					return fmt.Errorf("from %d element %d is %v, want %v", from, i, got[from*(r.Index+1)*2+i], want)
				}
			}
		}
		return nil
	})
}

func TestCollectivesRefuseWrongPlacesAndSizes(t *testing.T) {
	m := four(t)
	dev := compute.New(m, 0, tensor.F64, dry.Leaf{})
	g := comm.New(dev, commdry.Leaf{})
	h := comm.Heads{KV: kv, Rep: rep}
	x := func(p mesh.Place, letters string, dims ...int) tensor.Tensor {
		return dev.New(tensor.F64, letters, dims, m.Uniform(p))
	}
	for name, f := range map[string]func(){
		"sum of whole":           func() { g.AllReduce("here", x(mesh.R, "x", 4), kv, mesh.I) },
		"sum of invariant":       func() { g.AllReduce("here", x(mesh.I, "x", 4), kv, mesh.I) },
		"sum of maxima":          func() { g.AllReduce("here", x(mesh.M, "x", 4), kv, mesh.I) },
		"sum to a shard":         func() { g.AllReduce("here", x(mesh.P, "x", 4), kv, mesh.S('x')) },
		"maximum of parts":       func() { g.AllReduceMax("here", x(mesh.P, "x", 4), kv) },
		"gather of whole":        func() { g.AllGather("here", x(mesh.R, "x", 4), kv, 'x') },
		"gather of another dim":  func() { g.AllGather("here", x(mesh.S('y'), "xy", 4, 4), kv, 'x') },
		"scatter of whole":       func() { g.ReduceScatter("here", x(mesh.R, "x", 4), kv, 'x') },
		"scatter of an odd dim":  func() { g.ReduceScatter("here", x(mesh.P, "x", 5), kv, 'x') },
		"replicate parts":        func() { g.Replicate("here", x(mesh.P, "x", 4), kv) },
		"heads of whole tokens":  func() { g.ToHeads("here", h, x(mesh.R, "bsgrd", 1, 4, 2, 2, 2)) },
		"heads that do not part": func() { g.ToHeads("here", h, x(mesh.S('s'), "bsgrd", 1, 4, 3, 2, 2)) },
		"tokens of copied heads": func() {
			g.ToTokens("here", h, dev.New(tensor.F64, "bsgd", []int{1, 4, 1, 2}, mesh.Places{mesh.S('g'), mesh.R}))
		},
		"tokens that do not part": func() {
			g.ToTokens("here", h, dev.New(tensor.F64, "bsgrd", []int{1, 5, 1, 1, 2}, mesh.Places{mesh.S('g'), mesh.S('r')}))
		},
		"counts of other ranks": func() { g.AllToAllV("here", x(mesh.R, "xy", 4, 2), m.Every(), []int{4}, []int{4}) },
		"counts of other rows":  func() { g.AllToAllV("here", x(mesh.R, "xy", 4, 2), kv, []int{1, 1}, []int{2, 2}) },
		"negative counts":       func() { g.AllToAllV("here", x(mesh.R, "xy", 4, 2), kv, []int{5, -1}, []int{2, 2}) },
		"send to oneself":       func() { g.Send("here", x(mesh.R, "x", 4), m.Every(), 0) },
		"send to nobody":        func() { g.Send("here", x(mesh.R, "x", 4), m.Every(), 4) },
	} {
		func() {
			defer func() {
				f, ok := recover().(*compute.Fault)
				if !ok || f.Op != "here" || !strings.Contains(f.Error(), "here: ") {
					t.Errorf("%s: %v", name, f)
				}
			}()
			f()
		}()
	}
}

// A collective over no axis is nothing: the tensor itself, no call.
func TestNoAxesNoCall(t *testing.T) {
	m := four(t)
	dev := compute.New(m, 0, tensor.F64, dry.Leaf{})
	g := comm.New(dev, commdry.Leaf{})
	g.Meter = comm.NewMeter()
	x := dev.New(tensor.F64, "x", []int{4}, m.Uniform(mesh.P))
	for _, y := range []tensor.Tensor{g.AllReduce("a", x, 0, mesh.I), g.AllGather("b", x, 0, 'x'), g.ReduceScatter("c", x, 0, 'x'), g.ToHeads("d", comm.Heads{}, x)[0]} {
		if y.Alloc != x.Alloc || y.At != x.At {
			t.Errorf("got %+v", y)
		}
	}
	g.Barrier("e", 0)
	g.Broadcast("f", x, 0, 0)
	if len(g.Meter.Rows) != 0 {
		t.Errorf("calls: %v", g.Meter.Rows)
	}
}

func TestMeterSumsOverRanksAndNamesTheSlowest(t *testing.T) {
	m := four(t)
	meters := make([]*comm.Meter, m.Size())
	on(t, m, func(r *train.Rank) error {
		r.Grp.Meter = comm.NewMeter()
		meters[r.Index] = r.Grp.Meter
		r.Dev.At("forward", 3)
		x := r.Dev.New(tensor.F64, "x", []int{5}, m.Uniform(mesh.P))
		r.Dev.Zero(x)
		r.Grp.AllReduce("a", x, m.Every(), mesh.I)
		r.Grp.AllReduce("b", x, m.Every(), mesh.I)
		return nil
	})
	// Chunks of 5 over 4 ranks: 2, 2, 1, 0. A rank with a full one takes 3·2 and then 3 more, of 8 bytes.
	keys := maps.Collect(maps.All(meters[0].Rows))
	if len(keys) != 2 || keys[comm.Key{Axes: "cp", Kind: comm.AllReduceSum, Phase: "forward", Layer: 3, Site: "a"}].Wire != 72 {
		t.Errorf("rows %v", keys)
	}
	s := comm.Summarize(append(meters, nil)) // a rank that ran no step has no meter
	if len(s) != 1 || s[0].Axis != "cp" || s[0].Op != "all-reduce" || s[0].Calls != 2 || s[0].Bytes != 144 || s[0].Payload != 80 || s[0].P50 <= 0 || s[0].Max < s[0].P95 || s[0].P95 < s[0].P50 {
		t.Errorf("summary %+v", s)
	}
}
