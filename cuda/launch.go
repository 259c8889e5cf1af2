package cuda

import (
	"fmt"
	"slices"
	"unsafe"

	"heddle/internal/dl"
)

// Launch is the shape of a launch. The zero Cluster leaves clusters to the kernel's own directive.
type Launch struct {
	Grid    [3]uint32
	Block   [3]uint32
	Cluster [3]uint32
	Shared  int  // bytes of dynamic shared memory
	PDL     bool // the kernel may start while its predecessor runs, and waits by griddepcontrol.wait
}

// Args are a kernel's arguments in order. Scalars can be changed between launches, through the index that adding them returned.
type Args struct{ params []unsafe.Pointer } // laid out as the driver's void **kernelParams

// U32 adds a 32-bit integer.
func (a *Args) U32(v uint32) int { return a.U64(uint64(v)) } // little endian: the low half is what the kernel reads

// U64 adds a 64-bit integer.
func (a *Args) U64(v uint64) int { return a.add(unsafe.Pointer(&v)) }

// Ptr adds a device address.
func (a *Args) Ptr(p Ptr) int { return a.U64(uint64(p)) }

// F32 adds a float.
func (a *Args) F32(v float32) int { return a.add(unsafe.Pointer(&[2]float32{v})) }

// Map adds a tensor map.
func (a *Args) Map(m *TensorMap) int { return a.add(m.pointer()) }

// Set changes scalar i.
func (a *Args) Set(i int, v uint64) { *(*uint64)(a.params[i]) = v }

func (a *Args) add(p unsafe.Pointer) int {
	a.params = append(a.params, p)
	return len(a.params) - 1
}

// launchConfig is CUlaunchConfig, 56 bytes.
type launchConfig struct {
	grid, block [3]uint32
	shared      uint32
	_           uint32
	stream      uintptr
	attributes  *launchAttribute
	count       uint32
	_           uint32
}

// launchAttribute is CUlaunchAttribute, 72 bytes.
type launchAttribute struct {
	id    uint32
	_     uint32
	value [16]uint32
}

const ( // CU_LAUNCH_ATTRIBUTE_…
	attributeCluster = 4
	attributePDL     = 6
)

// Prepared is a launch with everything laid out: Launch costs the driver's own time and allocates nothing. It is not safe for concurrent use.
type Prepared struct {
	f          *Function
	config     launchConfig
	attributes [2]launchAttribute
	params     []unsafe.Pointer // own copy: the caller may go on adding to Args
	call       *dl.Prepared
	move       *dl.Prepared // of a tensor map
}

// Prepare lays out a launch of f. The values stay shared: Args.Set changes what later launches pass.
func (f *Function) Prepare(l Launch, args *Args) (*Prepared, error) {
	if err := l.check(f); err != nil {
		return nil, err
	}
	p := &Prepared{f: f, config: launchConfig{grid: l.Grid, block: l.Block, shared: uint32(l.Shared)}}
	if l.Cluster != [3]uint32{} {
		p.attribute(attributeCluster, l.Cluster[:]...)
	}
	if l.PDL {
		p.attribute(attributePDL, 1)
	}
	var params uintptr
	if args != nil && len(args.params) > 0 {
		p.params = slices.Clone(args.params)
		params = uintptr(unsafe.Pointer(&p.params[0]))
	}
	p.call = dl.Prepare(f.dev.driver.api.launchKernelEx, uintptr(unsafe.Pointer(&p.config)), f.handle, params, 0)
	p.move = dl.Prepare(f.dev.driver.api.tensorMapReplaceAddress, 0, 0)
	return p, nil
}

func (p *Prepared) attribute(id uint32, value ...uint32) {
	a := &p.attributes[p.config.count]
	a.id = id
	copy(a.value[:], value)
	p.config.attributes = &p.attributes[0]
	p.config.count++
}

// check refuses what the driver would only call an invalid value.
func (l *Launch) check(f *Function) error {
	threads := uint64(1)
	for i := range 3 {
		if l.Grid[i] == 0 || l.Block[i] == 0 {
			return fmt.Errorf("cuda: kernel %s: grid %v and block %v must have no zero", f.Name, l.Grid, l.Block)
		}
		if c := l.Cluster[i]; l.Cluster != [3]uint32{} && (c == 0 || l.Grid[i]%c != 0) {
			return fmt.Errorf("cuda: kernel %s: grid %v is not a multiple of cluster %v", f.Name, l.Grid, l.Cluster)
		}
		threads *= uint64(l.Block[i])
	}
	if threads > uint64(f.MaxThreads) {
		return fmt.Errorf("cuda: kernel %s: block %v has %d threads, its registers allow %d", f.Name, l.Block, threads, f.MaxThreads)
	}
	return nil
}

// SetWord changes scalar or address i of later launches.
func (p *Prepared) SetWord(i int, bits uint64) { *(*uint64)(p.params[i]) = bits }

// SetMap changes where the tensor of tensor map i lies, for later launches.
func (p *Prepared) SetMap(i int, addr uint64) error {
	p.move.Set(0, uintptr(p.params[i])) // the map is kept alive by params
	p.move.Set(1, uintptr(addr))
	if code := p.move.Call(); code != 0 {
		return p.f.named(p.f.dev.driver.failure("cuTensorMapReplaceAddress", code))
	}
	return nil
}

// Launch queues the kernel on a stream.
func (p *Prepared) Launch(s *Stream) error { return p.Queue(s.handle) }

// Queue is Launch for a CUstream.
func (p *Prepared) Queue(stream uintptr) error {
	p.config.stream = stream
	if code := p.call.Call(); code != 0 {
		return p.f.named(p.f.dev.driver.failure("cuLaunchKernelEx", code))
	}
	return nil
}

// MaxClusters is how many clusters of this launch the device holds at once. It is 0 for a kernel without clusters: ask MaxCTAs.
func (p *Prepared) MaxClusters() (int, error) {
	var n int32
	d := p.f.dev.driver
	err := d.check("cuOccupancyMaxActiveClusters", d.api.occupancyMaxActiveClusters, uintptr(unsafe.Pointer(&n)), p.f.handle, uintptr(unsafe.Pointer(&p.config)))
	return int(n), p.f.named(err)
}

// MaxCTAs is how many CTAs of this launch the device holds at once, where they are in no clusters.
func (p *Prepared) MaxCTAs() (int, error) {
	var n int32
	c, d := &p.config, p.f.dev.driver
	threads := c.block[0] * c.block[1] * c.block[2]
	err := d.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", d.api.occupancyBlocks, uintptr(unsafe.Pointer(&n)), p.f.handle, uintptr(threads), uintptr(c.shared))
	return int(n) * p.f.dev.SMs, p.f.named(err)
}
