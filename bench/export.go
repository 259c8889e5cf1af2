package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"heddle/ptx"
)

// ExportedLaunch is a launch for somebody else's process, such as bench/grouped.py, which measures it beside PyTorch: the PTX is in a file beside it.
type ExportedLaunch struct {
	Name    string         `json:"name"`
	PTX     string         `json:"ptx"`
	Entry   string         `json:"entry"`
	Grid    int            `json:"grid"` // CTAs along x
	Threads int            `json:"threads"`
	Shared  int            `json:"shared"`
	Args    []ExportedArg  `json:"args"`
	About   map[string]any `json:"about"` // what the launch computes
}

// ExportedArg is one parameter: a number, an address or a tensor map. Buffers go by name.
type ExportedArg struct {
	Kind    string  `json:"kind"` // u32, u64, f32, ptr, map
	Value   uint64  `json:"value,omitempty"`
	Float   float32 `json:"float,omitempty"`
	Buffer  string  `json:"buffer,omitempty"`
	Offset  int     `json:"offset,omitempty"`
	Type    uint32  `json:"type,omitempty"` // CUtensorMapDataType
	Dims    []int   `json:"dims,omitempty"`
	Strides []int   `json:"strides,omitempty"`
	Box     []int   `json:"box,omitempty"`
	Swizzle int     `json:"swizzle,omitempty"`
	L2      int     `json:"l2,omitempty"`
}

// Export writes a launch of the module's only entry to DIR/name.json and name.ptx.
func Export(dir, name string, m *ptx.Module, l ptx.Launch, args *ptx.Args, about map[string]any) error {
	e := m.Entry(l.Entry)
	if e == nil {
		return fmt.Errorf("bench: the module has no entry %q", l.Entry)
	}
	l, err := e.Check(l, args)
	if err != nil {
		return err
	}
	x := ExportedLaunch{Name: name, PTX: name + ".ptx", Entry: l.Entry, Grid: l.Grid.X, Threads: e.Threads, Shared: l.Shared, About: about}
	for i := range args.Len() {
		a, err := exportArg(args.At(i))
		if err != nil {
			return err
		}
		x.Args = append(x.Args, a)
	}
	b, err := json.MarshalIndent(x, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".ptx"), []byte(m.PTX()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".json"), append(b, '\n'), 0o644)
}

func exportArg(v ptx.Arg) (a ExportedArg, err error) {
	switch v.Kind {
	case ptx.KindU32:
		a.Kind, a.Value = "u32", v.Bits
	case ptx.KindU64:
		a.Kind, a.Value = "u64", v.Bits
	case ptx.KindF32:
		a.Kind, a.Float = "f32", math.Float32frombits(uint32(v.Bits))
	case ptx.KindPtr:
		a.Kind, a.Offset = "ptr", v.Offset
		if v.Buffer != nil {
			a.Buffer = v.Buffer.Name
		}
	case ptx.KindMap:
		m := v.Map
		a = ExportedArg{Kind: "map", Buffer: m.Buffer.Name, Offset: m.Offset, Dims: m.Dims, Strides: m.Strides, Box: m.Box, Swizzle: int(m.Swizzle), L2: int(m.L2)}
		a.Type, err = m.EncodeType()
	}
	return a, err
}
