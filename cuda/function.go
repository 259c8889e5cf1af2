package cuda

import (
	"fmt"
	"unsafe"
)

// Function is a kernel of a module.
type Function struct {
	dev    *Device
	handle uintptr
	Name   string
	FunctionFacts
}

// FunctionFacts is what the compiler made of a kernel.
type FunctionFacts struct {
	MaxThreads int `json:"max_threads"`
	Shared     int `json:"static_shared_bytes"`
	Local      int `json:"local_bytes"` // stack and spills a thread; not 0 means a slow kernel
	Registers  int `json:"registers"`
}

// Function finds a kernel by name.
func (m *Module) Function(name string) (*Function, error) {
	d, f := m.dev.driver, &Function{dev: m.dev, Name: name}
	c := append([]byte(name), 0)
	if err := d.check("cuModuleGetFunction", d.api.moduleGetFunction, uintptr(unsafe.Pointer(&f.handle)), m.handle, uintptr(unsafe.Pointer(&c[0]))); err != nil {
		return nil, f.named(err)
	}
	for _, a := range []struct {
		id  uintptr // CU_FUNC_ATTRIBUTE_…
		out *int
	}{{0, &f.MaxThreads}, {1, &f.Shared}, {3, &f.Local}, {4, &f.Registers}} {
		var v int32
		if err := d.check("cuFuncGetAttribute", d.api.funcGetAttribute, uintptr(unsafe.Pointer(&v)), a.id, f.handle); err != nil {
			return nil, f.named(err)
		}
		*a.out = int(v)
	}
	return f, nil
}

// AllowShared lets launches of f take up to bytes of dynamic shared memory; above 48 KiB none does so by itself.
func (f *Function) AllowShared(bytes int) error {
	if bytes > f.dev.SharedPerBlock {
		return fmt.Errorf("cuda: kernel %s wants %d bytes of shared memory, a block on %s has %d", f.Name, bytes, f.dev.Facts.Name, f.dev.SharedPerBlock)
	}
	const maxDynamicShared = 8
	return f.set(maxDynamicShared, bytes)
}

// AllowLargeClusters lets launches of f use clusters of more than 8 blocks.
func (f *Function) AllowLargeClusters() error {
	const nonPortableCluster = 14
	return f.set(nonPortableCluster, 1)
}

func (f *Function) set(attribute, value int) error {
	return f.named(f.dev.driver.check("cuFuncSetAttribute", f.dev.driver.api.funcSetAttribute, f.handle, uintptr(attribute), uintptr(value)))
}

// named adds the kernel's name to a driver error.
func (f *Function) named(err error) error {
	if e, ok := err.(*Error); ok {
		e.Kernel = f.Name
	}
	return err
}
