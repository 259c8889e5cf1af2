package view

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"heddle/tile"
)

// SwizzleRequest is a buffer in shared memory, how it is written and read, and the swizzle to look at.
type SwizzleRequest struct {
	Swizzle  string // B,M,S on byte addresses; empty takes the widest hardware mode that the row allows
	Rows     int
	RowBytes int
	Pitch    int    // bytes from row to row; 0 means RowBytes
	Write    string // "rows:16", "columns:4", "matrix", or lanes to bytes: "(8,4):(128,16):16"
	Read     string
	Access   int // which of the reader's instructions is drawn
	Suggest  bool
}

// maxBuffer bounds a buffer in bytes: shared memory has fewer.
const maxBuffer = 1 << 20

// Scheme is one way to place the buffer.
type Scheme struct {
	Name       string `json:"name"`
	Write      int    `json:"write_wavefronts"` // of the whole buffer
	Read       int    `json:"read_wavefronts"`
	ExtraBytes int    `json:"extra_bytes"`
	Cost       string `json:"cost"`
	Hardware   string `json:"hardware"` // whether TMA and wgmma know it
	place      func(tile.Access) tile.Access
}

// SwizzleResult compares the schemes and shows one access in detail.
type SwizzleResult struct {
	Swizzle     tile.Swizzle      `json:"swizzle"`
	Rows        int               `json:"rows"`
	RowBytes    int               `json:"row_bytes"`
	Pitch       int               `json:"pitch"`
	Write       string            `json:"write"`
	Read        string            `json:"read"`
	LeastWrite  int               `json:"least_write_wavefronts"`
	LeastRead   int               `json:"least_read_wavefronts"`
	Schemes     []Scheme          `json:"schemes"`
	Plain       tile.BankReport   `json:"plain"`    // the drawn access, unswizzled
	Swizzled    tile.BankReport   `json:"swizzled"` // and swizzled
	Suggestions []tile.Suggestion `json:"suggestions,omitempty"`
	buffer      tile.Buffer
	access      tile.Access
	number      int
}

// Swizzle works out a request.
func Swizzle(r SwizzleRequest) (SwizzleResult, error) {
	if r.Pitch == 0 {
		r.Pitch = r.RowBytes
	}
	if r.Rows < 1 || r.RowBytes < 1 || r.Pitch < r.RowBytes || r.Rows > maxBuffer || r.Pitch > maxBuffer || r.Rows*r.Pitch > maxBuffer {
		return SwizzleResult{}, fmt.Errorf("tile: buffer of %d rows of %d bytes, %d apart: want at least one row and byte, a pitch that holds a row, and at most %d bytes", r.Rows, r.RowBytes, r.Pitch, maxBuffer)
	}
	res := SwizzleResult{Rows: r.Rows, RowBytes: r.RowBytes, Pitch: r.Pitch, Write: r.Write, Read: r.Read, number: r.Access}
	res.buffer = tile.Buffer{Rows: r.Rows, RowBytes: r.RowBytes, Pitch: r.Pitch}
	write, err := accesses(res.buffer, r.Write)
	if err != nil {
		return res, err
	}
	read, err := accesses(res.buffer, r.Read)
	if err != nil {
		return res, err
	}
	if r.Access < 0 || r.Access >= len(read) {
		return res, fmt.Errorf("tile: access %d of the reader's %d", r.Access, len(read))
	}
	res.access = read[r.Access]
	size := r.Rows * r.Pitch & -(r.Rows * r.Pitch) // the power of two that divides the buffer: no swizzle may leave it
	if r.Suggest {
		all, err := tile.Suggest(append(append([]tile.Access{}, write...), read...), size)
		if err != nil {
			return res, err
		}
		res.Suggestions = all[:min(len(all), 8)]
	}
	if res.Swizzle, err = r.swizzle(res.Suggestions); err != nil {
		return res, err
	}
	if s := res.Swizzle; s.B > 0 && 1<<(s.B+s.M+s.S) > size {
		return res, fmt.Errorf("tile: %v reaches bit %d, beyond the %d bytes that divide the buffer; hint: a larger buffer or a smaller S", s, s.B+s.M+s.S-1, size)
	}
	return res, res.compare(write, read)
}

func (r SwizzleRequest) swizzle(best []tile.Suggestion) (tile.Swizzle, error) {
	if r.Swizzle != "" {
		return tile.ParseSwizzle(r.Swizzle)
	}
	if len(best) > 0 {
		return best[0].Swizzle, nil
	}
	mode, ok := tile.SwizzleModeFor(r.Pitch)
	if !ok || r.Rows%8 != 0 {
		return tile.Swizzle{}, fmt.Errorf("tile: no hardware swizzle for %d rows %d bytes apart; hint: --swizzle B,M,S or --suggest", r.Rows, r.Pitch)
	}
	return mode.Bytes(), nil
}

