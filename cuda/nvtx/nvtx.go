// Package nvtx shows named ranges of the program to a profiler that runs it, such as Nsight Systems: the other side of the protocol in NVIDIA's nvtx3 headers (nvtxInit.h), without C.
//
// A profiler names its library in the environment variable NVTX_INJECTION64_PATH. Open loads it and hands it a table of empty slots; the profiler fills in those that it wants called.
// Without a profiler there is no Tool, and the methods of a nil Tool do nothing. Ranges belong to the thread that opens them: lock the goroutine.
package nvtx

import (
	"fmt"
	"unsafe"

	"heddle/internal/dl"
)

const (
	tableCallbacks = 1 // NVTX_ETID_CALLBACKS
	tableVersion   = 3 // NVTX_ETID_VERSIONINFO
	moduleCore     = 1 // NVTX_CB_MODULE_CORE
	coreFunctions  = 16

	rangePush = 9  // NVTX_CBID_CORE_RangePushA
	rangePop  = 11 // NVTX_CBID_CORE_RangePop
)

// Tool is an attached profiler.
type Tool struct {
	slots     [coreFunctions]uintptr     // the profiler's functions
	table     [coreFunctions + 1]uintptr // pointers to the slots, then 0
	callbacks struct {
		size  uintptr
		table uintptr // int (*)(module, pointer ***out, unsigned *size)
	}
	version struct {
		size              uintptr
		version, reserved uint32
		set               uintptr // void (*)(version)
	}
}

// Open attaches the profiler whose library is at path; with no path there is none, and no error.
func Open(path string) (*Tool, error) {
	if path == "" {
		return nil, nil
	}
	lib, err := dl.Open(path)
	if err != nil {
		return nil, fmt.Errorf("nvtx: %w", err)
	}
	start, err := lib.Func("InitializeInjectionNvtx2")
	if err != nil {
		return nil, fmt.Errorf("nvtx: %w", err)
	}
	t := new(Tool)
	for i := range t.slots {
		t.table[i] = uintptr(unsafe.Pointer(&t.slots[i]))
	}
	t.callbacks.size, t.version.size, t.version.version = unsafe.Sizeof(t.callbacks), unsafe.Sizeof(t.version), 3
	t.callbacks.table = dl.Callback(func(module, table, size, _, _ uintptr) uintptr { return t.functions(module, table, size) })
	t.version.set = dl.Callback(func(_, _, _, _, _ uintptr) uintptr { return 0 })
	export := dl.Callback(func(id, _, _, _, _ uintptr) uintptr {
		switch uint32(id) {
		case tableCallbacks:
			return uintptr(unsafe.Pointer(&t.callbacks))
		case tableVersion:
			return uintptr(unsafe.Pointer(&t.version))
		}
		return 0
	})
	if start.Call(export) == 0 {
		return nil, fmt.Errorf("nvtx: %s does not attach", path)
	}
	return t, nil
}

// functions is GetModuleFunctionTable.
func (t *Tool) functions(module, table, size uintptr) uintptr {
	if uint32(module) != moduleCore {
		return 0
	}
	if table != 0 {
		**(**uintptr)(unsafe.Pointer(&table)) = uintptr(unsafe.Pointer(&t.table[0]))
	}
	if size != 0 {
		**(**uint32)(unsafe.Pointer(&size)) = coreFunctions
	}
	return 1
}

// Push opens a range on the calling thread.
func (t *Tool) Push(name string) {
	if t == nil || t.slots[rangePush] == 0 {
		return
	}
	text := append([]byte(name), 0)
	dl.Func(t.slots[rangePush]).Call(uintptr(unsafe.Pointer(&text[0])))
}

// Pop closes the range that was opened last on the calling thread.
func (t *Tool) Pop() {
	if t != nil && t.slots[rangePop] != 0 {
		dl.Func(t.slots[rangePop]).Call()
	}
}
