// Package report draws what runs leave behind. It reads numbers and writes pictures; it knows no engine.
package report

import (
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
	"image/color"
)

// Point is one value of a curve.
type Point struct{ X, Y float64 }

// LossSVG writes the training loss over tokens, with the evaluations as dots.
func LossSVG(w io.Writer, train, val []Point) error {
	p := plot.New()
	p.Title.Text = "loss"
	p.X.Label.Text = "tokens seen"
	p.Y.Label.Text = "nats a token"
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(ticks), plot.TickerFunc(ticks)
	p.Add(plotter.NewGrid())
	line, err := plotter.NewLine(points(train))
	if err != nil {
		return err
	}
	line.Color, line.Width = color.RGBA{0x1f, 0x77, 0xb4, 0xff}, vg.Points(1.5)
	p.Add(line)
	p.Legend.Add("training", line)
	if len(val) > 0 {
		dots, err := plotter.NewScatter(points(val))
		if err != nil {
			return err
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: color.RGBA{0xd5, 0x5e, 0x00, 0xff}, Radius: vg.Points(4), Shape: draw.CircleGlyph{}}
		p.Add(dots)
		p.Legend.Add("held out", dots)
	}
	p.Legend.Top, p.Legend.XOffs = true, -vg.Points(8)
	p.Y.Min, p.Y.Max = p.Y.Min-0.03*(p.Y.Max-p.Y.Min), p.Y.Max+0.03*(p.Y.Max-p.Y.Min) // room for the line's own width
	c := vgsvg.New(7*vg.Inch, 4*vg.Inch)
	p.Draw(draw.New(c))
	_, err = c.WriteTo(w)
	return err
}

func points(in []Point) plotter.XYs {
	out := make(plotter.XYs, len(in))
	for i, p := range in {
		out[i].X, out[i].Y = p.X, p.Y
	}
	return out
}

// ticks are the multiples of 1, 2 or 5 times a power of ten that divide an axis into four to ten parts.
func ticks(lo, hi float64) (out []plot.Tick) {
	if !(hi > lo) || math.IsInf(hi-lo, 0) {
		return []plot.Tick{{Value: lo, Label: strconv.FormatFloat(lo, 'g', 4, 64)}}
	}
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/4)))
	for _, m := range [...]float64{5, 2} {
		if step*m <= (hi-lo)/4 {
			step *= m
			break
		}
	}
	for n := math.Ceil(lo / step); n*step <= hi; n++ {
		v := n * step
		label := strconv.FormatFloat(v, 'f', max(0, -int(math.Floor(math.Log10(step)))), 64)
		if hi >= 1e4 && v != 0 && step >= 1e3 {
			label = strconv.FormatFloat(v/1e3, 'f', -1, 64) + "k"
		}
		out = append(out, plot.Tick{Value: v, Label: label})
	}
	return out
}
