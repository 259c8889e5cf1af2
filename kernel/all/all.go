// Package all is the explicit list of kernels.
package all

import (
	"fmt"
	"strings"

	"heddle/kernel"
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
	for _, g := range []struct {
		name string
		c    gemm.Config
	}{
		{"gemm", gemm.Default()},
		{"gemm-c1", gemm.Config{BM: 128, BN: 256, BK: 64, Stages: 4, Cluster: 1, Order: kernel.Order{Group: 8, Serpentine: true}}},
		{"gemm-192", gemm.Config{BM: 128, BN: 192, BK: 64, Stages: 4, Cluster: 2, Order: kernel.Order{Group: 8}}},
		{"gemm-tall", gemm.Config{BM: 256, BN: 128, BK: 64, Stages: 4, Cluster: 2, Order: kernel.Order{Group: 8}}},
		{"gemm-pingpong", gemm.Config{BM: 128, BN: 192, BK: 64, Stages: 4, Cluster: 2, PingPong: true, Order: kernel.Order{Group: 8}}},
		{"gemm-pingpong-128", gemm.Config{BM: 128, BN: 128, BK: 64, Stages: 5, Cluster: 2, PingPong: true, Order: kernel.Order{Group: 8}}},
		{"gemm-64x128", gemm.Config{BM: 64, BN: 128, BK: 64, Stages: 8, Cluster: 1, Order: kernel.Order{Group: 8}}},
		{"gemm-64x64", gemm.Config{BM: 64, BN: 64, BK: 64, Stages: 8, Cluster: 1, Order: kernel.Order{Group: 8}}},
		{"gemm-f16", gemm.Config{BM: 128, BN: 256, BK: 64, Stages: 4, Cluster: 2, In: num.F16, Order: kernel.Order{Group: 8}}},
		{"gemm-dgrad", gemm.Config{BM: 128, BN: 256, BK: 64, Stages: 4, Cluster: 2, TransB: true, Order: kernel.Order{Group: 8}}},
		{"gemm-wgrad", gemm.Config{BM: 128, BN: 256, BK: 64, Stages: 4, Cluster: 2, TransA: true, TransB: true, Out: num.F32, Add: true, Order: kernel.Order{Group: 8}}},
	} {
		add(g.name, "D = A·Bᵀ by TMA and wgmma, persistent: "+g.c.String(), func() (kernel.Built, error) { return gemm.New(g.c) })
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
