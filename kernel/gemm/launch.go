package gemm

import (
	"fmt"
	"math"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
	"heddle/tile"
)

// Problem is one product D = A·Bᵀ, or D += A·Bᵀ where the configuration adds. Matrices are row-major and packed; types and transposition are the configuration's.
type Problem struct {
	M, N, K int
	A       *ptx.Buffer // [M, K], or [K, M] where A is transposed
	B       *ptx.Buffer // [N, K], or [K, N]
	D       *ptx.Buffer // [M, N]; [M, N/2] for SwiGLU, [M, 2N] for its backward form
	Epi     Operands
	Work    *ptx.Buffer // Gemm.Workspace bytes, for stream-K and dynamic tiles; of this launch's stream alone
	Table   *ptx.Buffer // uint32 a cluster tile, as Gemm.Path gives them, for an order by table
	// Of block scales: float32 [K/128, M] and [⌈N/128⌉, K/128], K/128 rounded up.
	ScaleA, ScaleB *ptx.Buffer
	// Of groups: by rows M is the rows of all groups, and B is Groups matrices; by depth K is the rows of all groups, and D is Groups matrices.
	Groups  int
	Offsets *ptx.Buffer // uint32, Groups + 1 of them
}

// count is the matrices that lie behind each other where the configuration groups.
func (p Problem) count(groups, as Groups) int {
	if groups == as {
		return p.Groups
	}
	return 1
}

// Operands are what a configuration's epilogue takes; the others are not looked at.
type Operands struct {
	Alpha, Beta         float32
	Rows, Columns, Bias *ptx.Buffer // [M], [N], [N] float32
	C                   *ptx.Buffer // of D's type and shape; for a backward activation what the forward one kept
	Kept                *ptx.Buffer // [M, N] of D's type
	AMax                *ptx.Buffer // one float32, zero before
}

// Takes tells whether TMA can move the rows of a product's matrices: each must be a multiple of 16 bytes.
func (c Config) Takes(m, n, k int) bool {
	c = c.Full()
	rowA, rowB, d := k, k, c.Epi.Act.Columns(n)
	if c.TransA {
		rowA = m
	}
	if c.TransB {
		rowB = n
	}
	if c.Blocks && m%4 != 0 {
		return false
	}
	return rowA*c.elem()%16 == 0 && rowB*c.elem()%16 == 0 && d*c.Out.Size()%16 == 0 && (c.Epi.Act != kernel.SwiGLU || n%2 == 0)
}

