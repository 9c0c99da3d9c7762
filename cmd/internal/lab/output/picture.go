package output

import (
	"io"
	"math"
	"strconv"
	"strings"
)

// Picture is panels one above the other, below a heading, as SVG.
type Picture struct {
	Heading []string
	Panels  []Panel
}

// Panel has lines over one axis.
type Panel struct {
	Title string
	// X and Y name the axes.
	X, Y string
	// From and To are the ends of the axis X, and Low and High those of Y. With High equal to Low, the lines set both.
	From, To, Low, High float64
	// Level is drawn as a dashed line if Leveled is set.
	Level   float64
	Leveled bool
	// Height is in pixels; 0 is 170.
	Height int
	Lines  []Line
}

// Line is a curve with a name.
type Line struct {
	Name   string
	Color  string // Grey, Blue and so on
	Points []Point
	// Steps holds each value until the next point.
	Steps bool
}

// Point is a point of a line.
type Point struct{ X, Y float64 }

// Colors of lines, which people with any sight can tell apart (after Okabe and Ito).
const (
	Grey   = "#b5b5b5"
	Blue   = "#0072b2"
	Orange = "#d55e00"
	Green  = "#009e73"
	Pink   = "#cc79a7"
)

// Sizes of a picture, in pixels.
const (
	pictureWidth  = 880
	pictureLeft   = 64
	pictureRight  = 14
	headingLine   = 17
	panelHeight   = 170
	panelTop      = 24 // for the title and the names of the lines
	panelBottom   = 34 // for the numbers and the name of the axis
	letterWidth   = 6.4
	mostTicks     = 5
	mostTimeTicks = 10
)

// WriteTo writes the picture as an SVG file.
func (s *Picture) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	s.write(&b)
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

func (s *Picture) write(b *strings.Builder) {
	height := 8 + headingLine*len(s.Heading)
	for i := range s.Panels {
		height += s.Panels[i].height() + panelTop + panelBottom
	}
	size := strconv.Itoa(pictureWidth) + " " + strconv.Itoa(height)
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ` + size + `" width="` + strconv.Itoa(pictureWidth) +
		`" height="` + strconv.Itoa(height) + `" font-family="Liberation Sans,Arial,Helvetica,sans-serif" font-size="12">` + "\n")
	b.WriteString(`<rect width="100%" height="100%" fill="#fff"/>` + "\n")
	y := 4.0
	for _, line := range s.Heading {
		y += headingLine
		label(b, pictureLeft, y-3, "start", line)
	}
	for i := range s.Panels {
		s.Panels[i].write(b, y)
		y += float64(s.Panels[i].height() + panelTop + panelBottom)
	}
	b.WriteString("</svg>\n")
}

func (p *Panel) height() int {
	if p.Height > 0 {
		return p.Height
	}
	return panelHeight
}

// bounds returns the ends of the axis Y.
func (p *Panel) bounds() (low, high float64) {
	low, high = p.Low, p.High
	if low != high {
		return low, high
	}
	for i := range p.Lines {
		for _, at := range p.Lines[i].Points {
			low, high = min(low, at.Y), max(high, at.Y)
		}
	}
	if p.Leveled {
		low, high = min(low, p.Level), max(high, p.Level)
	}
	if low == high {
		high = low + 1
	}
	return low, high + (high-low)*0.04
}

