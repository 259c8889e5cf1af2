package ptx

import "fmt"

// The parameter handles are operands in the body and fill the argument list at launch.
type (
	ParamU32 struct {
		U32
		index int
	}
	ParamU64 struct {
		U64
		index int
	}
	ParamF32 struct {
		F32
		index int
	}
	ParamPtr struct {
		GAddr
		index int
	}
	ParamMap struct {
		TensorMap
		index int
	}
)

func (k *Builder) param(name string, kind ParamKind, load func(i int) operand) (int, operand) {
	i := len(k.params)
	for _, p := range k.params {
		if p.Name == name {
			k.fail("two parameters are named %s", name)
		}
	}
	k.params = append(k.params, Param{name, kind})
	return i, k.once(keyParam+Op(i), func() operand { return load(i) })
}

// ParamU32 adds a parameter.
func (k *Builder) ParamU32(name string) ParamU32 {
	i, o := k.param(name, KindU32, func(i int) operand { return k.readParamU32(i).operand })
	return ParamU32{U32{o}, i}
}

// ParamU64 adds a parameter.
func (k *Builder) ParamU64(name string) ParamU64 {
	i, o := k.param(name, KindU64, func(i int) operand { return k.readParamU64(i).operand })
	return ParamU64{U64{o}, i}
}

// ParamF32 adds a parameter.
func (k *Builder) ParamF32(name string) ParamF32 {
	i, o := k.param(name, KindF32, func(i int) operand { return k.readParamF32(i).operand })
	return ParamF32{F32{o}, i}
}

// ParamPtr adds a parameter: an address in global memory.
func (k *Builder) ParamPtr(name string) ParamPtr {
	i, o := k.param(name, KindPtr, func(i int) operand { return k.readParamPtr(i).operand })
	return ParamPtr{GAddr{o}, i}
}

// ParamMap adds a parameter: a tensor map.
func (k *Builder) ParamMap(name string) ParamMap {
	i, o := k.param(name, KindMap, func(i int) operand { return k.readParamMap(i).operand })
	return ParamMap{TensorMap{o}, i}
}

// Put sets the parameter's value in a.
func (p ParamU32) Put(a *Args, v uint32) { a.put(p.k, p.index, Arg{Kind: KindU32, Bits: uint64(v)}) }

// Put sets the parameter's value in a.
func (p ParamU64) Put(a *Args, v uint64) { a.put(p.k, p.index, Arg{Kind: KindU64, Bits: v}) }

// Put sets the parameter's value in a.
func (p ParamF32) Put(a *Args, v float32) { a.put(p.k, p.index, Arg{Kind: KindF32, Bits: f32bits(v)}) }

// Put makes the parameter point offset bytes into b.
func (p ParamPtr) Put(a *Args, b *Buffer, offset int) {
	a.put(p.k, p.index, Arg{Kind: KindPtr, Buffer: b, Offset: offset})
}

// Put sets the parameter's tensor map in a.
func (p ParamMap) Put(a *Args, m *Map) { a.put(p.k, p.index, Arg{Kind: KindMap, Map: m}) }

func (a *Args) put(k *Builder, i int, v Arg) {
	if a.entry.k != k && a.err == nil {
		a.err = fmt.Errorf("ptx: argument for a parameter of %s put into the list of %s", k.name, a.entry.Name)
		return
	}
	a.vals[i] = v
}
