package cuda

import (
	"fmt"
	"unsafe"
)

// Ptr is an address in a device's memory.
type Ptr uint64

// MemInfo is the free and total memory of the device in bytes.
func (dev *Device) MemInfo() (free, total uint64, err error) {
	err = dev.driver.check("cuMemGetInfo", dev.driver.api.memGetInfo, uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total)))
	return free, total, err
}

// Alloc takes device memory, aligned to 256 bytes at least. A plain allocation costs 40 to 200 µs: make one arena, not many.
func (dev *Device) Alloc(bytes int) (Ptr, error) {
	if bytes <= 0 {
		return 0, fmt.Errorf("cuda: allocation of %d bytes; hint: sizes are positive", bytes)
	}
	var p Ptr
	err := dev.driver.check("cuMemAlloc", dev.driver.api.memAlloc, uintptr(unsafe.Pointer(&p)), uintptr(bytes))
	if err != nil {
		if free, total, e := dev.MemInfo(); e == nil {
			err = fmt.Errorf("%w: wanted %d bytes, %d of %d are free", err, bytes, free, total)
		}
	}
	return p, err
}

// Free gives memory back, waiting for running kernels.
func (dev *Device) Free(p Ptr) error {
	return dev.driver.check("cuMemFree", dev.driver.api.memFree, uintptr(p))
}

// CopyIn copies host memory to the device and waits. It does not wait for work on streams: synchronise first.
func (dev *Device) CopyIn(dst Ptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	return dev.driver.check("cuMemcpyHtoD", dev.driver.api.memcpyHtoD, uintptr(dst), uintptr(unsafe.Pointer(&src[0])), uintptr(len(src)))
}

// CopyOut copies device memory to the host and waits. It does not wait for work on streams: synchronise first.
func (dev *Device) CopyOut(dst []byte, src Ptr) error {
	if len(dst) == 0 {
		return nil
	}
	return dev.driver.check("cuMemcpyDtoH", dev.driver.api.memcpyDtoH, uintptr(unsafe.Pointer(&dst[0])), uintptr(src), uintptr(len(dst)))
}

// Pinned is host memory that the device reads and writes directly: the only kind that asynchronous copies and polled words may use.
type Pinned struct {
	Bytes  []byte
	Device Ptr // the same memory as the device sees it
}

// AllocPinned takes pinned host memory.
func (dev *Device) AllocPinned(bytes int) (*Pinned, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("cuda: pinned allocation of %d bytes; hint: sizes are positive", bytes)
	}
	const portable, mapped = 1, 2 // CU_MEMHOSTALLOC_…
	d, p := dev.driver, new(Pinned)
	var host *byte
	if err := d.check("cuMemHostAlloc", d.api.memHostAlloc, uintptr(unsafe.Pointer(&host)), uintptr(bytes), portable|mapped); err != nil {
		return nil, err
	}
	p.Bytes = unsafe.Slice(host, bytes)
	return p, d.check("cuMemHostGetDevicePointer", d.api.memHostGetDevicePointer, uintptr(unsafe.Pointer(&p.Device)), uintptr(unsafe.Pointer(host)), 0)
}

// FreePinned gives pinned memory back, waiting for running kernels.
func (dev *Device) FreePinned(p *Pinned) error {
	host := unsafe.Pointer(&p.Bytes[0])
	p.Bytes = nil
	return dev.driver.check("cuMemFreeHost", dev.driver.api.memFreeHost, uintptr(host))
}
