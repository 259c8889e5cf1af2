// Package all is the explicit list of kernels.
package all

import (
	"fmt"
	"strings"

	"heddle/kernel"
	"heddle/kernel/attention"
	"heddle/kernel/elem"
	"heddle/kernel/gemm"
	"heddle/kernel/row"
	"heddle/num"
)

// Kernels lists every kernel, by family.
func Kernels() []kernel.Kernel {
	var all []kernel.Kernel
	add := func(name, doc string, build func() (kernel.Built, error)) {
		all = append(all, kernel.Kernel{Name: name, Doc: doc, Build: build})
	}
	for _, g := range []struct{ name, config string }{
		{"gemm", gemm.Default().String()},
		{"gemm-c1", "128x256x64-w2-c1x1-s4-g8-serpentine"},
		{"gemm-192", "128x192x64-w2-c2x1-s4-g8"},
		{"gemm-tall", "256x128x64-w2-c1x2-s4-g8"},
		{"gemm-pingpong", "128x128x64-w2-c2x1-s6-g8-pingpong"},
		{"gemm-64x128", "64x128x64-w1-c2x1-s8-g4-invites"},
		{"gemm-64x64", "64x64x64-w1-c2x1-s6-g0-invites"},
		{"gemm-f16", "128x256x64-w2-c2x1-s4-g8-f16"},
		{"gemm-dgrad", "128x256x64-w2-c2x1-s4-g8-tb"},
		{"gemm-wgrad", "128x256x64-w2-c2x1-s4-g8-ta-tb-tof32-add"},
		{"gemm-large", "256x192x64-w2-c1x1-s3-g8"},
		{"gemm-alone", "128x256x64-w2-c1x1-s3-g16-b4"},
		{"gemm-streamk", "128x128x64-w2-c1x1-s6-g8-streamk-ta-tb"},
		{"gemm-dynamic", "128x256x64-w2-c1x1-s3-g8-dynamic"},
		{"gemm-residual", "128x256x64-w2-c1x1-s3-g16-b4-residual"},
		{"gemm-bias-gelu", "128x256x64-w2-c1x1-s3-g16-b4-bias-gelu-keep"},
		{"gemm-swiglu", "128x256x64-w2-c1x1-s3-g8-b3-swiglu-keep"},
		{"gemm-dswiglu", "128x256x64-w2-c1x1-s3-g8-b4-tb-dswiglu"},
		{"gemm-tf32", "128x128x32-w2-c2x1-s4-g8-tf32"},
		{"gemm-e4m3", "128x192x128-w2-c1x1-s4-g16-pingpong-e4m3-alpha"},
		{"gemm-e4m3-blocks", "192x128x128-w3-c1x2-s4-g8-e4m3-blocks"},
		{"gemm-experts", "128x256x64-w2-c1x1-s3-g8-b4-grouped"},
		{"gemm-experts-dgrad", "128x256x64-w2-c1x1-s3-g8-b4-grouped-tb"},
		{"gemm-experts-wgrad", "256x192x64-w2-c1x1-s3-g8-groupedk-ta-tb"},
	} {
		c, err := gemm.ParseConfig(g.config)
		add(g.name, "D = A·Bᵀ by TMA and wgmma: "+g.config, func() (kernel.Built, error) {
			if err != nil {
				return nil, err
			}
			return gemm.New(c)
		})
	}
	add("row-sum", "y = Σ of each row, f32, in a fixed order", func() (kernel.Built, error) { return row.NewSum() })
	elements(add)
	rows(add)
	for _, t := range []num.DType{num.F32, num.BF16} {
		for p := attention.Forward; p <= attention.KeyGrad; p++ {
			add(fmt.Sprintf("attention-simple-%v-%v", strings.ReplaceAll(p.String(), "_", "-"), t), "causal attention on CUDA cores, heads of 128", func() (kernel.Built, error) {
				return attention.NewSimple(attention.Config{Pass: p, D: 128, Type: t, Wide: true})
			})
		}
		if t == num.BF16 {
			for p := attention.Forward; p <= attention.KeyGrad; p++ {
				add("attention-"+strings.ReplaceAll(p.String(), "_", "-"), "causal attention by TMA and wgmma, heads of 128", func() (kernel.Built, error) {
					return attention.NewFast(attention.FastConfig{Pass: p, D: 128})
				})
			}
		}
		add(fmt.Sprintf("gemm-plain-%v", t), "C = A·Bᵀ on CUDA cores, any size", func() (kernel.Built, error) {
			return gemm.NewPlain(gemm.PlainConfig{In: t, Out: t, TransB: true})
		})
	}
	return all
}

