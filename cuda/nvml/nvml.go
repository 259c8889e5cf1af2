// Package nvml reads clocks, power and energy of a GPU from libnvidia-ml, opened at run time. It never changes a setting.
//
// Open, then Library.ByPCI; Monitor samples in the background while kernels run. The energy counter steps every 100 ms and a read costs milliseconds: see Monitor for how joules are taken.
package nvml

import (
	"fmt"
	"unsafe"

	"heddle/internal/dl"
)

// Library is an initialised libnvidia-ml.
type Library struct {
	handleByPCI, power, energy, clock, maxClock, reasons, temperature, limit, version dl.Func
}

// Open opens libnvidia-ml.so.1, or path where it is not empty.
func Open(path string) (*Library, error) {
	if path == "" {
		path = "libnvidia-ml.so.1"
	}
	lib, err := dl.Open(path)
	if err != nil {
		return nil, fmt.Errorf("nvml: %w", err)
	}
	l := new(Library)
	var start dl.Func
	for _, s := range []struct {
		name string
		f    *dl.Func
	}{
		{"nvmlInit_v2", &start}, {"nvmlSystemGetDriverVersion", &l.version},
		{"nvmlDeviceGetHandleByPciBusId_v2", &l.handleByPCI}, {"nvmlDeviceGetPowerUsage", &l.power},
		{"nvmlDeviceGetTotalEnergyConsumption", &l.energy}, {"nvmlDeviceGetClockInfo", &l.clock}, {"nvmlDeviceGetMaxClockInfo", &l.maxClock},
		{"nvmlDeviceGetTemperature", &l.temperature},
		{"nvmlDeviceGetEnforcedPowerLimit", &l.limit},
	} {
		if *s.f, err = lib.Func(s.name); err != nil {
			return nil, fmt.Errorf("nvml: %w", err)
		}
	}
	// The reasons were renamed in driver 535; the old name may go one day.
	if l.reasons, err = lib.Func("nvmlDeviceGetCurrentClocksEventReasons"); err != nil {
		if l.reasons, err = lib.Func("nvmlDeviceGetCurrentClocksThrottleReasons"); err != nil {
			return nil, fmt.Errorf("nvml: %w", err)
		}
	}
	if code := start.Call(); code != 0 {
		return nil, fmt.Errorf("nvml: nvmlInit: status %d", code)
	}
	return l, nil
}

// DriverVersion is the driver's own version, such as 580.159.04.
func (l *Library) DriverVersion() (string, error) {
	b := make([]byte, 96)
	if code := l.version.Call(uintptr(unsafe.Pointer(&b[0])), uintptr(len(b))); code != 0 {
		return "", fmt.Errorf("nvml: nvmlSystemGetDriverVersion: status %d", code)
	}
	return unix(b), nil
}

func unix(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// GPU is one device.
type GPU struct {
	lib    *Library
	handle uintptr
}

// ByPCI finds the GPU at a PCI address as CUDA prints it.
func (l *Library) ByPCI(bus string) (*GPU, error) {
	g, c := &GPU{lib: l}, append([]byte(bus), 0)
	if code := l.handleByPCI.Call(uintptr(unsafe.Pointer(&c[0])), uintptr(unsafe.Pointer(&g.handle))); code != 0 {
		return nil, fmt.Errorf("nvml: nvmlDeviceGetHandleByPciBusId %s: status %d", bus, code)
	}
	return g, nil
}

// State is one reading. What the GPU does not offer stays 0.
type State struct {
	SMClockMHz     uint32 `json:"sm_clock_mhz"`
	MemoryClockMHz uint32 `json:"memory_clock_mhz"`
	PowerMilliwatt uint32 `json:"power_mw"` // a one-second average
	LimitMilliwatt uint32 `json:"power_limit_mw"`
	Celsius        uint32 `json:"celsius"`
	Reasons        uint64 `json:"clock_reasons"` // bit 0x4: power cap; 0x8, 0x20, 0x40: slowdowns
}

// State reads clocks, power and temperature: cached values, a few µs.
func (g *GPU) State() State {
	const smClock, memoryClock, dieSensor = 1, 2, 0
	var s State
	g.lib.clock.Call(g.handle, smClock, uintptr(unsafe.Pointer(&s.SMClockMHz)))
	g.lib.clock.Call(g.handle, memoryClock, uintptr(unsafe.Pointer(&s.MemoryClockMHz)))
	g.lib.power.Call(g.handle, uintptr(unsafe.Pointer(&s.PowerMilliwatt)))
	g.lib.limit.Call(g.handle, uintptr(unsafe.Pointer(&s.LimitMilliwatt)))
	g.lib.temperature.Call(g.handle, dieSensor, uintptr(unsafe.Pointer(&s.Celsius)))
	g.lib.reasons.Call(g.handle, uintptr(unsafe.Pointer(&s.Reasons)))
	return s
}

// MaxSMClockMHz is the highest SM clock; the read costs a millisecond.
func (g *GPU) MaxSMClockMHz() uint32 {
	var v uint32
	g.lib.maxClock.Call(g.handle, 1, uintptr(unsafe.Pointer(&v)))
	return v
}

// EnergyMillijoule reads the counter of energy since the driver was loaded: milliseconds a read, steps every 100 ms.
func (g *GPU) EnergyMillijoule() (uint64, error) {
	var mj uint64
	if code := g.lib.energy.Call(g.handle, uintptr(unsafe.Pointer(&mj))); code != 0 {
		return 0, fmt.Errorf("nvml: nvmlDeviceGetTotalEnergyConsumption: status %d", code)
	}
	return mj, nil
}
