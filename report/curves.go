package report

import (
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Axes names a picture and its axes. YMin and YMax hold the y axis where they differ.
type Axes struct {
	Title, X, Y string
	YMin, YMax  float64
	Across      []float64 // dashed lines at these y
	Left        bool      // the legend stands left
	Bottom      bool      // and below
	Beside      float64   // room for the legend right of the curves, as a share of their width
}

// Curve is one line of a picture, with a band where Low and High are given.
type Curve struct {
	Name      string
	Points    []Point
	Low, High []float64
	Dashed    bool
	Dots      bool // points are marked too
}

// palette is Okabe and Ito's, which colour-blind readers tell apart, then grey and two more.
func palette(i int) color.RGBA {
	list := []color.RGBA{{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x33, 0x33, 0x33, 0xff}, {0x99, 0x99, 0x99, 0xff}, {0x8c, 0x56, 0x1a, 0xff}, {0x7a, 0x00, 0x99, 0xff}}
	return list[i%len(list)]
}

// CurvesSVG draws curves in one frame.
func CurvesSVG(w io.Writer, a Axes, curves []Curve) error {
	p := frame(a)
	lo, hi := math.Inf(1), math.Inf(-1)
	for i, c := range curves {
		if len(c.Points) == 0 {
			continue
		}
		lo, hi = min(lo, c.Points[0].X), max(hi, c.Points[len(c.Points)-1].X)
		if err := addCurve(p, c, palette(i)); err != nil {
			return err
		}
	}
	if hi > lo && a.Beside > 0 {
		p.X.Max = hi + a.Beside*(hi-lo)
	}
	for _, y := range a.Across {
		if lo > hi {
			break
		}
		line, err := plotter.NewLine(plotter.XYs{{X: lo, Y: y}, {X: hi, Y: y}})
		if err != nil {
			return err
		}
		line.Color, line.Dashes = color.Gray{0x70}, []vg.Length{vg.Points(2), vg.Points(3)}
		p.Add(line)
	}
	return write(w, p, 7*vg.Inch, 4*vg.Inch)
}

func frame(a Axes) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = a.Title, a.X, a.Y
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(ticks), plot.TickerFunc(ticks)
	p.Add(plotter.NewGrid())
	p.Legend.Top, p.Legend.Left = !a.Bottom, a.Left
	p.Legend.Padding = vg.Points(2)
	if a.YMin != a.YMax {
		p.Y.Min, p.Y.Max = a.YMin, a.YMax
	}
	return p
}

func addCurve(p *plot.Plot, c Curve, col color.RGBA) error {
	if len(c.Low) == len(c.Points) && len(c.High) == len(c.Points) && len(c.Points) > 1 {
		var edge plotter.XYs
		for i, q := range c.Points {
			edge = append(edge, plotter.XY{X: q.X, Y: c.High[i]})
		}
		for i := len(c.Points) - 1; i >= 0; i-- {
			edge = append(edge, plotter.XY{X: c.Points[i].X, Y: c.Low[i]})
		}
		band, err := plotter.NewPolygon(edge)
		if err != nil {
			return err
		}
		band.Color, band.LineStyle.Width = color.NRGBA{col.R, col.G, col.B, 0x26}, 0
		p.Add(band)
	}
	line, err := plotter.NewLine(points(c.Points))
	if err != nil {
		return err
	}
	line.Color, line.Width = col, vg.Points(1.5)
	if c.Dashed {
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	}
	p.Add(line)
	if c.Dots || len(c.Points) == 1 {
		dots, err := plotter.NewScatter(points(c.Points))
		if err != nil {
			return err
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: col, Radius: vg.Points(2.5), Shape: draw.CircleGlyph{}}
		p.Add(dots)
	}
	if c.Name != "" {
		p.Legend.Add(c.Name, line)
	}
	return nil
}

// Effect is a row of a forest plot.
type Effect struct {
	Label            string
	Value, Low, High float64
	Expected         *float64 // a ring around it
}

