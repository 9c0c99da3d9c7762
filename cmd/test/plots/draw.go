package main

import (
	"bytes"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// picture is panels one above the other, below what is told of all of them.
type picture struct {
	file    string
	heading [2]string // lines
	panels  []panel
}

// panel shows either bars, one a slot, or points, one a second.
type panel struct {
	title, y string
	bars     []int
	points   []float64
	from     float64 // the second at which they begin
	level    float64 // drawn as a dashed line, when it is above 0
	marks    []int   // of the axis
	top      float64 // its end
}

const (
	width       = 22 * vg.Centimeter
	panelHeight = 4.5 * vg.Centimeter
	headHeight  = 1.1 * vg.Centimeter
	textSize    = vg.Length(9)
)

// draw gives the picture as SVG. It is the same text for the same picture.
func (p picture) draw() ([]byte, error) {
	height := headHeight + panelHeight*vg.Length(len(p.panels))
	canvas := vgsvg.New(width, height)
	whole := draw.New(canvas)
	whole.SetColor(color.White)
	whole.Fill(whole.Path())
	plots := make([][]*plot.Plot, len(p.panels))
	for i, panel := range p.panels {
		drawn, err := panel.plot()
		if err != nil {
			return nil, err
		}
		plots[i] = []*plot.Plot{drawn}
	}
	tiles := draw.Tiles{
		Rows: len(plots), Cols: 1, PadY: vg.Points(6),
		PadTop: vg.Points(4), PadBottom: vg.Points(4), PadLeft: vg.Points(4), PadRight: vg.Points(10),
	}
	for i, row := range plot.Align(plots, tiles, draw.Crop(whole, 0, 0, 0, -headHeight)) {
		plots[i][0].Draw(row[0])
	}
	heading := plots[0][0].Title.TextStyle
	heading.XAlign, heading.YAlign, heading.Font.Size = draw.XLeft, draw.YTop, textSize+1
	for i, line := range p.heading {
		whole.FillText(heading, vg.Point{X: vg.Points(8), Y: height - vg.Points(5) - vg.Length(i)*(textSize+4)}, line)
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return nil, err
	}
	const family = "font-family:Liberation Sans"
	// Where the font that was measured is not at hand, one that is as wide.
	return bytes.ReplaceAll(svg.Bytes(), []byte(family), []byte(family+",Arial,Helvetica,sans-serif")), nil
}

func (p panel) plot() (*plot.Plot, error) {
	drawn := plot.New()
	drawn.Title.Text, drawn.X.Label.Text, drawn.Y.Label.Text = p.title, "seconds", p.y
	drawn.Title.Padding = vg.Points(3)
	drawn.X.Padding, drawn.Y.Padding = 0, 0
	for _, style := range []*text.Style{
		&drawn.Title.TextStyle, &drawn.X.Label.TextStyle, &drawn.X.Tick.Label, &drawn.Y.Label.TextStyle, &drawn.Y.Tick.Label,
	} {
		style.Font.Variant, style.Font.Size = "Sans", textSize
	}
	drawn.X.Tick.Marker, drawn.Y.Tick.Marker = plot.TickerFunc(seconds), numbers(p.marks)
	if err := p.fill(drawn); err != nil {
		return nil, err
	}
	drawn.X.Min, drawn.X.Max = p.from, p.from+p.seconds()
	drawn.Y.Min, drawn.Y.Max = 0, p.top
	if p.level > 0 {
		line, err := plotter.NewLine(plotter.XYs{{X: drawn.X.Min, Y: p.level}, {X: drawn.X.Max, Y: p.level}})
		if err != nil {
			return nil, err
		}
		line.Color, line.Dashes, line.Width = color.Gray{Y: 90}, []vg.Length{vg.Points(4), vg.Points(3)}, vg.Points(0.8)
		drawn.Add(line)
	}
	return drawn, nil
}

func (p panel) seconds() float64 {
	if len(p.bars) > 0 {
		return float64(len(p.bars)) / float64(slots)
	}
	return float64(len(p.points))
}

// fill draws what the panel shows.
func (p panel) fill(drawn *plot.Plot) error {
	ink := color.NRGBA{R: 31, G: 95, B: 153, A: 255}
	if len(p.bars) > 0 {
		area, err := plotter.NewPolygon(outline(p.bars, p.from))
		if err != nil {
			return err
		}
		area.Color, area.LineStyle.Width = ink, 0
		drawn.Add(area)
		return nil
	}
	points := make(plotter.XYs, len(p.points))
	for i, y := range p.points {
		points[i] = plotter.XY{X: p.from + float64(i) + 0.5, Y: y} // in the middle of its second
	}
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, marks.Color, marks.Shape, marks.Radius = ink, ink, draw.CircleGlyph{}, vg.Points(2.2)
	drawn.Add(plotter.NewGrid(), line, marks)
	return nil
}

// outline is the line around bars, in seconds.
func outline(bars []int, from float64) plotter.XYs {
	at := func(i int) float64 { return from + float64(i)/float64(slots) }
	line := plotter.XYs{{X: at(0), Y: 0}}
	for i, n := range bars {
		if i == 0 || n != bars[i-1] {
			line = append(line, plotter.XY{X: at(i), Y: line[len(line)-1].Y}, plotter.XY{X: at(i), Y: float64(n)})
		}
	}
	end := at(len(bars))
	return append(line, plotter.XY{X: end, Y: line[len(line)-1].Y}, plotter.XY{X: end})
}

// seconds marks each second.
func seconds(from, to float64) (marks []plot.Tick) {
	for at := math.Ceil(from); at <= to; at++ {
		marks = append(marks, plot.Tick{Value: at, Label: strconv.Itoa(int(at))})
	}
	return marks
}

// numbers marks these.
func numbers(of []int) plot.ConstantTicks {
	marks := make(plot.ConstantTicks, len(of))
	for i, n := range of {
		marks[i] = plot.Tick{Value: float64(n), Label: strconv.Itoa(n)}
	}
	return marks
}