// elements are the elementwise kernels that training uses.
func elements(add func(name, doc string, build func() (kernel.Built, error))) {
	for _, s := range elem.Specs() {
		add("elem-"+strings.ReplaceAll(s.Name, "_", "-"), "each element from those in its place", func() (kernel.Built, error) { return elem.New(s, true) })
	}
	for _, t := range []num.DType{num.F32, num.BF16} {
		for _, back := range []string{"", "-back"} {
			add(fmt.Sprintf("rope-%v%s", t, back), "rotary embedding of heads of 128, angles from a table", func() (kernel.Built, error) {
				return elem.NewRope(elem.RopeConfig{D: 128, Type: t, Wide: true, Back: back != ""})
			})
			add(fmt.Sprintf("box-%v%s", t, strings.Replace(back, "back", "add", 1)), "a box of one packed tensor into another", func() (kernel.Built, error) {
				return elem.NewBox(elem.BoxConfig{Type: t, Wide: true, Add: back != ""})
			})
		}
	}
}

// rows are the row reductions that training uses, at the widths of Qwen3-0.6B.
func rows(add func(name, doc string, build func() (kernel.Built, error))) {
	for _, t := range []num.DType{num.F32, num.BF16} {
		for _, cols := range []int{128, 1024} {
			add(fmt.Sprintf("norm-%d-%v", cols, t), "RMSNorm of rows kept in registers", func() (kernel.Built, error) {
				return row.NewNorm(row.NormConfig{Cols: cols, Type: t, Wide: true, Plus: cols == 1024})
			})
			add(fmt.Sprintf("norm-again-%d-%v", cols, t), "RMSNorm of rows with a kept 1/rms", func() (kernel.Built, error) {
				return row.NewNorm(row.NormConfig{Cols: cols, Type: t, Wide: true, Again: true})
			})
			add(fmt.Sprintf("norm-back-%d-%v", cols, t), "gradient of RMSNorm, weights as partial sums", func() (kernel.Built, error) {
				return row.NewNormBack(row.NormBackConfig{Cols: cols, Type: t, Wide: true, Weights: true, Plus: cols == 1024})
			})
		}
		add(fmt.Sprintf("dot-%v", t), "dot products of the rows of two matrices", func() (kernel.Built, error) { return row.NewDot(128, t, true) })
		add(fmt.Sprintf("embed-%v", t), "rows of a table by id", func() (kernel.Built, error) { return row.NewEmbed(1024, t, true) })
		add(fmt.Sprintf("embed-back-%v", t), "gradients added to a table's rows, in token order", func() (kernel.Built, error) { return row.NewEmbedBack(t, true) })
		for p := row.Max; p <= row.Back; p++ {
			add(fmt.Sprintf("loss-%v-%v", p, t), "cross entropy over part of a vocabulary", func() (kernel.Built, error) { return row.NewLoss(row.LossConfig{Piece: p, Type: t, Wide: true}) })
		}
		add(fmt.Sprintf("reduce-squares-%v", t), "Σ x² in parts", func() (kernel.Built, error) {
			return row.NewReduce(row.ReduceConfig{Term: row.Squares, Type: t, Wide: true})
		})
	}
	add("reduce-last", "a sum of parts, added to a scalar", func() (kernel.Built, error) {
		return row.NewReduce(row.ReduceConfig{Type: num.F32, Wide: true, Last: true})
	})
	add("reduce-tokens", "the loss of tokens from their sums", func() (kernel.Built, error) { return row.NewReduce(row.ReduceConfig{Term: row.Tokens, Type: num.F32}) })
	add("columns", "sums of the columns of a matrix", func() (kernel.Built, error) { return row.NewColumns(row.ColumnsConfig{Type: num.F32, Last: true}) })
}

// Find gives the kernel of a name. Where there is none, the error names those that begin like it.
func Find(name string) (kernel.Kernel, error) {
	var alike []string
	for _, k := range Kernels() {
		if k.Name == name {
			return k, nil
		}
		if family, _, _ := strings.Cut(k.Name, "-"); strings.HasPrefix(name, family) {
			alike = append(alike, k.Name)
		}
	}
	const most = 6
	hint := "heddle kernels list has their names"
	if len(alike) > 0 {
		hint = "one of " + strings.Join(alike[:min(most, len(alike))], ", ")
		if len(alike) > most {
			hint += fmt.Sprintf(" and %d more; heddle kernels list has all", len(alike)-most)
		}
	}
	return kernel.Kernel{}, fmt.Errorf("kernel: no kernel is named %q; hint: %s", name, hint)
}
