package cuda

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Facts is what a device says of itself.
type Facts struct {
	Name            string `json:"name"`
	Major           int    `json:"major"` // compute capability
	Minor           int    `json:"minor"`
	SMs             int    `json:"sms"`
	L2Bytes         int    `json:"l2_bytes"`
	SharedPerBlock  int    `json:"shared_per_block_bytes"` // after opting in
	SharedPerSM     int    `json:"shared_per_sm_bytes"`
	RegistersPerSM  int    `json:"registers_per_sm"`
	MemoryBytes     uint64 `json:"memory_bytes"`
	ClockKHz        int    `json:"clock_khz"` // highest SM clock
	MemoryClockKHz  int    `json:"memory_clock_khz"`
	MemoryBusBits   int    `json:"memory_bus_bits"`
	PCIBus          string `json:"pci_bus"`
	DriverInterface string `json:"driver_interface"` // "13.0"
}

// Device is one GPU with its primary context, the one that cuBLAS and NCCL use too.
type Device struct {
	Facts
	driver  *Driver
	ordinal int32
	context uintptr
}

// Device opens GPU number i.
func (d *Driver) Device(i int) (*Device, error) {
	if i < 0 || i >= d.Devices {
		return nil, &Absent{fmt.Sprintf("device %d does not exist, the driver sees %d", i, d.Devices)}
	}
	dev := &Device{driver: d}
	if err := d.check("cuDeviceGet", d.api.deviceGet, uintptr(unsafe.Pointer(&dev.ordinal)), uintptr(i)); err != nil {
		return nil, err
	}
	if err := dev.readFacts(); err != nil {
		return nil, err
	}
	return dev, d.check("cuDevicePrimaryCtxRetain", d.api.primaryCtxRetain, uintptr(unsafe.Pointer(&dev.context)), uintptr(dev.ordinal))
}

func (dev *Device) readFacts() error {
	d, name, bus := dev.driver, make([]byte, 256), make([]byte, 32)
	if err := d.check("cuDeviceGetName", d.api.deviceGetName, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)-1), uintptr(dev.ordinal)); err != nil {
		return err
	}
	if err := d.check("cuDeviceGetPCIBusId", d.api.deviceGetPCIBusID, uintptr(unsafe.Pointer(&bus[0])), uintptr(len(bus)-1), uintptr(dev.ordinal)); err != nil {
		return err
	}
	if err := d.check("cuDeviceTotalMem", d.api.deviceTotalMem, uintptr(unsafe.Pointer(&dev.MemoryBytes)), uintptr(dev.ordinal)); err != nil {
		return err
	}
	dev.Name, dev.PCIBus, dev.DriverInterface = cString(&name[0]), cString(&bus[0]), dotted(d.Version)
	for _, a := range []struct {
		id  uintptr // CU_DEVICE_ATTRIBUTE_…
		out *int
	}{
		{16, &dev.SMs}, {38, &dev.L2Bytes}, {97, &dev.SharedPerBlock}, {81, &dev.SharedPerSM}, {82, &dev.RegistersPerSM},
		{13, &dev.ClockKHz}, {36, &dev.MemoryClockKHz}, {37, &dev.MemoryBusBits}, {75, &dev.Major}, {76, &dev.Minor},
	} {
		var v int32
		if err := d.check("cuDeviceGetAttribute", d.api.deviceGetAttribute, uintptr(unsafe.Pointer(&v)), a.id, uintptr(dev.ordinal)); err != nil {
			return err
		}
		*a.out = int(v)
	}
	return nil
}

// Bind locks the calling goroutine to its thread and makes the device current there. Undo with runtime.UnlockOSThread.
func (dev *Device) Bind() error {
	runtime.LockOSThread()
	return dev.driver.check("cuCtxSetCurrent", dev.driver.api.ctxSetCurrent, dev.context)
}

// Synchronize waits for everything on the device.
func (dev *Device) Synchronize() error {
	return dev.driver.check("cuCtxSynchronize", dev.driver.api.ctxSynchronize)
}

// Release gives the context back. Nothing of the device may be used afterwards.
func (dev *Device) Release() error {
	return dev.driver.check("cuDevicePrimaryCtxRelease", dev.driver.api.primaryCtxRelease, uintptr(dev.ordinal))
}