// write draws the panel below y.
func (p *Panel) write(b *strings.Builder, y float64) {
	low, high := p.bounds()
	const left, right = pictureLeft, pictureWidth - pictureRight
	top := y + panelTop
	bottom := top + float64(p.height())
	from, to := p.From, p.To
	if to <= from {
		to = from + 1
	}
	toX := func(x float64) float64 { return left + (x-from)/(to-from)*float64(right-left) }
	toY := func(v float64) float64 { return bottom - (v-low)/(high-low)*(bottom-top) }
	label(b, left, top-8, "start", p.Title)
	p.names(b, top-8)
	for _, v := range ticks(low, high, mostTicks) {
		at := toY(v)
		path(b, `stroke="#e4e4e4"`, "M"+fixed(left)+" "+fixed(at)+"H"+fixed(right))
		label(b, left-6, at+4, "end", number(v))
	}
	for _, x := range ticks(from, to, mostTimeTicks) {
		label(b, toX(x), bottom+15, "middle", number(x))
	}
	label(b, right, bottom+30, "end", p.X)
	label(b, left, bottom+30, "start", p.Y)
	if p.Leveled {
		path(b, `stroke="#555" stroke-dasharray="5 4"`, "M"+fixed(left)+" "+fixed(toY(p.Level))+"H"+fixed(right))
	}
	for i := range p.Lines {
		p.Lines[i].write(b, toX, toY)
	}
	path(b, `stroke="#555"`, "M"+fixed(left)+" "+fixed(top)+"V"+fixed(bottom)+"H"+fixed(right))
}

// names writes the names of the lines, from the right.
func (p *Panel) names(b *strings.Builder, y float64) {
	x := float64(pictureWidth - pictureRight)
	for i := len(p.Lines) - 1; i >= 0; i-- {
		l := &p.Lines[i]
		label(b, x, y, "end", l.Name)
		x -= letterWidth*float64(len([]rune(l.Name))) + 8
		path(b, `stroke-width="3" stroke="`+l.Color+`"`, "M"+fixed(x-18)+" "+fixed(y-4)+"h18")
		x -= 32
	}
}

// write draws the line. Points that do not change the picture are left out.
func (l *Line) write(b *strings.Builder, toX, toY func(float64) float64) {
	if len(l.Points) == 0 {
		return
	}
	width := "1.6"
	if l.Color == Grey { // It lies behind others.
		width = "4"
	}
	b.WriteString(`<path fill="none" stroke-linejoin="round" stroke-width="` + width + `" stroke="` + l.Color + `" d="`)
	lastX, lastY := "", ""
	for i, at := range l.Points {
		x, y := fixed(toX(at.X)), fixed(toY(at.Y))
		switch {
		case i == 0:
			b.WriteString("M" + x + " " + y)
		case x == lastX && y == lastY, l.Steps && y == lastY && i < len(l.Points)-1:
			continue
		case l.Steps:
			b.WriteString("H" + x + "V" + y)
		default:
			b.WriteString("L" + x + " " + y)
		}
		lastX, lastY = x, y
	}
	b.WriteString(`"/>` + "\n")
}

// ticks returns round numbers between two ends, at most so many steps of them.
func ticks(low, high float64, most int) (all []float64) {
	if !(high > low) || math.IsInf(high-low, 0) {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/float64(most))))
	for _, times := range [...]float64{1, 2, 5, 10} {
		if (high-low)/(step*times) <= float64(most) {
			step *= times
			break
		}
	}
	for n := math.Ceil(low/step - 1e-9); n*step <= high+step*1e-9; n++ {
		all = append(all, n*step)
	}
	return all
}

// path writes a line with its attributes.
func path(b *strings.Builder, attributes, points string) {
	b.WriteString("<path " + attributes + ` fill="none" d="` + points + "\"/>\n")
}

// label writes a text. anchor is start, middle or end.
func label(b *strings.Builder, x, y float64, anchor, text string) {
	if text == "" {
		return
	}
	b.WriteString(`<text x="` + fixed(x) + `" y="` + fixed(y) + `" text-anchor="` + anchor + `">` + Escape(text) + "</text>\n")
}

// fixed writes a coordinate with one digit, so that roundings of the machine do not show.
func fixed(x float64) string {
	text := strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0")
	if text == "-0" {
		return "0"
	}
	return text
}

// number writes the number of a tick.
func number(v float64) string {
	text := strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(v, 'f', 6, 64), "0"), ".")
	if text == "-0" {
		return "0"
	}
	return text
}
