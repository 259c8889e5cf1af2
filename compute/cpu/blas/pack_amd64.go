//go:build amd64 && !purego

package blas

// packAVX2 is packPortable for panels of at most 8, of 14, 16 or 32 columns. It
// leaves what lies beyond cols undefined where packPortable writes zeros: no
// element of C that is kept depends on it.
func packAVX2(dst []float32, x view[float32], p packing) {
	done := 0 // panels
	switch {
	case x.cs == 1:
		done = scatter(dst, x, p)
	case x.rs == 1 && p.depth >= 8:
		done = transposePanels(dst, x, p)
	}
	if at := done * p.width; at < p.cols {
		p.cols -= at
		packPortable(dst[done*p.panel:], x.at(0, at), p)
	}
}

// piece is how many elements of a row are copied for a panel.
func piece(width int) int {
	switch {
	case width <= 8:
		return 8
	case width <= 16:
		return 16
	}
	return 32
}

// scatter packs the panels whose pieces lie in memory and gives their number.
func scatter(dst []float32, x view[float32], p packing) int {
	n := piece(p.width)
	end := len(x.data) - (p.depth-1)*x.rs - n // where the last piece of the last row may start
	if end < 0 || n > p.width && p.panel < p.depth*p.width+n {
		return 0
	}
	all := min((p.cols+p.width-1)/p.width, end/p.width+1)
	// Eight panels at a time: more would not stay in the ways of a cache set.
	for from := 0; from < all; from += 8 {
		panels := min(8, all-from)
		to := dst[from*p.panel:]
		_ = to[(panels-1)*p.panel+(p.depth-1)*p.width+n-1]
		d, s := &to[0], &x.data[from*p.width]
		switch n {
		case 8:
			scatter8(d, 4*p.panel, 4*p.width, s, 4*p.width, 4*x.rs, panels, p.depth)
		case 16:
			scatter16(d, 4*p.panel, 4*p.width, s, 4*p.width, 4*x.rs, panels, p.depth)
		case 32:
			scatter32(d, 4*p.panel, 4*p.width, s, 4*p.width, 4*x.rs, panels, p.depth)
		}
	}
	return all
}

// transposePanels packs the panels whose columns lie in memory, eight columns at
// a time, and gives their number.
func transposePanels(dst []float32, x view[float32], p packing) int {
	if p.width < 8 && p.panel < p.depth*p.width+8 {
		return 0
	}
	all := (p.cols + p.width - 1) / p.width
	for q := range all {
		to, from := dst[q*p.panel:], q*p.width
		wide := max(8, p.width)
		if (from+wide-1)*x.cs+p.depth > len(x.data) {
			return q
		}
		_ = to[(p.depth-1)*p.width+wide-1]
		for j := 0; j < wide; j += 8 {
			j := min(j, wide-8) // the last eight may overlap those before
			transpose8(&to[j], 4*p.width, &x.data[(from+j)*x.cs], 4*x.cs, p.depth/8)
		}
		for k := p.depth &^ 7; k < p.depth; k++ {
			for j := range p.width {
				to[k*p.width+j] = x.data[k+(from+j)*x.cs]
			}
		}
	}
	return all
}
