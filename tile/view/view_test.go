package view

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"heddle/tile"
	"heddle/tile/draw"
)

// rendered is the picture as text; the SVG must be writable too.
func rendered(t *testing.T, picture func() (draw.Picture, error)) string {
	t.Helper()
	p, err := picture()
	if err != nil {
		t.Fatal(err)
	}
	var text, svg bytes.Buffer
	if err := p.Text(&text, false); err != nil {
		t.Fatal(err)
	}
	if err := p.SVG(&svg); err != nil || !strings.HasSuffix(svg.String(), "</svg>\n") {
		t.Fatalf("SVG: %v", err)
	}
	return text.String()
}

func TestLayoutComposesAndOperatesInOrder(t *testing.T) {
	for _, c := range []struct {
		r    LayoutRequest
		want string
	}{
		{LayoutRequest{Layouts: []string{"(4,(2,8)):(2,(1,16))"}}, "(4,(2,8)):(2,(1,16))"},
		{LayoutRequest{Layouts: []string{"(8,8):(8,1)", "(4,4):(2,16)"}}, "(4,4):(16,2)"},
		{LayoutRequest{Layouts: []string{"64:2", "(8,8):(8,1)", "8:4"}}, "(2,4):(64,2)"},
		{LayoutRequest{Layouts: []string{"(12,32):(32,1)"}, Do: []string{"zipped-divide (4,8)", "tiled"}}, "((4,8),3,4):((32,1),128,8)"},
		{LayoutRequest{Layouts: []string{"(12,32):(32,1)"}, Do: []string{"divide-modes (_,8)", "slice (3,(_,1))"}}, "104 + (8):(1)"},
		{LayoutRequest{Layouts: []string{"4:2"}, Do: []string{"complement 32", "coalesce"}}, "(2,4):(1,8)"},
		{LayoutRequest{Layouts: []string{"(4,8):(8,1)"}, Do: []string{"right-inverse"}}, "(8,4):(4,1)"},
		{LayoutRequest{Layouts: []string{"4:1"}, Do: []string{"product (2,3):(3,1)", "filter"}}, "(4,2,3):(1,12,4)"},
		{LayoutRequest{Layouts: []string{"(8,64):(64,1)"}, Swizzle: "3,3,3"}, "Sw<3,3,3> o 0 o (8,64):(64,1)"},
		{LayoutRequest{Layouts: []string{"Sw<3,3,3> o 64 o (8,64):(64,1)", "(4,4):(1,8)"}}, "Sw<3,3,3> o 64 o (4,4):(64,1)"},
	} {
		r, err := Layout(c.r)
		if err != nil || r.Text != c.want {
			t.Errorf("%+v: got %s, %v, want %s", c.r, r.Text, err, c.want)
			continue
		}
		for i, row := range r.Table { // the table is the layout
			for j, x := range row {
				at := r.Offset + r.Layout.At(i+len(r.Table)*j)
				if r.Swizzle != nil {
					at = r.Swizzle.Apply(at)
				}
				if x != at {
					t.Fatalf("%s: table[%d][%d] = %d, want %d", r.Text, i, j, x, at)
				}
			}
		}
		text := rendered(t, r.Picture)
		if one := len(r.Table) == 1; strings.Contains(text, "→ coordinate") != one || strings.Contains(text, "mode 0") == one {
			t.Errorf("%s: axes are wrong in\n%s", r.Text, text)
		}
	}
}

func TestAtomsAreDrawnWithEveryElementHeld(t *testing.T) {
	for spec, want := range map[string]string{
		"wgmma/n8/bf16/C": "T127 V3", "wgmma/tf32/A": "T127 V3", "mma/k16/bf16/A": "T31 V7", "mma/k8/tf32/B": "T31 V1", "mma/k32/fp8/C": "T31 V3", "mma/k16/f64/A": "T31 V7", "mma/k4/tf32/B": "T31 V0",
		"matrix/x4/trans": "T31 V7", "matrix/x2/memory": "T15 V7",
	} {
		r, err := Layout(LayoutRequest{Atom: spec})
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if text := rendered(t, r.Picture); !strings.Contains(text, want) || !r.Injective || r.TileRows*r.TileCols != r.Size {
			t.Errorf("%s: %d × %d, injective %v, %q not in\n%s", spec, r.TileRows, r.TileCols, r.Injective, want, text)
		}
	}
	r, err := Layout(LayoutRequest{Layouts: []string{"(8,2):(0,1)"}, Tile: "2x1"})
	if err != nil || !strings.Contains(rendered(t, r.Picture), "T0 V1…") {
		t.Errorf("an element held by many: %+v, %v", r, err)
	}
}

