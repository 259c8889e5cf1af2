// Package all is the explicit list of kernels.
package all

import (
	"fmt"
	"strings"

	"heddle/kernel"
	"heddle/kernel/gemm"
	"heddle/kernel/row"
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
	} {
		c, err := gemm.ParseConfig(g.config)
		add(g.name, "D = A·Bᵀ by TMA and wgmma, persistent: "+g.config, func() (kernel.Built, error) {
			if err != nil {
				return nil, err
			}
			return gemm.New(c)
		})
	}
	add("row-sum", "y = Σ of each row, f32, in a fixed order", func() (kernel.Built, error) { return row.NewSum() })
	return all
}

// Find gives the kernel of a name.
func Find(name string) (kernel.Kernel, error) {
	var names []string
	for _, k := range Kernels() {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return kernel.Kernel{}, fmt.Errorf("kernel: no kernel is named %q; hint: one of %s", name, strings.Join(names, ", "))
}
