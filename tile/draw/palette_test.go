package draw

import (
	"math"
	"testing"
)

// TestShadesStayApartForColourBlindReaders simulates the three kinds of dichromacy (Machado, Oliveira and Fernandes 2009, severity 1) and demands that
// any two shades differ by ΔE*ab ≥ 10 in CIELAB, more than four times the just noticeable 2.3.
func TestShadesStayApartForColourBlindReaders(t *testing.T) {
	for name, m := range map[string][3][3]float64{
		"all colours": {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
		"protanopia":  {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
		"deutanopia":  {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
		"tritanopia":  {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
	} {
		for i := range Shades {
			for j := range i {
				if d := distance(seen(m, i), seen(m, j)); d < 10 {
					t.Errorf("%s: shades %d and %d differ by %.1f", name, i, j, d)
				}
			}
		}
	}
}

// seen is shade i in linear RGB through the matrix m, as CIELAB under D65.
func seen(m [3][3]float64, i int) [3]float64 {
	var linear, rgb [3]float64
	for j, c := range shade(i) {
		if x := float64(c) / 255; x <= 0.04045 {
			linear[j] = x / 12.92
		} else {
			linear[j] = math.Pow((x+0.055)/1.055, 2.4)
		}
	}
	for j := range rgb {
		for k := range linear {
			rgb[j] += m[j][k] * linear[k]
		}
		rgb[j] = min(max(rgb[j], 0), 1)
	}
	f := func(r, g, b, white float64) float64 {
		x := (r*rgb[0] + g*rgb[1] + b*rgb[2]) / white
		if x > 0.008856 {
			return math.Cbrt(x)
		}
		return 7.787*x + 16.0/116
	}
	x, y, z := f(0.4124, 0.3576, 0.1805, 0.95047), f(0.2126, 0.7152, 0.0722, 1), f(0.0193, 0.1192, 0.9505, 1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

func distance(a, b [3]float64) float64 {
	d := 0.0
	for i := range a {
		d += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(d)
}
