// Package cuda is the NVIDIA driver, opened at run time: no toolkit, no cgo, no header.
//
// Start with Open, then Driver.Device, Device.Bind, Device.Compile and Function.Prepare. PTX goes through the driver's linker (cuLink), or, where it hands registers
// from one warp group to another, through the driver's direct JIT: see Compile. Launches are prepared once and then cost what the driver costs: no allocation, no lookup. Handles are not safe for concurrent use, except that each goroutine may use its own
// streams; every goroutine that talks to the driver first calls Device.Bind, since CUDA keeps the current context per thread.
//
// What waits for running kernels, and so belongs at start-up: Module loading, Free, FreePinned. What may be called while kernels run: everything else.
package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"heddle/internal/dl"
)

// MinVersion is the oldest driver interface we can use: tensor maps and cluster launches came with CUDA 12.0.
const MinVersion = 12000

// Driver is an opened and initialised driver.
type Driver struct {
	api     api
	Version int // 13000 means CUDA 13.0
	Devices int
}

// Absent says that this machine lacks what CUDA needs. Everything that needs no GPU still works.
type Absent struct{ What string }

func (e *Absent) Error() string { return "cuda: " + e.What }

// Open opens the driver's library, libcuda.so.1 where path is empty, and initialises it. Where there is no usable driver or GPU the error is an *Absent.
func Open(path string) (*Driver, error) {
	if path == "" {
		path = "libcuda.so.1"
	}
	lib, err := dl.Open(path)
	if err != nil {
		return nil, &Absent{fmt.Sprintf("no NVIDIA driver on this machine (%v); hint: everything that needs no GPU works without it", err)}
	}
	d := new(Driver)
	if err := d.api.find(lib); err != nil {
		return nil, err
	}
	if err := d.check("cuInit", d.api.init, 0); err != nil {
		var e *Error
		if errors.As(err, &e) && e.Code == codeNoDevice {
			return nil, &Absent{"the driver is here but sees no GPU (cuInit: CUDA_ERROR_NO_DEVICE)"}
		}
		return nil, &Absent{fmt.Sprintf("the driver is here but does not start (%v)", err)}
	}
	var version, devices int32
	if err := d.check("cuDriverGetVersion", d.api.driverGetVersion, uintptr(unsafe.Pointer(&version))); err != nil {
		return nil, err
	}
	if version < MinVersion {
		return nil, &Absent{fmt.Sprintf("the driver is too old: it offers CUDA %s, heddle needs %s; hint: install driver 525 or newer", dotted(int(version)), dotted(MinVersion))}
	}
	if err := d.check("cuDeviceGetCount", d.api.deviceGetCount, uintptr(unsafe.Pointer(&devices))); err != nil {
		return nil, err
	}
	d.Version, d.Devices = int(version), int(devices)
	return d, nil
}

func dotted(version int) string { return fmt.Sprintf("%d.%d", version/1000, version%1000/10) }
