package bench

import (
	"fmt"
	"os"

	"heddle/kernel/gemm"
	"heddle/num"
	"heddle/ptx"
)

// Experts is a product of a mixture of experts: Rows dealt to Groups, forward D = X·Wᵀ, dgrad dX = dY·W, wgrad dW = dYᵀ·X, where W is [Groups, N, K].
type Experts struct {
	Name               string
	Rows, Groups, N, K int
}

// modes are the three products, each with what it asks of a configuration.
var expertModes = []struct {
	name string
	like gemm.Config
}{
	{"forward", gemm.Config{Groups: gemm.ByRows}},
	{"dgrad", gemm.Config{Groups: gemm.ByRows, TransB: true}},
	{"wgrad", gemm.Config{Groups: gemm.ByDepth, TransA: true, TransB: true}},
}

// ExportExperts writes, for every product of every shape and every configuration that can take it, a launch for bench/grouped.py, which makes buffers A, B, D and
// offsets. The grid is of so many SMs with one CTA each.
func ExportExperts(dir string, shapes []Experts, configs []gemm.Config, sms int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, x := range shapes {
		for _, mode := range expertModes {
			for _, c := range configs {
				c.Groups, c.TransA, c.TransB, c.In, c.Out = mode.like.Groups, mode.like.TransA, mode.like.TransB, num.BF16, num.BF16
				if c.Check() != nil {
					continue
				}
				if err := x.export(dir, mode.name, c, sms); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (x Experts) export(dir, mode string, c gemm.Config, sms int) error {
	g, err := gemm.New(c)
	if err != nil {
		return err
	}
	buffer := func(name string, elements, size int) *ptx.Buffer {
		return &ptx.Buffer{Name: name, Device: 256, Bytes: elements * size}
	}
	p := gemm.Problem{M: x.Rows, N: x.N, K: x.K, Groups: x.Groups, Offsets: buffer("offsets", x.Groups+1, 4)}
	a, b, d := x.Rows*x.K, x.Groups*x.N*x.K, x.Rows*x.N
	switch mode {
	case "dgrad":
		p.N, p.K = x.K, x.N
		a, d = x.Rows*x.N, x.Rows*x.K
	case "wgrad":
		p.M, p.N, p.K = x.N, x.K, x.Rows
		a, b, d = x.Rows*x.N, x.Rows*x.K, x.Groups*x.N*x.K
	}
	p.A, p.B, p.D = buffer("A", a, 2), buffer("B", b, 2), buffer("D", d, 2)
	l, args, err := g.Launch(p, sms)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%s-%v", x.Name, mode, c)
	return Export(dir, name, g.Module(), l, args, map[string]any{"shape": x.Name, "mode": mode, "config": c.String(), "rows": x.Rows, "groups": x.Groups, "n": x.N, "k": x.K})
}
