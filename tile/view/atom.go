package view

import (
	"fmt"
	"strconv"
	"strings"

	"heddle/tile"
)

// atomSpec is "wgmma/n16/bf16/C" taken apart. Parts may come in any order.
type atomSpec struct {
	kind, operand  string
	n, k, x, bytes int
	trans, regs    bool
}

func parseAtom(s string) (atomSpec, error) {
	parts := strings.Split(s, "/")
	a := atomSpec{kind: parts[0], operand: "C", n: 64, k: 16, x: 4, bytes: 2}
	if a.kind == "matrix" {
		a.operand = "registers"
	}
	for _, part := range parts[1:] {
		if b, err := ElemBytes(part); err == nil {
			a.bytes = b
			continue
		}
		switch part {
		case "A", "B", "C", "memory", "registers":
			a.operand = part
			continue
		case "trans":
			a.trans = true
			continue
		}
		into := map[byte]*int{'n': &a.n, 'k': &a.k, 'x': &a.x}
		if part == "" || into[part[0]] == nil {
			return a, fmt.Errorf("tile: atom %q: part %q; hint: wgmma/n16/bf16/C, mma/k16/bf16/A or matrix/x4/trans/memory", s, part)
		}
		v, err := strconv.Atoi(part[1:])
		if err != nil {
			return a, fmt.Errorf("tile: atom %q: part %q wants a number", s, part)
		}
		*into[part[0]] = v
	}
	return a, nil
}

// atom is the thread-value layout that the spec names. A of wgmma is the register form: in shared memory it has no threads.
func atom(s string) (tile.Layout, error) {
	a, err := parseAtom(s)
	if err != nil {
		return tile.Layout{}, err
	}
	if a.kind == "matrix" {
		m, err := tile.Matrices(a.x, a.trans)
		if a.operand == "memory" {
			return m.Memory, err
		}
		return m.Registers, err
	}
	m, err := a.matrix()
	if err != nil {
		return tile.Layout{}, err
	}
	switch {
	case a.operand == "A":
		return m.A, nil
	case a.operand == "C":
		return m.C, nil
	case a.operand == "B" && a.kind == "mma":
		return m.B, nil
	}
	return tile.Layout{}, fmt.Errorf("tile: atom %q: no thread holds operand %s", s, a.operand)
}

func (a atomSpec) matrix() (tile.Atom, error) {
	switch a.kind {
	case "wgmma":
		return tile.Wgmma(a.n, a.bytes, true)
	case "mma":
		return tile.MMA(a.k, a.bytes)
	}
	return tile.Atom{}, fmt.Errorf("tile: unknown atom %q; hint: wgmma, mma or matrix", a.kind)
}

// atomTile is the tile that the atom's layout maps into: rows × columns.
func atomTile(s string, l tile.Layout) (rows, cols int) {
	a, err := parseAtom(s)
	if err != nil {
		return 0, 0
	}
	rows = 8
	switch {
	case a.kind == "wgmma":
		rows = 64
	case a.kind == "mma" && a.operand != "B":
		rows = 16
	}
	return rows, l.Size() / rows
}
