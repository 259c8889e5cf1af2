//go:build linux && (amd64 || arm64) && !nogpu

package dl

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

func libc(t testing.TB, name string) Func {
	t.Helper()
	l, err := Open("libc.so.6")
	if err != nil {
		t.Skip("no glibc here:", err)
	}
	f, err := l.Func(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// snprintf prints every word it is handed, so a word lost, doubled or swapped between registers and stack shows. All counts up to the limit are tried:
// odd and even numbers of stack words are aligned differently.
func TestEveryArgumentWordArrives(t *testing.T) {
	snprintf := libc(t, "snprintf")
	for n := 0; n <= maxWords-3; n++ {
		buf, format := make([]byte, 512), append([]byte(strings.Repeat("%lx ", n)), 0)
		words := []uintptr{uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), uintptr(unsafe.Pointer(&format[0]))}
		var want strings.Builder
		for i := range n {
			w := uintptr(0xfedcba9800000000) + uintptr(i*0x1111+1)
			words = append(words, w)
			fmt.Fprintf(&want, "%x ", w)
		}
		for name, got := range map[string]int32{"Call": snprintf.Call(words...), "Prepared": Prepare(snprintf, words...).Call()} {
			if s := string(buf[:want.Len()]); s != want.String() || int(got) != want.Len() {
				t.Errorf("%s with %d words: got %q (%d), want %q", name, n, s, got, want.String())
			}
		}
		runtime.KeepAlive(buf)
		runtime.KeepAlive(format)
	}
}

func TestNegativeStatusAndSetWord(t *testing.T) {
	abs, atoi := libc(t, "abs"), libc(t, "atoi")
	p := Prepare(abs, 0)
	for _, v := range []int32{0, 1, -1, -12345, 1<<31 - 1} {
		p.Set(0, uintptr(uint32(v)))
		if got := p.Call(); got != max(v, -v) {
			t.Errorf("abs(%d) = %d", v, got)
		}
	}
	text := append([]byte("-42"), 0)
	if got := atoi.Call(uintptr(unsafe.Pointer(&text[0]))); got != -42 {
		t.Errorf("atoi(-42) = %d", got)
	}
}

func TestMissingLibraryAndFunctionAreErrors(t *testing.T) {
	if _, err := Open("libheddle-does-not-exist.so.1"); err == nil || !strings.Contains(err.Error(), "libheddle-does-not-exist.so.1") {
		t.Errorf("got %v", err)
	}
	l, err := Open("libc.so.6")
	if err != nil {
		t.Skip("no glibc here:", err)
	}
	if _, err := l.Func("heddle_does_not_exist"); err == nil || !strings.Contains(err.Error(), "libc.so.6 has no heddle_does_not_exist") {
		t.Errorf("got %v", err)
	}
}

func TestPreparedCallsAllocateNothing(t *testing.T) {
	p := Prepare(libc(t, "abs"), 7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	if n := testing.AllocsPerRun(100, func() { p.Set(3, 9); p.Call() }); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}

// Calls run while the collector works and other goroutines grow their stacks.
func TestCallsSurviveCollections(t *testing.T) {
	abs := libc(t, "abs")
	done := make(chan bool)
	for g := range 4 {
		go func() {
			ok := true
			for i := range 2000 {
				ok = ok && grow(abs, i%50, int32(-g*10000-i)) == int32(g*10000+i)
				if i%200 == 0 {
					runtime.GC()
				}
			}
			done <- ok
		}()
	}
	for range 4 {
		if !<-done {
			t.Error("a call returned a wrong value")
		}
	}
}

func grow(f Func, depth int, v int32) int32 {
	var pad [256]byte
	if depth > 0 {
		r := grow(f, depth-1, v)
		runtime.KeepAlive(&pad)
		return r
	}
	return f.Call(uintptr(uint32(v)), 1, 2, 3, 4, 5, 6, 7, 8)
}

func BenchmarkCall(b *testing.B) {
	p := Prepare(libc(b, "abs"), 7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	b.ReportAllocs()
	for b.Loop() {
		p.Call()
	}
}
