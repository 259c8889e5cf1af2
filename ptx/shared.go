package ptx

import "fmt"

// MaxShared is the most dynamic shared memory that a CTA can have on Hopper, in bytes (CUDA programming guide, compute capability 9.0).
const MaxShared = 232448

// Region is a named part of the CTA's shared memory.
type Region struct {
	Name  string
	Off   int // bytes from the start of dynamic shared memory
	Bytes int
	k     *Builder
}

// Shared reserves bytes of shared memory; align is a power of two up to 1024.
func (k *Builder) Shared(name string, bytes, align int) Region {
	if bytes <= 0 || align <= 0 || align > 1024 || align&(align-1) != 0 {
		k.fail("shared region %s of %d bytes, aligned %d, want a positive size and a power of two up to 1024", name, bytes, align)
		align = 16
	}
	k.bytes = (k.bytes + align - 1) / align * align
	r := Region{name, k.bytes, bytes, k}
	k.bytes += bytes
	k.shared = append(k.shared, r)
	return r
}

// Addr is the region's address. It starts from the CTA's base, which carries the CTA's rank: an absolute number would name another CTA's memory.
func (r Region) Addr() SAddr { return r.k.sharedBase().Plus(r.Off) }

func (k *Builder) sharedBase() SAddr {
	return SAddr{k.once(OpSharedBase, func() operand { return k.readShared().operand })}
}

// Bars reserves n mbarriers, named name[i] in reports, and gives the address of the first.
func (k *Builder) Bars(name string, n int) Bar {
	r := k.Shared(name, 8*n, 8)
	for i := range n {
		k.bars[r.Off+8*i] = fmt.Sprintf("%s[%d]", name, i)
	}
	return Bar{r.Addr().operand}
}

// DescLayout says how an operand tile of wgmma lies in shared memory. (PTX ISA, Asynchronous Warpgroup Level Matrix Shared Memory Layout)
type DescLayout struct {
	Swizzle Swizzle
	MN      bool // the tile's M or N dim is contiguous; else K is
	Leading int  // bytes: MN-major: from one swizzle-wide chunk to the next; K-major without swizzle: from one 16-byte column to the next
	Stride  int  // bytes from one group of 8 rows to the next
}

// KMajor is a tile whose rows of K lie packed, one swizzle width each.
func KMajor(s Swizzle) DescLayout { return DescLayout{Swizzle: s, Stride: 8 * s.Width()} }

// MNMajor is a tile cut into chunks of one swizzle width along M or N, each chunk depth rows of K deep.
func MNMajor(s Swizzle, depth int) DescLayout {
	return DescLayout{Swizzle: s, MN: true, Leading: depth * s.Width(), Stride: 8 * s.Width()}
}

// Fields are the descriptor's bits without the address.
func (d DescLayout) Fields() uint64 {
	leading := uint64(1) // ignored for swizzled K-major tiles; 1 by convention
	if d.Leading > 0 {
		leading = uint64(d.Leading) >> 4 & 0x3fff
	}
	mode := [...]uint64{0, 3, 2, 1}[d.Swizzle] // none, 32, 64, 128: the reverse of the tensor map's order
	return leading<<16 | uint64(d.Stride)>>4&0x3fff<<32 | mode<<62
}

// Desc is the descriptor of the tile at a, which must start on a boundary of the swizzle's pattern (8 rows).
func (k *Builder) Desc(a SAddr, d DescLayout) Desc {
	return U32{a.operand}.Shr(4).And(k.U32(0x3fff)).U64().fields(d.Fields())
}
