package tile

import "fmt"

// Order is the path of a grid's clusters over the output.
type Order string

// Orders. Grouped and Serpentine cut the fast axis into strips of Group clusters and go across a strip, then one step along it; Serpentine turns back
// at each strip's end where Grouped starts over. Hilbert is the generalised Hilbert curve on any rectangle.
const (
	Raster     Order = "raster"
	Grouped    Order = "grouped"
	Serpentine Order = "serpentine"
	Hilbert    Order = "hilbert"
)

// Orders lists them.
func Orders() []Order { return []Order{Raster, Grouped, Serpentine, Hilbert} }

// Axis is an output axis.
type Axis string

// Axes of the output; the zero Axis lets a Schedule choose the longer one.
const (
	AlongM Axis = "m"
	AlongN Axis = "n"
)

// maxTiles bounds a schedule: 2^20 tiles of 128 × 128 are 131,072 squared.
const maxTiles = 1 << 20

// Schedule is an output of TilesM × TilesN tiles, computed by clusters of ClusterM × ClusterN tiles in an Order. Where the cluster does not divide the
// output, clusters overhang its edge; their tiles outside are not tiles.
type Schedule struct {
	TilesM, TilesN     int
	ClusterM, ClusterN int // 0 means 1
	Order              Order
	Group              int  // strip width in clusters, for Grouped and Serpentine
	Fast               Axis // the axis that Raster runs along and that strips are cut from
}

// Pos is a cluster's or a tile's place, in clusters or tiles.
type Pos struct{ M, N int }

func (s Schedule) checked() (Schedule, error) {
	s.ClusterM, s.ClusterN = max(s.ClusterM, 1), max(s.ClusterN, 1)
	if s.TilesM < 1 || s.TilesN < 1 || mul(s.TilesM, s.TilesN) > maxTiles {
		return s, fmt.Errorf("tile: schedule of %d × %d tiles, want 1 to %d", s.TilesM, s.TilesN, maxTiles)
	}
	if mul(s.ClusterM, s.ClusterN) > 16 {
		return s, fmt.Errorf("tile: cluster of %d × %d, at most 16 CTAs", s.ClusterM, s.ClusterN)
	}
	if (s.Order == Grouped || s.Order == Serpentine) && s.Group < 1 {
		return s, fmt.Errorf("tile: %s order with groups of %d, want at least 1", s.Order, s.Group)
	}
	m, n := s.clusters()
	if s.Fast == "" {
		if s.Fast = AlongN; m > n {
			s.Fast = AlongM
		}
	}
	if s.Fast != AlongM && s.Fast != AlongN {
		return s, fmt.Errorf("tile: axis %q; hint: m or n", s.Fast)
	}
	return s, nil
}

// clusters is the number of clusters along each axis.
func (s Schedule) clusters() (m, n int) {
	return ceilDiv(s.TilesM, s.ClusterM), ceilDiv(s.TilesN, s.ClusterN)
}

// Path lists all clusters in the order in which they are started.
func (s Schedule) Path() ([]Pos, error) {
	s, err := s.checked()
	if err != nil {
		return nil, err
	}
	m, n := s.clusters()
	fast, slow := n, m
	if s.Fast == AlongM {
		fast, slow = m, n
	}
	var path []Pos
	put := func(f, sl int) {
		if s.Fast == AlongM {
			path = append(path, Pos{f, sl})
		} else {
			path = append(path, Pos{sl, f})
		}
	}
	switch s.Order {
	case Raster:
		for i := range fast * slow {
			put(i%fast, i/fast)
		}
	case Grouped, Serpentine:
		strip := newStrips(fast, slow, s.Group, s.Order == Serpentine)
		for i := range fast * slow {
			put(strip.at(i))
		}
	case Hilbert:
		if fast >= slow {
			hilbert(Pos{}, Pos{M: fast}, Pos{N: slow}, func(p Pos) { put(p.M, p.N) })
		} else {
			hilbert(Pos{}, Pos{N: slow}, Pos{M: fast}, func(p Pos) { put(p.M, p.N) })
		}
	default:
		return nil, fmt.Errorf("tile: unknown order %q; hint: one of %v", s.Order, Orders())
	}
	return path, nil
}

// Tiles lists the tiles of one cluster that lie inside the output, in rank order (M fastest).
func (s Schedule) Tiles(cluster Pos) []Pos {
	var out []Pos
	for n := range max(s.ClusterN, 1) {
		for m := range max(s.ClusterM, 1) {
			p := Pos{cluster.M*max(s.ClusterM, 1) + m, cluster.N*max(s.ClusterN, 1) + n}
			if p.M < s.TilesM && p.N < s.TilesN {
				out = append(out, p)
			}
		}
	}
	return out
}

// strips is the arithmetic of Grouped and Serpentine, as a device does it: three divisors, prepared once.
type strips struct {
	group, last                      int // width of a strip, and of the last one
	perStrip, acrossFull, acrossLast Divmod
	strips, slow                     int
	turn                             bool
}

// newStrips needs fast·slow ≤ maxTiles, which keeps every divisor in range.
func newStrips(fast, slow, group int, turn bool) strips {
	group = min(group, fast)
	count := ceilDiv(fast, group)
	s := strips{group: group, last: fast - (count-1)*group, strips: count, slow: slow, turn: turn}
	s.perStrip, s.acrossFull, s.acrossLast = Must(NewDivmod(group*slow)), Must(NewDivmod(group)), Must(NewDivmod(s.last))
	return s
}

// at is the place of the i-th cluster.
func (s strips) at(i int) (fast, slow int) {
	strip, rest := s.perStrip.Of(i)
	across := s.acrossFull
	if strip == s.strips-1 {
		across = s.acrossLast
	}
	along, in := across.Of(rest)
	if s.turn && strip%2 == 1 {
		along = s.slow - 1 - along
	}
	return strip*s.group + in, along
}