func TestSwizzleComparesSchemes(t *testing.T) {
	r, err := Swizzle(SwizzleRequest{Rows: 64, RowBytes: 128, Write: "rows:16", Read: "matrix", Suggest: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Swizzle != (tile.Swizzle{B: 3, M: 4, S: 3}) || r.Suggestions[0].Swizzle != r.Swizzle || r.Plain.Wavefronts != 32 || r.Swizzled.Wavefronts != 4 {
		t.Errorf("got %v, suggested %v, wavefronts %d and %d", r.Swizzle, r.Suggestions[0], r.Plain.Wavefronts, r.Swizzled.Wavefronts)
	}
	for i, want := range [][3]int{{64, 512, 0}, {64, 64, 0}, {64, 64, 0}, {64, 64, 1024}} {
		s := r.Schemes[i]
		if got := [3]int{s.Write, s.Read, s.ExtraBytes}; got != want {
			t.Errorf("%s: write, read, extra %v, want %v", s.Name, got, want)
		}
	}
	text := rendered(t, r.Picture)
	for _, want := range []string{"7.7", "[7.0]", "28-31", "\n   1   [1.0]   1.1    1.2    1.3    1.4    1.5    1.6    1.7", "\n   1    1.1   [1.0]   1.3    1.2    1.5    1.4    1.7    1.6", "crossbar, plain: 32 wavefronts in 4 phases", "TMA, wgmma: 128B"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	// Rows of 96 bytes, 128 apart: what lies between them is nobody's.
	r, err = Swizzle(SwizzleRequest{Swizzle: "3,4,3", Rows: 8, RowBytes: 96, Pitch: 128, Write: "rows:16", Read: "rows:16"})
	if text := rendered(t, r.Picture); err != nil || !strings.Contains(text, "\n   6                  6.4    6.5    6.2    6.3    6.0    6.1 \n") || strings.Contains(text, " 0.6") {
		t.Errorf("padded rows: %v, got\n%s", err, text)
	}
	// Any warp access: 8 rows of 16 bytes at one column, 128 bytes apart, and nothing else; read twice as wide it would leave the buffer.
	r, err = Swizzle(SwizzleRequest{Swizzle: "3,4,3", Rows: 8, RowBytes: 128, Write: "rows:16", Read: "8:128:16"})
	if err != nil || r.Plain.Wavefronts != 8 || r.Swizzled.Wavefronts != 1 || r.Plain.Phases != 1 {
		t.Errorf("column access: %d and %d wavefronts in %d phases, %v; want 8 and 1 in 1", r.Plain.Wavefronts, r.Swizzled.Wavefronts, r.Plain.Phases, err)
	}
	// Padding by 4 bytes would misalign pieces of 16: said, not counted.
	r, err = Swizzle(SwizzleRequest{Swizzle: "2,2,5", Rows: 64, RowBytes: 128, Write: "rows:4", Read: "columns:4"})
	if err != nil || r.Schemes[3].Read < 0 {
		t.Errorf("4-byte pieces can be padded by 4: %+v, %v", r.Schemes, err)
	}
}

func TestScheduleAndDepthAndEpilogue(t *testing.T) {
	s, err := Schedule(ScheduleRequest{M: 8192, N: 8192, K: 8192, Work: tile.Work{BM: 128, BN: 128, BK: 64, ElemBytes: 2}, Cluster: "1x1", Order: tile.Serpentine, Group: 12, Chip: tile.H100()})
	if err != nil || len(s.Waves) != 32 || len(s.Path) != 4096 || s.Waves[0].StripesA != 11 || len(s.Others) != 3 || s.LastWave != 4.0/132 {
		t.Fatalf("got %d waves, %v", len(s.Waves), err)
	}
	for _, o := range s.Others {
		if o.Order == tile.Raster && o.L2[0].HitRate >= s.Chosen.L2[0].HitRate {
			t.Errorf("raster is estimated at %v, serpentine at %v", o.L2[0].HitRate, s.Chosen.L2[0].HitRate)
		}
	}
	if text := rendered(t, s.Picture); !strings.Contains(text, "32 waves of 132") || !strings.Contains(text, "~hits at 30 MB") || !strings.Contains(text, "\nserpentine 12       [49.3]") ||
		strings.Contains(text, "[130.1]") {
		t.Errorf("got\n%s", text)
	}

	s, err = Schedule(ScheduleRequest{M: 1 << 15, N: 256, K: 64, Work: tile.Work{BM: 128, BN: 128, BK: 64, ElemBytes: 2}, Cluster: "1x1", Order: tile.Raster, Chip: tile.H100()})
	if text := rendered(t, s.Picture); err != nil || !strings.Contains(text, "is not drawn") || !strings.Contains(text, "A stripes") {
		t.Errorf("256 rows of tiles: %v, got\n%s", err, text)
	}

	d, err := Depth(DepthRequest{In: "bf16", Out: "bf16", Cluster: "2x1", Chip: tile.H200(), Choice: tile.Choice{BM: 256, BN: 256, BK: 64, Warpgroups: 2, Buffers: 2}})
	if err != nil || d.OK || d.Nearest == nil || !d.Nearest.OK() {
		t.Fatalf("got %+v, %v", d, err)
	}
	if text := rendered(t, d.Picture); !strings.Contains(text, "refused (registers): 256 accumulators") || !strings.Contains(text, "nearest that works") {
		t.Errorf("got\n%s", text)
	}

	d, err = Depth(DepthRequest{In: "bf16", Out: "bf16", Cluster: "2x1", Chip: tile.H200(), Choice: tile.Choice{BM: 128, BN: 256, BK: 64, Warpgroups: 2, Buffers: 2}})
	if err != nil || d.A == nil || d.A.Stride != 1024 || len(d.B.Steps) != 4 || !strings.Contains(rendered(t, d.Picture), "0x4000004000010000") {
		t.Errorf("descriptors: got %+v, %+v, %v", d.A, d.B, err)
	}

	e, err := Epilogue(EpilogueRequest{Element: "37,70", DepthRequest: DepthRequest{In: "bf16", Out: "bf16", Cluster: "2x1", Chip: tile.H200(),
		Choice: tile.Choice{BM: 128, BN: 256, BK: 64, Warpgroups: 2, Buffers: 2}}})
	// (37,70): row 5 of warp 2's first half, so lane 5·4+3; columns 64-71 are unit 4, registers 32…; byte 37·128+6·2, its unit 0 XOR 37 mod 8 = 5.
	if err != nil || e.Step.Lane != 23 || e.Step.Value != 32 || e.Step.Byte != 37*128+5*16+12 || e.Swizzled.Wavefronts != 16 || e.Plain.Wavefronts != 128 {
		t.Fatalf("got %+v, %v", e, err)
	}
	f32, err := Epilogue(EpilogueRequest{Element: "100,200", DepthRequest: DepthRequest{In: "bf16", Out: "f32", Cluster: "2x1", Chip: tile.H200(),
		Choice: tile.Choice{BM: 128, BN: 256, BK: 64, Warpgroups: 2, Buffers: 2}}})
	if err != nil || f32.Swizzled.Wavefronts != 32 || f32.Cured == nil || f32.Cured.Wavefronts != 16 || !strings.Contains(rendered(t, f32.Picture), "takes 16 wavefronts") {
		t.Errorf("32-bit output: got %+v, %v", f32, err)
	}
	text := rendered(t, e.Picture)
	for _, want := range []string{"[T23 d32]", "[37:0-7]", "\n 32   T0 d32", "\n 47  T28 d34", "lane 21 → byte 4800", "64-71", "72-79", "\n 39 "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestWhatCannotBeIsRefused(t *testing.T) {
	gemm := ScheduleRequest{M: 512, N: 512, K: 512, Work: tile.Work{BM: 128, BN: 128, BK: 64, ElemBytes: 2}, Cluster: "1x1", Order: tile.Raster, Chip: tile.H100()}
	schedule := func(edit func(*ScheduleRequest)) error {
		r := gemm
		edit(&r)
		_, err := Schedule(r)
		return err
	}
	layout := func(r LayoutRequest) error {
		l, err := Layout(r)
		if err == nil {
			_, err = l.Picture()
		}
		return err
	}
	swizzle := func(r SwizzleRequest) error { _, err := Swizzle(r); return err }
	for name, err := range map[string]error{
		"nothing":        layout(LayoutRequest{}),
		"both":           layout(LayoutRequest{Atom: "mma", Layouts: []string{"4:1"}}),
		"operation":      layout(LayoutRequest{Layouts: []string{"4:1"}, Do: []string{"weave"}}),
		"after a slice":  layout(LayoutRequest{Layouts: []string{"(4,4)"}, Do: []string{"slice (_,1)", "coalesce"}}),
		"two swizzles":   layout(LayoutRequest{Layouts: []string{"Sw<1,0,1> o 8:1"}, Swizzle: "1,0,1"}),
		"inner swizzle":  layout(LayoutRequest{Layouts: []string{"8:1", "Sw<1,0,1> o 8:1"}}),
		"offset, then":   layout(LayoutRequest{Layouts: []string{"3 o 8:1"}, Do: []string{"coalesce"}}),
		"nested tiler":   layout(LayoutRequest{Layouts: []string{"4:1"}, Do: []string{"zipped-divide ((2,2))"}}),
		"too large":      layout(LayoutRequest{Layouts: []string{"(200,200)"}}),
		"huge":           layout(LayoutRequest{Layouts: []string{"(20000,20000)"}}),
		"outside":        layout(LayoutRequest{Layouts: []string{"(4,4)"}, Tile: "2x2"}),
		"atom":           layout(LayoutRequest{Atom: "tensor/n8"}),
		"atom part":      layout(LayoutRequest{Atom: "wgmma/q8"}),
		"atom n":         layout(LayoutRequest{Atom: "wgmma/n7"}),
		"wgmma B":        layout(LayoutRequest{Atom: "wgmma/n8/B"}),
		"compose":        layout(LayoutRequest{Layouts: []string{"(2,3):(18,3)", "3:1"}}),
		"pattern":        swizzle(SwizzleRequest{Rows: 8, RowBytes: 128, Write: "diagonal", Read: "rows"}),
		"access":         swizzle(SwizzleRequest{Rows: 8, RowBytes: 128, Write: "rows", Read: "rows", Access: 2}),
		"width":          swizzle(SwizzleRequest{Rows: 8, RowBytes: 120, Write: "rows:12", Read: "rows:12"}),
		"leaves buffer":  swizzle(SwizzleRequest{Swizzle: "3,4,5", Rows: 8, RowBytes: 128, Write: "rows", Read: "rows"}),
		"cuts pieces":    swizzle(SwizzleRequest{Swizzle: "3,2,3", Rows: 64, RowBytes: 128, Write: "rows", Read: "rows"}),
		"no mode":        swizzle(SwizzleRequest{Rows: 7, RowBytes: 128, Write: "rows", Read: "rows"}),
		"cluster":        schedule(func(r *ScheduleRequest) { r.Cluster = "2" }),
		"cluster size":   schedule(func(r *ScheduleRequest) { r.Cluster = "4x5" }),
		"no rows":        schedule(func(r *ScheduleRequest) { r.M = 0 }),
		"too many tiles": schedule(func(r *ScheduleRequest) { r.M, r.N = 1<<40, 1<<40 }),
		"no SM":          schedule(func(r *ScheduleRequest) { r.SMs = -1 }),
		"negative group": schedule(func(r *ScheduleRequest) { r.Order = tile.Grouped }),
		"depth type":     func() error { _, err := Depth(DepthRequest{In: "int4", Out: "bf16", Cluster: "1x1"}); return err }(),
		"depth cluster":  func() error { _, err := Depth(DepthRequest{In: "fp8", Out: "bf16", Cluster: "0x1"}); return err }(),
		"epilogue":       func() error { _, err := Epilogue(EpilogueRequest{Element: "1,2"}); return err }(),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Nothing that a user can type makes a request panic.
func FuzzRequests(f *testing.F) {
	f.Add("(8,(2,4)):(2,(1,16))", "divide (4,2):(2,1)", "3,4,3", "wgmma/n16/bf16/C", "rows:16", 64, 128, 3)
	f.Add("(4,4)", "slice (_,2)", "1,2,3", "matrix/x4/trans", "matrix", 16, 32, 0)
	f.Add("4", "zipped-divide (4,_,8)", "", "mma/k8/tf32/A", "columns:4", 1, 4, -1)
	f.Fuzz(func(t *testing.T, layout, do, swizzle, atom, access string, rows, bytes, n int) {
		if r, err := Layout(LayoutRequest{Layouts: []string{layout, layout}, Do: []string{do}, Swizzle: swizzle}); err == nil {
			r.Picture()
		}
		if r, err := Layout(LayoutRequest{Atom: atom, Do: []string{do}, Tile: "8x8"}); err == nil {
			r.Picture()
		}
		if r, err := Swizzle(SwizzleRequest{Swizzle: swizzle, Rows: rows, RowBytes: bytes, Pitch: bytes + n%8, Write: access, Read: access, Access: n, Suggest: rows < 64}); err == nil {
			if _, err := r.Picture(); err != nil {
				t.Error(err)
			}
			if _, err := json.Marshal(r); err != nil {
				t.Error(err)
			}
		}
		if r, err := Epilogue(EpilogueRequest{Element: layout, DepthRequest: DepthRequest{In: "bf16", Out: "f32", Cluster: "1x1", Chip: tile.H200(),
			Choice: tile.Choice{BM: rows, BN: bytes, BK: 64, Warpgroups: n, Buffers: 1}}}); err == nil {
			r.Picture()
		}
	})
}
