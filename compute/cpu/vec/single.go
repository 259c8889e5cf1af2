package vec

import "unsafe"

// single reports whether T is float32, which has kernels; the compiler folds it.
func single[T Float]() bool { return unsafe.Sizeof(T(0)) == 4 }

// at is where a row of float32 starts. It must only be used when single.
func at[T Float](x []T) *float32 { return (*float32)(unsafe.Pointer(unsafe.SliceData(x))) }
