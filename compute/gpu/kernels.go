package gpu

import (
	"fmt"
	"sync"

	"heddle/kernel/attention"
	"heddle/kernel/elem"
	"heddle/kernel/gemm"
	"heddle/kernel/row"
	"heddle/num"
)

// Kernels are the kernels built so far, by what they were built for. Ranks share them, so that each is compiled once.
type Kernels struct {
	mu        sync.Mutex
	elem      map[elemKey]*elem.Map
	rope      map[elem.RopeConfig]*elem.Rope
	box       map[elem.BoxConfig]*elem.Box
	norm      map[row.NormConfig]*row.Norm
	normBack  map[row.NormBackConfig]*row.NormBack
	dot       map[rowKey]*row.Dot
	embed     map[rowKey]*row.Embed
	embedBack map[rowKey]*row.EmbedBack
	loss      map[row.LossConfig]*row.Loss
	reduce    map[row.ReduceConfig]*row.Reduce
	columns   map[row.ColumnsConfig]*row.Columns
	shift     map[row.ShiftConfig]*row.Shift
	attention map[attention.Config]*attention.Simple
	fast      map[attention.FastConfig]*attention.Fast
	gemm      map[gemm.Config]*gemm.Gemm
	choice    map[product]gemm.Config // choosing takes a millisecond
	plain     map[gemm.PlainConfig]*gemm.Plain
}

// product is what a GEMM's configuration is chosen for.
type product struct {
	m, n, k int
	like    gemm.Config
}

type elemKey struct {
	name string
	wide bool
}

type rowKey struct {
	cols int
	t    num.DType
	wide bool
}

// NewKernels makes an empty set.
func NewKernels() *Kernels {
	return &Kernels{
		elem: map[elemKey]*elem.Map{}, rope: map[elem.RopeConfig]*elem.Rope{}, box: map[elem.BoxConfig]*elem.Box{},
		norm: map[row.NormConfig]*row.Norm{}, normBack: map[row.NormBackConfig]*row.NormBack{}, dot: map[rowKey]*row.Dot{},
		embed: map[rowKey]*row.Embed{}, embedBack: map[rowKey]*row.EmbedBack{}, loss: map[row.LossConfig]*row.Loss{},
		reduce: map[row.ReduceConfig]*row.Reduce{}, columns: map[row.ColumnsConfig]*row.Columns{}, shift: map[row.ShiftConfig]*row.Shift{}, attention: map[attention.Config]*attention.Simple{}, fast: map[attention.FastConfig]*attention.Fast{},
		gemm: map[gemm.Config]*gemm.Gemm{}, choice: map[product]gemm.Config{}, plain: map[gemm.PlainConfig]*gemm.Plain{},
	}
}

// get is the kernel of a key, built at its first use. A kernel that cannot be built is a fault of the caller's shapes.
func get[K comparable, V any](k *Kernels, all map[K]V, key K, build func() (V, error)) V {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, ok := all[key]
	if !ok {
		var err error
		if v, err = build(); err != nil {
			panic(fault("kernel", fmt.Errorf("kernel: %w", err)))
		}
		all[key] = v
	}
	return v
}