// ForestSVG draws effects with their intervals, the first on top.
func ForestSVG(w io.Writer, a Axes, rows []Effect) error {
	p := frame(a)
	var at, crosses plotter.XYs
	var bars plotter.XErrors
	names := make([]string, len(rows))
	for i, r := range rows {
		y := float64(len(rows) - 1 - i)
		names[len(rows)-1-i] = r.Label
		at = append(at, plotter.XY{X: r.Value, Y: y})
		bars = append(bars, struct{ Low, High float64 }{r.Low - r.Value, r.High - r.Value})
		if r.Expected != nil {
			crosses = append(crosses, plotter.XY{X: *r.Expected, Y: y})
		}
	}
	e, err := plotter.NewXErrorBars(struct {
		plotter.XYer
		plotter.XErrorer
	}{at, bars})
	if err != nil {
		return err
	}
	e.LineStyle.Color, e.LineStyle.Width, e.CapWidth = palette(0), vg.Points(1.2), vg.Points(4)
	dots, err := plotter.NewScatter(at)
	if err != nil {
		return err
	}
	dots.GlyphStyle = draw.GlyphStyle{Color: palette(0), Radius: vg.Points(2.5), Shape: draw.BoxGlyph{}}
	p.Add(e, dots)
	if len(crosses) > 0 {
		x, err := plotter.NewScatter(crosses)
		if err != nil {
			return err
		}
		x.GlyphStyle = draw.GlyphStyle{Color: palette(1), Radius: vg.Points(5), Shape: draw.RingGlyph{}}
		p.Add(x)
		p.Legend.Add("by enumeration", x)
	}
	p.NominalY(names...)
	zero, err := plotter.NewLine(plotter.XYs{{X: 0, Y: -0.5}, {X: 0, Y: float64(len(rows)) - 0.5}})
	if err != nil {
		return err
	}
	zero.Color = color.Gray{0x70}
	p.Add(zero)
	p.Y.Min, p.Y.Max = -0.5, float64(len(rows))-0.5
	return write(w, p, 7*vg.Inch, vg.Length(1+0.2*float64(len(rows)))*vg.Inch)
}

// Dot is a named point.
type Dot struct {
	Name string
	X, Y float64
	Kind int // colour
}

// DotsSVG draws kinds of points, each in its colour; kinds are the legend.
func DotsSVG(w io.Writer, a Axes, kinds []string, dots []Dot) error {
	p := frame(a)
	for k, name := range kinds {
		var at plotter.XYs
		for _, d := range dots {
			if d.Kind == k {
				at = append(at, plotter.XY{X: d.X, Y: d.Y})
			}
		}
		if len(at) == 0 {
			continue
		}
		s, err := plotter.NewScatter(at)
		if err != nil {
			return err
		}
		s.GlyphStyle = draw.GlyphStyle{Color: palette(k), Radius: vg.Points(3.5), Shape: draw.CircleGlyph{}}
		p.Add(s)
		p.Legend.Add(name, s)
	}
	for _, y := range a.Across {
		p.Add(&across{y})
	}
	return write(w, p, 7*vg.Inch, 4.5*vg.Inch)
}

// across is a dashed line over the whole width.
type across struct{ y float64 }

func (a *across) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	c.StrokeLine2(draw.LineStyle{Color: color.Gray{0x70}, Width: vg.Points(0.8), Dashes: []vg.Length{vg.Points(2), vg.Points(3)}}, c.Min.X, y(a.y), c.Max.X, y(a.y))
}

// BarsSVG draws groups of bars: heights[g][i] is group g at label i.
func BarsSVG(w io.Writer, a Axes, labels, groups []string, heights [][]float64) error {
	p := frame(a)
	width := vg.Points(260 / float64(max(1, len(labels)*len(groups))))
	for g, h := range heights {
		b, err := plotter.NewBarChart(plotter.Values(h), width)
		if err != nil {
			return err
		}
		b.Color, b.LineStyle.Width = palette(g), 0
		b.Offset = width * vg.Length(float64(g)-float64(len(heights)-1)/2)
		p.Add(b)
		if len(groups) > 1 {
			p.Legend.Add(groups[g], b)
		}
	}
	p.NominalX(labels...)
	return write(w, p, 7*vg.Inch, 3.5*vg.Inch)
}

func write(w io.Writer, p *plot.Plot, width, height vg.Length) error {
	c := vgsvg.New(width, height)
	p.Draw(draw.New(c))
	_, err := c.WriteTo(w)
	return err
}