// Launch describes the launch for a device that runs so many CTAs of this kernel at once.
func (g *Gemm) Launch(p Problem, ctas int) (ptx.Launch, *ptx.Args, error) {
	c := g.Config
	if p.M < 1 || p.N < 1 || p.K < 1 {
		return ptx.Launch{}, nil, fmt.Errorf("gemm: %d×%d×%d, want positive sizes", p.M, p.N, p.K)
	}
	if ctas < c.Cluster() {
		return ptx.Launch{}, nil, fmt.Errorf("gemm: a device that runs %d CTAs cannot hold a cluster of %d", ctas, c.Cluster())
	}
	if c.Epi.Act == kernel.SwiGLU && p.N%2 != 0 {
		return ptx.Launch{}, nil, fmt.Errorf("gemm: %d columns for pairs of gate and up, want an even number", p.N)
	}
	tilesM, tilesN := ceil(p.M, c.BM*c.ClusterM), ceil(p.N*c.columns()/c.BN, c.columns()*c.ClusterN)
	if float64(tilesM)*float64(tilesN)*float64(c.Cluster()) > math.MaxInt32 {
		return ptx.Launch{}, nil, fmt.Errorf("gemm: %d × %d cluster tiles do not fit 31 bits", tilesM, tilesN)
	}
	a, err := g.maps(p)
	if err != nil {
		return ptx.Launch{}, nil, err
	}
	g.TilesM.Put(a, uint32(tilesM))
	g.TilesN.Put(a, uint32(tilesN))
	g.Steps.Put(a, uint32(ceil(p.K, c.BK)))
	if c.Blocks {
		if err := g.putScales(a, p); err != nil {
			return ptx.Launch{}, nil, err
		}
	}
	clusters := tilesM * tilesN
	if c.Order.Table {
		if p.Table == nil || p.Table.Size() < 4*clusters {
			return ptx.Launch{}, nil, fmt.Errorf("gemm: no table of %d tiles; hint: Gemm.Path", clusters)
		}
		g.Table.Put(a, p.Table, 0)
	}
	switch {
	case c.Groups != Alone:
		if clusters, err = g.putGroups(a, p, tilesM, tilesN, ctas); err != nil {
			return ptx.Launch{}, nil, err
		}
	case c.StreamK:
		if clusters, err = g.putStream(a, p, clusters, ctas); err != nil {
			return ptx.Launch{}, nil, err
		}
	case !c.OneTile:
		if c.Dynamic {
			if p.Work == nil || p.Work.Size() < g.Workspace(ctas) {
				return ptx.Launch{}, nil, fmt.Errorf("gemm: no workspace of %d bytes for dynamic tiles; hint: Gemm.Workspace", g.Workspace(ctas))
			}
			g.Counter.Put(a, p.Work, 0)
		}
		clusters = min(ctas/c.Cluster(), clusters)
	}
	return ptx.Launch{Entry: g.Entry.Name, Grid: ptx.Dim3{X: clusters * c.Cluster()}, PDL: c.Overlap != Serial}, a, nil
}

// Path is a table for Problem.Table: a path through the cluster tiles of a product, such as tile.Hilbert.
func (g *Gemm) Path(m, n int, order tile.Order) ([]uint32, error) {
	c := g.Config
	s := tile.Schedule{TilesM: ceil(m, c.BM*c.ClusterM), TilesN: ceil(n*c.columns()/c.BN, c.columns()*c.ClusterN), Order: order, Group: 8}
	path, err := s.Path()
	if err != nil {
		return nil, err
	}
	table := make([]uint32, len(path))
	for i, p := range path {
		table[i] = kernel.Entry(p.M, p.N)
	}
	return table, nil
}

// maps are the arguments of a launch with the tensor maps in them.
func (g *Gemm) maps(p Problem) (*ptx.Args, error) {
	c := g.Config
	a, err := c.operand("A", p.A, p.M, p.K, c.BM/c.ClusterN, c.TransA)
	if err != nil {
		return nil, err
	}
	rowsB, depthB := p.N*p.count(c.Groups, ByRows), p.K
	if c.TransB && c.Groups == ByRows {
		rowsB, depthB = p.N, p.K*p.Groups
	}
	b, err := c.operand("B", p.B, rowsB, depthB, min(c.BN/c.ClusterM, c.columns()), c.TransB)
	if err != nil {
		return nil, err
	}
	args := g.Entry.NewArgs()
	g.A.Put(args, a)
	g.B.Put(args, b)
	return args, g.results(args, p)
}

// results puts D and the epilogue's operands.
func (g *Gemm) results(args *ptx.Args, p Problem) error {
	e, f := g.Config.Epi, g.Finish
	d, err := g.halves("D", p.D, p.M*p.count(g.Config.Groups, ByDepth), e.Act.Columns(p.N), e.Act == kernel.DSwiGLU)
	if err != nil {
		return err
	}
	g.D.Put(args, d[0])
	if e.Act == kernel.DSwiGLU {
		f.Up.Put(args, d[1])
	}
	if e.Act == kernel.SwiGLU {
		f.Half.Put(args, uint32(p.N/2))
	}
	if e.Alpha {
		f.Alpha.Put(args, p.Epi.Alpha)
	}
	if e.Residual {
		f.Beta.Put(args, p.Epi.Beta)
	}
	if e.AMax {
		f.AMax.Put(args, p.Epi.AMax, 0)
	}
	return g.epilogueMaps(args, p)
}

