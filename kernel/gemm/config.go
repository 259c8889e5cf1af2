package gemm

import (
	"fmt"
	"strconv"
	"strings"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Config chooses one member of the family. The zero value is none; Default is measured best for large squares.
type Config struct {
	BM, BN    int  // rows and columns of a CTA's tile
	BK        int  // depth of a stage: 64, 128 or 256 bytes of a row
	Stages    int  // stages of the ring, 2 or more
	Consumers int  // warpgroups that multiply, 1 to 3: each has BM/Consumers rows of every tile …
	PingPong  bool // … or, where set, whole tiles in turn, so that one stores while the other multiplies
	ClusterM  int  // CTAs along M of a cluster: they share tiles of B by multicast
	ClusterN  int  // CTAs along N: they share tiles of A
	Order     kernel.Order
	OneTile   bool // a cluster for each cluster tile, instead of as many as run at once
	StreamK   bool // the tiles that would not fill the device are cut along K: all clusters have equally many k steps, and sum what they have in a fixed order
	Groups    Groups
	Dynamic   bool // clusters draw their tiles from a counter instead of taking every so-manieth
	Overlap   Overlap
	Buffers   int          // store buffers of a consumer, 8 KiB each; 0: two
	L2        ptx.L2Sector // how much L2 fetches around a miss
	Peek      bool         // consumers look for the next stage a step ahead
	KeepA     bool         // asks L2 to keep A, whose rows a strip of tiles comes back to, rather than B; clusters of one
	Zigzag    bool         // every second tile of a CTA goes through K backwards, so that it starts with what L2 has just seen

	In     num.DType // of A and B: BF16, F16, TF32, E4M3 or E5M2; 0: BF16
	Out    num.DType // of D: BF16, F16 or F32; 0: In, F32 for TF32, BF16 for fp8
	Add    bool      // add the product to D instead of overwriting it; D is F32
	Blocks bool      // A and B have a factor for each block of 128 along K
	Epi    kernel.Epilogue
	TransA bool // A is stored [K, M]
	TransB bool // B is stored [K, N]
}

// Full replaces zero fields by what they stand for.
func (c Config) Full() Config {
	if c.Buffers == 0 {
		c.Buffers = 2
	}
	if c.In == 0 {
		c.In = num.BF16
	}
	if c.Out == 0 {
		c.Out = c.usualOut()
	}
	return c
}

// usualOut is the type of D where none is named.
func (c Config) usualOut() num.DType {
	switch c.In {
	case num.TF32:
		return num.F32
	case num.E4M3, num.E5M2:
		return num.BF16
	}
	return c.In
}

// elem is the bytes of an element of A and B.
func (c Config) elem() int { return c.Full().In.Size() }

// row is the bytes of a stage's row.
func (c Config) row() int { return c.BK * c.elem() }

// Like is the configuration for a product of the types, layouts, addition, epilogue and groups of another.
// Stages stay as deep in bytes.
func (c Config) Like(o Config) Config {
	c.BK = c.BK * c.elem() / o.elem()
	c.In, c.Out, c.Add, c.Blocks, c.Epi, c.Groups, c.TransA, c.TransB = o.In, o.Out, o.Add, o.Blocks, o.Epi, o.Groups, o.TransA, o.TransB
	return c
}

// Overlap is what a launch does while the one in front of it on the stream still runs.
type Overlap uint8

const (
	Serial  Overlap = iota // starts when the grid in front has ended
	Waits                  // starts as CTAs of the grid in front end, and waits before its first load
	Invites                // as Waits, and lets the next grid start as soon as it may load itself
)

// Default is the 128×256×64 tile with four stages, clusters of two and strips of eight cluster tiles.
func Default() Config {
	return Config{BM: 128, BN: 256, BK: 64, Stages: 4, Consumers: 2, ClusterM: 2, ClusterN: 1, Order: kernel.Order{Group: 8}, L2: ptx.L2128B}
}

// Cluster is the number of CTAs of a cluster.
func (c Config) Cluster() int { return c.ClusterM * c.ClusterN }

func (c Config) threads() int { return 128 * (1 + c.Consumers) }
func (c Config) aBytes() int  { return c.BM * c.BK * c.elem() }
func (c Config) bBytes() int  { return c.BN * c.BK * c.elem() }

// storeBytes are the store buffers of one consumer.
func (c Config) storeBytes() int { return c.Full().Buffers * kernel.StoreBytes }

// swizzle is the pattern of operand tiles that lie K-major, whose slabs are one pattern wide along K. Transposed ones are 128-byte swizzled.
func (c Config) swizzle() ptx.Swizzle {
	if c.BK*c.elem() == 64 {
		return ptx.Swizzle64
	}
	return ptx.Swizzle128
}

// slab is the columns of one slab.
func (c Config) slab() int { return c.swizzle().Width() / c.elem() }

// rows is the height of what one consumer accumulates.
func (c Config) rows() int {
	if c.PingPong {
		return c.BM
	}
	return c.BM / c.Consumers
}

// arrivals is how many of one CTA let go of a stage: its consumers, or their warps.
func (c Config) arrivals() int {
	n := c.Consumers
	if c.PingPong {
		n = 1
	}
	if c.Blocks {
		n *= 4 // warps
	}
	return n
}

// registers are those of a thread of the producer and of the consumers; 0 leaves what the launch gives.
func (c Config) registers() (producer, consumer int) {
	switch accumulators := c.rows() / 64 * c.BN / 2; {
	case c.Consumers == 1 || c.Consumers == 2 && accumulators < 96:
		return 0, 0 // 255 or 168 are enough
	case c.Consumers == 2:
		return 24, 240
	}
	return 32, 160
}

// Shared is the dynamic shared memory in bytes: ring, store buffers, barriers.
func (c Config) Shared() int {
	n := c.Stages*(c.aBytes()+c.bBytes()+c.scaleBytes()) + c.Consumers*(c.storeBytes()+c.Epi.Vectors()*kernel.MaxVector) + 16*c.Stages
	if c.Epi.Vectors() > 0 {
		n += 8 * c.Consumers
	}
	if c.Dynamic {
		n += kernel.QueueBytes
	}
	if c.Epi.ReadsC() {
		n += 8 * c.Consumers * c.Full().Buffers
	}
	return n
}

// Check tells why a configuration cannot be built.
func (c Config) Check() error {
	c = c.Full()
	switch {
	case c.BM%64 != 0 || c.BM < 64 || c.BM > 256 || c.BN%64 != 0 || c.BN < 64 || c.BN > 256:
		return fmt.Errorf("gemm: tile of %d×%d, want multiples of 64 up to 256", c.BM, c.BN)
	case c.row() != 64 && c.row() != 128 && c.row() != 256:
		return fmt.Errorf("gemm: stages %d × %v deep, want rows of 64, 128 or 256 bytes", c.BK, c.In)
	case c.Stages < 2 || c.Stages > 32:
		return fmt.Errorf("gemm: %d stages, want 2..32", c.Stages)
	case c.Consumers < 1 || c.Consumers > 3 || c.PingPong && c.Consumers != 2:
		return fmt.Errorf("gemm: %d consumers, want 1..3, and 2 for ping-pong", c.Consumers)
	case c.rows() != 64 && c.rows() != 128 || !c.PingPong && c.rows()*c.Consumers != c.BM:
		return fmt.Errorf("gemm: %d rows for each of %d consumers, want 64 or 128", c.rows(), c.Consumers)
	case c.rows()/64*c.BN > 416 || c.Consumers == 3 && c.rows()/64*c.BN > 192:
		return fmt.Errorf("gemm: %d×%d accumulators in one consumer do not fit its registers", c.rows(), c.BN)
	case !power(c.ClusterM) || !power(c.ClusterN) || c.Cluster() > 8:
		return fmt.Errorf("gemm: clusters of %d×%d, want powers of two, 8 CTAs at most", c.ClusterM, c.ClusterN)
	case c.TransA && c.BM/c.ClusterN%64 != 0 || c.TransB && c.BN/c.ClusterM%64 != 0:
		return fmt.Errorf("gemm: a %d×%d tile in %d×%d parts, want 64 rows at least of a transposed operand", c.BM, c.BN, c.ClusterN, c.ClusterM)
	case c.BM/c.ClusterN%8 != 0 || c.BN/c.ClusterM%8 != 0:
		return fmt.Errorf("gemm: a %d×%d tile in %d×%d parts, want 8 rows at least", c.BM, c.BN, c.ClusterN, c.ClusterM)
	case c.Buffers < 1 || c.Buffers > 4:
		return fmt.Errorf("gemm: %d store buffers, want 1..4", c.Buffers)
	case c.Order.Group < 0:
		return fmt.Errorf("gemm: strips of %d tiles, want 0 for raster or more", c.Order.Group)
	case c.Peek && c.PingPong:
		return fmt.Errorf("gemm: looking ahead in ping-pong, whose next stage may be the other's")
	case c.Dynamic && (c.StreamK || c.OneTile || c.Groups != Alone):
		return fmt.Errorf("gemm: dynamic tiles beside stream-K, a cluster a tile or groups, want one of them")
	case c.Order.Table && (c.Order.Group != 0 || c.Order.Serpentine || c.Groups != Alone):
		return fmt.Errorf("gemm: a table of tiles beside strips or groups, want the table alone")
	case c.KeepA && c.Cluster() > 1:
		return fmt.Errorf("gemm: keeping A in clusters of %d×%d, want 1×1: multicast has no cache policy here", c.ClusterM, c.ClusterN)
	case c.Zigzag && c.Groups != Alone:
		return fmt.Errorf("gemm: groups with a zigzag along K")
	case c.Groups != Alone && (c.StreamK || c.OneTile || c.Epi != kernel.Epilogue{}):
		return fmt.Errorf("gemm: groups beside stream-K, a cluster a tile or an epilogue, want groups alone")
	case c.Groups == ByRows && c.TransA || c.Groups == ByDepth && !(c.TransA && c.TransB):
		return fmt.Errorf("gemm: groups of rows with A transposed, or of depth without both transposed")
	case c.Groups > ByDepth:
		return fmt.Errorf("gemm: groups of kind %d, want 0..2", c.Groups)
	case c.StreamK && c.OneTile:
		return fmt.Errorf("gemm: stream-K with a cluster a tile, want clusters that take several")
	case c.StreamK && c.Epi.ReadsC():
		return fmt.Errorf("gemm: stream-K beside an epilogue that reads C; hint: no residual, or no stream-K")
	case c.Overlap > Invites || c.L2 > ptx.L2256B:
		return fmt.Errorf("gemm: overlap %d, L2 promotion %d, want 0..2 and 0..3", c.Overlap, c.L2)
	case c.Shared() > ptx.MaxShared:
		return fmt.Errorf("gemm: %d bytes of shared memory, want at most %d; hint: fewer stages", c.Shared(), ptx.MaxShared)
	}
	return c.checkTypes()
}

func (c Config) checkTypes() error {
	switch {
	case c.In != num.BF16 && c.In != num.F16 && c.In != num.TF32 && c.In != num.E4M3 && c.In != num.E5M2:
		return fmt.Errorf("gemm: operands of type %v, want bf16, f16, tf32, e4m3 or e5m2", c.In)
	case (c.TransA || c.TransB) && c.elem() != 2:
		return fmt.Errorf("gemm: transposed operands of type %v: the tensor cores transpose types of 16 bits alone; hint: keep a transposed copy", c.In)
	case c.Out != num.BF16 && c.Out != num.F16 && c.Out != num.F32:
		return fmt.Errorf("gemm: result of type %v, want bf16, f16 or f32", c.Out)
	case c.Add && c.Out != num.F32:
		return fmt.Errorf("gemm: adding to a result of type %v, want f32", c.Out)
	case c.Add && c.Epi != kernel.Epilogue{}:
		return fmt.Errorf("gemm: adding to D beside another epilogue, want one of them; hint: residual with C = D")
	case c.Buffers%c.Epi.Wide() != 0:
		return fmt.Errorf("gemm: %d store buffers for chunks that are stored %d together, want a multiple", c.Buffers, c.Epi.Wide())
	}
	if why := c.refuseBlocks(); why != "" {
		return fmt.Errorf("gemm: block scales with %s", why)
	}
	if why := c.Epi.Refuse(c.Out, c.BN); why != "" {
		return fmt.Errorf("gemm: an epilogue with %s", why)
	}
	return nil
}

func power(n int) bool { return n > 0 && n&(n-1) == 0 }

// options are the words of a name that follow its numbers, each with how it is set and whether it is; every word is one value of one field.
func (c *Config) options() []option {
	flag := func(word string, b *bool) option { return option{word, *b, func() { *b = true }} }
	overlap := func(word string, o Overlap) option { return option{word, c.Overlap == o, func() { c.Overlap = o }} }
	groups := func(word string, g Groups) option { return option{word, c.Groups == g, func() { c.Groups = g }} }
	l2 := func(word string, l ptx.L2Sector) option { return option{word, c.L2 == l, func() { c.L2 = l }} }
	buffers := func(word string, n int) option { return option{word, c.Buffers == n, func() { c.Buffers = n }} }
	in := func(t num.DType) option { return option{t.String(), c.In == t, func() { c.In = t }} }
	out := func(t num.DType) option {
		return option{"to" + t.String(), c.Out == t && c.Out != c.usualOut(), func() { c.Out = t }}
	}
	all := []option{
		flag("serpentine", &c.Order.Serpentine), flag("pingpong", &c.PingPong), flag("onetile", &c.OneTile), flag("streamk", &c.StreamK), flag("dynamic", &c.Dynamic), flag("table", &c.Order.Table), flag("peek", &c.Peek), flag("keepa", &c.KeepA), flag("zigzag", &c.Zigzag), groups("grouped", ByRows), groups("groupedk", ByDepth), overlap("waits", Waits), overlap("invites", Invites),
		buffers("b1", 1), buffers("b3", 3), buffers("b4", 4), l2("l2none", ptx.L2None), l2("l264", ptx.L264B), l2("l2256", ptx.L2256B), flag("ta", &c.TransA), flag("tb", &c.TransB),
		in(num.F16), in(num.TF32), in(num.E4M3), in(num.E5M2), out(num.BF16), out(num.F16), out(num.F32), flag("add", &c.Add), flag("blocks", &c.Blocks),
	}
	for _, w := range c.Epi.Words() {
		all = append(all, option{w.Name, w.On, w.Set})
	}
	return all
}

type option struct {
	word string
	on   bool
	set  func()
}

// String is the configuration's name, which ParseConfig reads: tile, consumers, cluster, stages, strip, and what is not usual.
func (c Config) String() string {
	c = c.Full()
	s := fmt.Sprintf("%dx%dx%d-w%d-c%dx%d-s%d-g%d", c.BM, c.BN, c.BK, c.Consumers, c.ClusterM, c.ClusterN, c.Stages, c.Order.Group)
	for _, o := range c.options() {
		if o.on {
			s += "-" + o.word
		}
	}
	return s
}

// ParseConfig reads a name that String wrote. The result is checked, and names its types.
func ParseConfig(name string) (Config, error) {
	c := Config{L2: ptx.L2128B}
	words := strings.Split(name, "-")
	if len(words) < 5 {
		return c, fmt.Errorf("gemm: configuration %q, want one such as %v", name, Default())
	}
	err := numbers(words[0], "", &c.BM, &c.BN, &c.BK)
	for i, f := range []struct {
		prefix string
		fields []*int
	}{{"w", []*int{&c.Consumers}}, {"c", []*int{&c.ClusterM, &c.ClusterN}}, {"s", []*int{&c.Stages}}, {"g", []*int{&c.Order.Group}}} {
		if err == nil {
			err = numbers(words[1+i], f.prefix, f.fields...)
		}
	}
	for _, w := range words[5:] {
		if err == nil && !c.set(w) {
			err = fmt.Errorf("gemm: configuration option %q", w)
		}
	}
	if err != nil {
		return c, fmt.Errorf("%w in %q; hint: names look like %v", err, name, Default())
	}
	return c.Full(), c.Check()
}

// set applies one option, and tells whether there is one of that name.
func (c *Config) set(word string) bool {
	for _, o := range c.options() {
		if o.word == word {
			o.set()
			return true
		}
	}
	return false
}

// numbers reads "PREFIXaxbxc".
func numbers(word, prefix string, into ...*int) error {
	rest, ok := strings.CutPrefix(word, prefix)
	parts := strings.Split(rest, "x")
	if !ok || len(parts) != len(into) {
		return fmt.Errorf("gemm: %q, want %q and %d numbers", word, prefix, len(into))
	}
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || n > 1<<20 {
			return fmt.Errorf("gemm: %q is no small number", p)
		}
		*into[i] = n
	}
	return nil
}

// MarshalText and UnmarshalText make a Config its name in JSON.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a name.
func (c *Config) UnmarshalText(b []byte) error {
	var err error
	*c, err = ParseConfig(string(b))
	return err
}
