package cupti

import (
	"errors"
	"fmt"
	"unsafe"

	"heddle/internal/dl"
	"heddle/trace"
)

// kind is CUpti_ActivityKind.
type kind uint32

const (
	kindMemcpy   kind = 1
	kindMemset   kind = 2
	kindDriver   kind = 4
	kindRuntime  kind = 5
	kindKernel   kind = 10 // concurrent kernels: recording does not serialise them
	kindOverhead kind = 17
	kindSync     kind = 38
)

// recorded are the kinds that are switched on. Runtime calls are those of libraries such as cuBLAS and NCCL; heddle itself calls the driver.
var recorded = [...]kind{kindMemcpy, kindMemset, kindDriver, kindRuntime, kindKernel, kindOverhead, kindSync}

// Recording is under way from Start to Stop.
type Recording struct{ lib *Library }

// Start switches recording on. Graphs instantiated before are recorded too, by node.
func (l *Library) Start() (*Recording, error) {
	if !l.registered {
		b := &l.buffers
		b.lent = map[uintptr][]uint64{}
		request := dl.Callback(func(buffer, size, most, _, _ uintptr) uintptr { b.request(buffer, size, most); return 0 })
		complete := dl.Callback(func(_, _, buffer, _, valid uintptr) uintptr { b.complete(buffer, valid); return 0 })
		if err := l.check("cuptiActivityRegisterCallbacks", l.register.Call(request, complete)); err != nil {
			return nil, err
		}
		const linuxThreads = 1 // ids as gettid gives them
		if err := l.check("cuptiSetThreadIdType", l.threadID.Call(linuxThreads)); err != nil {
			return nil, err
		}
		l.registered = true
	}
	for _, k := range recorded {
		if err := l.check(fmt.Sprintf("cuptiActivityEnable(%d)", k), l.enable.Call(uintptr(k))); err != nil {
			return nil, err
		}
	}
	return &Recording{l}, nil
}

// Found is what a recording holds.
type Found struct {
	Events  []trace.Event
	Dropped int // records that CUPTI had no room for
	Unknown int // records of kinds or contents that decode.go does not know
}

// Stop switches recording off and gives what was recorded. Synchronise the device before: what still runs is not in it. It must come before modules are unloaded, because records hold
// pointers to the names of kernels.
func (r *Recording) Stop(rank int) (Found, error) {
	l := r.lib
	const forced = 1
	err := l.check("cuptiActivityFlushAll", l.flush.Call(forced))
	for _, k := range recorded {
		err = errors.Join(err, l.check("cuptiActivityDisable", l.disable.Call(uintptr(k))))
	}
	var f Found
	d := decoder{lib: l, rank: rank, found: &f, names: map[call]string{}}
	for _, b := range l.buffers.take() {
		var at uintptr // of the record last read
		for {
			code := l.next.Call(uintptr(unsafe.Pointer(&b.memory[0])), uintptr(b.bytes), uintptr(unsafe.Pointer(&at)))
			if code != 0 { // CUPTI_ERROR_MAX_LIMIT_REACHED at the end
				break
			}
			offset := int(at - uintptr(unsafe.Pointer(&b.memory[0])))
			d.record(record(bytesOf(b.memory)[offset:b.bytes]))
		}
	}
	var n uint64
	if l.dropped.Call(0, 0, uintptr(unsafe.Pointer(&n))) == 0 {
		f.Dropped = int(n)
	}
	return f, err
}

func bytesOf(w []uint64) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), 8*len(w)) }
