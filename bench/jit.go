package bench

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"heddle/cuda"
	"heddle/ptx"
)

// JIT is the time that a process needs before it can launch a set of kernels.
type JIT struct {
	Kernels int     `json:"kernels"`
	Threads int     `json:"threads"`
	Print   float64 `json:"print_ms"` // the PTX text of all of them, on one thread
	Load    float64 `json:"load_ms"`  // compiled, or found in a cache, and loaded, on all threads
	Slowest float64 `json:"slowest_ms"`
	Name    string  `json:"slowest"`
	Cached  int     `json:"cached"` // from our own cache; the driver's own does not tell
}

// MeasureJIT compiles and loads one module each on so many threads.
func MeasureJIT(dev *cuda.Device, cache *cuda.Cache, names []string, modules []*ptx.Module, threads int) (JIT, error) {
	r := JIT{Kernels: len(modules), Threads: threads}
	begin := time.Now()
	texts := make([]string, len(modules))
	for i, m := range modules {
		texts[i] = m.PTX()
	}
	r.Print = ms(begin)
	begin = time.Now()
	next := make(chan int, len(texts))
	for i := range texts {
		next <- i
	}
	close(next)
	var mu sync.Mutex
	var wg sync.WaitGroup
	var fault error
	for range threads {
		wg.Go(func() {
			runtime.LockOSThread() // the device's context belongs to the thread, which ends with the goroutine
			if err := dev.Bind(); err != nil {
				mu.Lock()
				fault = err
				mu.Unlock()
				return
			}
			for i := range next {
				one := time.Now()
				m, err := dev.Compile(texts[i], cache)
				mu.Lock()
				switch took := ms(one); {
				case err != nil:
					fault = fmt.Errorf("%w (kernel %s)", err, names[i])
				case took > r.Slowest:
					r.Slowest, r.Name = took, names[i]
				}
				if err == nil && m.Cached {
					r.Cached++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	r.Load = ms(begin)
	return r, fault
}

func ms(begin time.Time) float64 { return time.Since(begin).Seconds() * 1e3 }