// epilogueMaps puts what the epilogue reads and writes by TMA.
func (g *Gemm) epilogueMaps(args *ptx.Args, p Problem) error {
	c, e, f := g.Config, g.Config.Epi, g.Finish
	for _, v := range []struct {
		on        bool
		name      string
		buffer    *ptx.Buffer
		n, box    int
		parameter ptx.ParamMap
	}{{e.Rows, "rows", p.Epi.Rows, p.M, c.rows(), f.Rows}, {e.Columns, "columns", p.Epi.Columns, p.N, c.columns(), f.Columns}, {e.Bias, "bias", p.Epi.Bias, p.N, c.columns(), f.Bias}} {
		if !v.on {
			continue
		}
		if v.n*4%16 != 0 && v.name != "rows" {
			return fmt.Errorf("gemm: %d %s, want a multiple of 4", v.n, v.name)
		}
		v.parameter.Put(args, &ptx.Map{Type: num.F32, Buffer: v.buffer, Dims: []int{v.n, 1}, Strides: []int{(v.n*4 + 15) &^ 15}, Box: []int{v.box, 1}, L2: ptx.L2128B})
	}
	for _, m := range []struct {
		on, pair   bool
		name       string
		buffer     *ptx.Buffer
		cols       int
		parameters [2]ptx.ParamMap
	}{{e.ReadsC(), e.Act == kernel.DSwiGLU, "C", p.Epi.C, e.Act.Columns(p.N), f.C}, {e.Keep, e.Act == kernel.SwiGLU, "kept", p.Epi.Kept, p.N, f.Kept}} {
		if !m.on {
			continue
		}
		maps, err := g.halves(m.name, m.buffer, p.M, m.cols, m.pair)
		if err != nil {
			return err
		}
		for i, x := range maps {
			m.parameters[i].Put(args, x)
		}
	}
	return nil
}

// halves is the map of a matrix like D, or those of its left and its right half.
func (g *Gemm) halves(name string, b *ptx.Buffer, rows, cols int, pair bool) ([]*ptx.Map, error) {
	whole, err := matrix(name, g.Config.Out, b, rows, cols, 64)
	if err != nil || !pair {
		return []*ptx.Map{whole}, err
	}
	left, right := *whole, *whole
	left.Dims = []int{cols / 2, rows}
	right.Dims, right.Offset = left.Dims, cols/2*g.Config.Out.Size()
	if right.Offset%16 != 0 {
		return nil, fmt.Errorf("gemm: halves of %s are %d bytes wide, want a multiple of 16", name, right.Offset)
	}
	return []*ptx.Map{&left, &right}, nil
}

// operand is the tensor map of A or B, [rows, k] as the product sees it. K-major it moves boxes of so many rows, one slab wide; transposed, chunks of 64 rows, a stage deep.
func (c Config) operand(name string, b *ptx.Buffer, rows, k, box int, trans bool) (m *ptx.Map, err error) {
	if trans {
		m, err = matrix(name, c.In, b, k, rows, c.BK)
	} else if m, err = matrix(name, c.In, b, rows, k, box); err == nil {
		m.Box[0], m.Swizzle = c.slab(), c.swizzle()
	}
	if err == nil {
		m.L2 = c.L2
	}
	return m, err
}

// matrix is the tensor map of a row-major matrix, moved in boxes of so many rows by 128 bytes.
func matrix(name string, t num.DType, b *ptx.Buffer, rows, cols, box int) (*ptx.Map, error) {
	if cols*t.Size()%16 != 0 {
		return nil, fmt.Errorf("gemm: rows of %s, %d × %v, are no multiple of 16 bytes, the unit of TMA", name, cols, t)
	}
	return &ptx.Map{
		Type: t, Buffer: b, Dims: []int{cols, rows}, Strides: []int{cols * t.Size()}, Box: []int{128 / t.Size(), box},
		Swizzle: ptx.Swizzle128, L2: ptx.L2128B,
	}, nil
}

func ceil(x, unit int) int { return (x + unit - 1) / unit }