// accesses reads "rows:16", pattern and bytes a lane; or "(8,4):(128,16):16", one instruction as a layout from lanes to bytes, and bytes a lane.
func accesses(b tile.Buffer, s string) ([]tile.Access, error) {
	name, bytes := s, "16"
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		name, bytes = s[:i], s[i+1:]
	}
	width, err := strconv.Atoi(bytes)
	if err != nil {
		return nil, fmt.Errorf("tile: access %q; hint: rows:16, columns:4, matrix, or lanes to bytes and a width, (8,4):(128,16):16", s)
	}
	var list []tile.Access
	if strings.Contains(name, ":") {
		list, err = lanes(b, name, width)
	} else {
		list, err = b.Accesses(tile.Pattern(name), width)
	}
	if err != nil {
		return nil, err
	}
	_, err = list[0].Conflicts()
	return list, err
}

// lanes is one access whose lane i is at byte l(i); lanes beyond the layout are off.
func lanes(b tile.Buffer, layout string, width int) ([]tile.Access, error) {
	l, err := tile.Parse(layout)
	if err != nil {
		return nil, err
	}
	if l.Size() > tile.Lanes || l.Cosize()-1+width > b.Rows*b.Pitch {
		return nil, fmt.Errorf("tile: access %v of %d lanes up to byte %d, want at most %d lanes within the buffer's %d bytes", l, l.Size(), l.Cosize()-1+width, tile.Lanes, b.Rows*b.Pitch)
	}
	a := tile.Access{Width: width}
	for lane := range a.Addr {
		if a.Addr[lane] = -1; lane < l.Size() {
			a.Addr[lane] = l.At(lane)
		}
	}
	return []tile.Access{a}, nil
}

// compare fills in the four schemes and the drawn access.
func (r *SwizzleResult) compare(write, read []tile.Access) error {
	unit := max(1<<r.Swizzle.M, tile.WordBytes)
	hardware := "no"
	for _, m := range tile.SwizzleModes() {
		if m.Bytes() == r.Swizzle && m != tile.SwizzleNone {
			hardware = fmt.Sprintf("TMA, wgmma: %v", m)
		}
	}
	r.Schemes = []Scheme{
		{Name: "plain", Cost: "nothing", Hardware: "yes", place: func(a tile.Access) tile.Access { return a }},
		{Name: "XOR " + r.Swizzle.String(), Cost: "1 LOP3 and a shift, self-inverse", Hardware: hardware, place: func(a tile.Access) tile.Access { return a.Through(r.Swizzle) }},
		{Name: fmt.Sprintf("ADD %d B a row", unit), Cost: "multiply-add and a mask", Hardware: "no", place: func(a tile.Access) tile.Access { return r.buffer.Rotated(a, unit) }},
		{Name: fmt.Sprintf("pad %d B a row", unit), Cost: "shared memory", Hardware: "no", ExtraBytes: r.Rows * unit, place: func(a tile.Access) tile.Access { return r.buffer.Padded(a, unit) }},
	}
	for i := range r.Schemes {
		s := &r.Schemes[i]
		var err error
		if s.Write, r.LeastWrite, err = cost(write, s.place); err != nil {
			s.Cost, s.Write = "impossible: pieces would be misaligned", -1
		}
		if s.Read, r.LeastRead, err = cost(read, s.place); err != nil {
			s.Cost, s.Read = "impossible: pieces would be misaligned", -1
		}
	}
	if r.Schemes[0].Write < 0 || r.Schemes[0].Read < 0 {
		return fmt.Errorf("tile: rows of %d bytes do not keep pieces aligned", r.Pitch)
	}
	_, r.LeastWrite, _ = tile.Cost(write)
	_, r.LeastRead, _ = tile.Cost(read)
	var err error
	if r.Plain, err = r.access.Conflicts(); err != nil {
		return err
	}
	if r.Swizzled, err = r.access.Through(r.Swizzle).Conflicts(); err != nil {
		return fmt.Errorf("tile: %v cuts the %d bytes of a lane apart; hint: M of at least %d: %w", r.Swizzle, r.access.Width, bits.Len(uint(r.access.Width))-1, err)
	}
	return nil
}

func cost(list []tile.Access, place func(tile.Access) tile.Access) (wavefronts, least int, err error) {
	moved := make([]tile.Access, len(list))
	for i, a := range list {
		moved[i] = place(a)
	}
	return tile.Cost(moved)
}
