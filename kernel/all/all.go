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
	for _, g := range []struct {
		name string
		c    gemm.Config
	}{
		{"gemm", gemm.Default()},
		{"gemm-192-c2", gemm.Config{BN: 192, BK: 64, Stages: 4, Cluster: 2, Order: kernel.Order{Group: 8}}},
		{"gemm-128-c1", gemm.Config{BN: 128, BK: 64, Stages: 4, Cluster: 1, Order: kernel.Order{Group: 8, Serpentine: true}}},
	} {
		add(g.name, "D = A·Bᵀ, bf16 in and out, f32 accumulation; persistent, TMA and wgmma, "+g.c.String(), func() (kernel.Built, error) { return gemm.New(g.c) })
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
