package ptx

import "fmt"

// MaxShared is the most dynamic shared memory that a CTA can have on Hopper, in bytes (CUDA programming guide, compute capability 9.0).
const MaxShared = 232448

// Region is a named part of the CTA's shared memory.
type Region struct {
	Name  string
	Off   int // bytes from the start of dynamic shared memory
	Bytes int
	tile  *OperandTile // what it holds, where that was said
	k     *Builder
}

// Shared reserves bytes of shared memory; align is a power of two up to 1024.
func (k *Builder) Shared(name string, bytes, align int) Region {
	if bytes <= 0 || align <= 0 || align > 1024 || align&(align-1) != 0 {
		k.fail("shared region %s of %d bytes, aligned %d, want a positive size and a power of two up to 1024", name, bytes, align)
		align = 16
	}
	k.bytes = (k.bytes + align - 1) / align * align
	r := Region{Name: name, Off: k.bytes, Bytes: bytes, k: k}
	k.bytes += bytes
	k.shared = append(k.shared, r)
	return r
}

// SharedTile reserves room for count operand tiles of wgmma, one behind the other.
func (k *Builder) SharedTile(name string, count int, t OperandTile) Region {
	if _, err := t.Desc(); err != nil {
		k.fail("shared tile %s: %v", name, err)
	}
	r := k.Shared(name, count*t.Layout.Size()*t.Elem, 1024)
	k.shared[len(k.shared)-1].tile = &t
	r.tile = &t
	return r
}

// Desc is the descriptor of a tile of the region, derived from what it holds; a is where the tile starts.
func (r Region) Desc(a SAddr) Desc {
	if r.tile == nil {
		r.k.fail("descriptor in region %s, of which nobody has said what it holds; hint: SharedTile", r.Name)
		return r.k.Desc(a, KMajor(Swizzle128))
	}
	d, _ := r.tile.Desc() // refused by SharedTile
	return r.k.Desc(a, d)
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
