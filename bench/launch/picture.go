package launch

import (
	"fmt"
	"io"
	"strings"
)

// The picture has a row a way: the chain of the median period, with the first kernel of the next, on one scale of time. A pale bar is a kernel that waits for its
// predecessor, a full one is its work; between full bars the device does nothing for the chain.

const (
	pictureWidth = 1000
	labelWidth   = 190
	rowHeight    = 34
	barHeight    = 18
)

// colors of zero, zero, gemm, gemm, and the next chain's zero; readable on white and on black.
var colors = [5]string{"#c98500", "#e0a83e", "#1f77b4", "#5aa0d6", "#999999"}

// Picture draws the timelines of a size, live (on an idle device, so that the host's time shows) or queued.
func (s *Size) Picture(w io.Writer, live bool) error {
	var ways []*Way
	lead, last := 0.0, 0.0 // of the first kernel before its work, and from there to the last one's end
	for i := range s.Ways {
		if x := s.Ways[i].Stamped; x != nil {
			ways = append(ways, &s.Ways[i])
			t := x.drawn(live)
			lead, last = max(lead, t[0].Wait), max(last, t[4].End-t[0].Wait)
		}
	}
	if len(ways) == 0 {
		return fmt.Errorf("launch: no way of n = %d has stamps to draw", s.N)
	}
	var b strings.Builder
	height := 70 + rowHeight*len(ways) + 30
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", pictureWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", pictureWidth, height)
	how := "queued ahead: the device alone"
	if live {
		how = "launched onto an idle device: the host shows"
	}
	fmt.Fprintf(&b, `<text x="10" y="20" font-size="15">zero, zero, gemm, gemm at n = %d, %s</text>`+"\n", s.N, how)
	legend(&b)
	scale := (pictureWidth - labelWidth - 80) / (lead + last)
	zero := labelWidth + lead*scale // where every chain's first kernel gets to work
	for i, v := range ways {
		t := v.Stamped.drawn(live)
		row(&b, v, t, 62+rowHeight*i, func(us float64) float64 { return zero + (us-t[0].Wait)*scale })
	}
	axis(&b, 62+rowHeight*len(ways), zero, last, scale)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// drawn is the chain that a picture shows.
func (s *Stamped) drawn(live bool) [5]Times {
	if live {
		return s.Live
	}
	return s.Timeline
}

func legend(b *strings.Builder) {
	x := 10
	for i, name := range []string{"zero C", "zero E", "gemm C = A·Bᵀ", "gemm E = C·Dᵀ", "next chain"} {
		fmt.Fprintf(b, `<rect x="%d" y="32" width="12" height="12" fill="%s"/><text x="%d" y="42">%s</text>`+"\n", x, colors[i], x+16, name)
		x += 30 + 8*len([]rune(name))
	}
	fmt.Fprintf(b, `<rect x="%d" y="32" width="12" height="12" fill="#1f77b4" opacity="0.3"/><text x="%d" y="42">started early, waits</text>`+"\n", x, x+16)
}

// row draws one chain. Kernels that overlap, which PDL is for, are drawn on two lines in turn.
func row(b *strings.Builder, v *Way, t [5]Times, y int, at func(us float64) float64) {
	fmt.Fprintf(b, `<text x="10" y="%d">%s</text>`+"\n", y+16, v.Name)
	for i, k := range t {
		line := y + i%2*(barHeight/2+2)
		if k.Wait > k.Begin {
			fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" opacity="0.3"/>`+"\n", at(k.Begin), line, at(k.Wait)-at(k.Begin), barHeight/2, colors[i])
		}
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>%.2f to %.2f µs</title></rect>`+"\n", at(k.Wait), line, max(0.5, at(k.End)-at(k.Wait)), barHeight/2, colors[i], k.Wait, k.End)
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%d" fill="#444">%.1f µs</text>`+"\n", at(t[4].End)+8, y+14, t[4].Wait-t[0].Wait)
}

// axis draws ticks at round times.
func axis(b *strings.Builder, y int, zero, last, scale float64) {
	step := 1.0
	for n := 0; last/step > 12; n++ {
		step *= []float64{2, 2.5, 2}[n%3]
	}
	fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%.1f" y2="%d" stroke="#888"/>`+"\n", labelWidth, y, zero+last*scale, y)
	for t := 0.0; t <= last; t += step {
		x := zero + t*scale
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#888"/><text x="%.1f" y="%d" text-anchor="middle" fill="#444">%g</text>`+"\n", x, y, x, y+4, x, y+17, t)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end" fill="#444">µs</text>`+"\n", labelWidth-8, y+17)
}
