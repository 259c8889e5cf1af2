// Package dl opens shared libraries at run time and calls their C functions without cgo.
//
// Library finds functions; Func.Call calls one; Prepared is for calls made a million times, with their words laid out once. A prepared call costs about 20 ns and allocates nothing:
// a small assembly trampoline runs on the scheduler's stack through runtime.cgocall, the way cgo itself calls C. Only integers and pointers can be passed, which is all that the libraries we
// open want (CUDA, cuBLAS, NCCL and MPI take scalars by pointer). Built with -tags nogpu, or where there is no trampoline, every Open answers ErrBuiltWithout.
package dl

import "errors"

// ErrBuiltWithout is what Open answers in a binary that cannot open libraries.
var ErrBuiltWithout = errors.New("dl: this heddle was built without shared libraries (-tags nogpu, or a platform other than linux on amd64 and arm64)")

// Func is the address of a C function.
type Func uintptr

// frame is what the trampoline reads: the function, how many words it takes, and the words. It is only read before the call, so it may lie on a stack that a callback moves.
type frame struct {
	fn   Func
	n    uintptr
	args *uintptr // at least minWords words
}

// minWords words are always loaded: the trampoline fills all argument registers (6 on amd64, 8 on arm64).
const minWords = 8

// maxWords bounds the words of Func.Call. The longest call we make is ncclCommInitRank's 22.
const maxWords = 24

// Prepared is a call whose argument words were laid out once. Words may be changed between calls, not during one.
type Prepared struct {
	frame frame
	words [maxWords]uintptr
}

// Prepare lays out a call of f. The words are kept as integers: memory of Go that they name must be kept alive by the caller and must lie on the heap.
func Prepare(f Func, words ...uintptr) *Prepared {
	p := new(Prepared)
	p.frame = frame{fn: f, n: uintptr(copy(p.words[:], words)), args: &p.words[0]}
	if len(words) > maxWords {
		panic("dl: more than 24 argument words")
	}
	return p
}

// Set changes word i.
func (p *Prepared) Set(i int, word uintptr) { p.words[i] = word }

// Call makes the call and returns its result as a 32-bit status, which is what all our libraries return.
func (p *Prepared) Call() int32 { return invoke(&p.frame) }

// Call calls f with argument words and returns its result as a 32-bit status. A word written as uintptr(unsafe.Pointer(&x)) in the call itself keeps x alive and unmoved until it returns.
//
//go:uintptrescapes
func (f Func) Call(words ...uintptr) int32 {
	if len(words) > maxWords {
		panic("dl: more than 24 argument words")
	}
	var w [maxWords]uintptr
	copy(w[:], words)
	return invoke(&frame{fn: f, n: uintptr(len(words)), args: &w[0]})
}
