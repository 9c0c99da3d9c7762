package demo

import (
	_ "embed" // For pictureStart.
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// pictureStart has places for the width and the height: the picture is not a template, because a program with text/template
// keeps the methods of all its types.
//
//go:embed picture.svg
var pictureStart string

// Sizes of the picture, in pixels.
const (
	namesWidth = 70
	capsHeight = 64
	cellWidth  = 44 // A cycle.
	cellHeight = 76 // A client.
	unitHeight = 2  // A request.
	mostUnits  = 26 // The longest bar. Its cell has space for the refusals above it.
	lineHeight = 19
)

// shown is a finished cycle, counted from 0.
type shown struct {
	cycle int
	rows  []row
}

// picture has what is drawn. A class names a style.
type picture struct {
	Width, Height int
	Boxes         []box
	Lines         []rule
	Texts         []words
}

type (
	box struct {
		X, Y, Height int
		Class        string
	}
	rule  struct{ X1, Y1, X2, Y2 int }
	words struct {
		X, Y        int
		Class, Text string
	}
)

// drawPicture writes an SVG of the cycles: a line for each client, a column for each cycle.
func drawPicture(w io.Writer, cycles []shown, clients []string, acts []Act, capacity int64) error {
	right, bottom := namesWidth+cellWidth*max(len(cycles), 12), capsHeight+cellHeight*len(clients)
	p := picture{Width: right + 20, Height: bottom + 30 + lineHeight*len(acts)}
	for i, name := range clients {
		base := capsHeight + cellHeight*(i+1) - 6
		p.text(namesWidth-14, base-14, "name", name)
		fair := base - unitHeight*int(capacity)/len(clients)
		p.Lines = append(p.Lines, rule{namesWidth, fair, right, fair})
		for column, c := range cycles {
			for _, r := range c.rows {
				if r.client == name {
					p.cell(namesWidth+cellWidth*column+4, base, &r)
				}
			}
		}
	}
	for column, last := 0, -1; column < len(cycles); column++ {
		if act := actAt(acts, cycles[column].cycle); act != last {
			x := namesWidth + cellWidth*column
			p.Lines = append(p.Lines, rule{x, capsHeight - 14, x, bottom})
			p.text(x+14, capsHeight-10, "act", strconv.Itoa(act+1))
			last = act
		}
	}
	for i, act := range acts {
		p.text(namesWidth, bottom+26+lineHeight*i, "caption", fmt.Sprintf("%d  %s", i+1, act.Caption))
	}
	return p.write(w)
}

// write writes the picture as SVG.
func (p *picture) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, pictureStart, p.Width, p.Height)
	for _, l := range p.Lines {
		fmt.Fprintf(&b, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", l.X1, l.Y1, l.X2, l.Y2)
	}
	for _, r := range p.Boxes {
		if r.Height > 0 {
			fmt.Fprintf(&b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"36\" height=\"%d\"/>\n", r.Class, r.X, r.Y, r.Height)
		}
	}
	for _, t := range p.Texts {
		fmt.Fprintf(&b, "<text class=\"%s\" x=\"%d\" y=\"%d\">", t.Class, t.X, t.Y)
		if err := xml.EscapeText(&b, []byte(t.Text)); err != nil {
			return err
		}
		b.WriteString("</text>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// cell draws what a client used in a cycle. Lent units that it needed itself came back to it, and count as its own.
func (p *picture) cell(x, base int, r *row) {
	top := base
	stack := func(class string, units int64) {
		height := unitHeight * int(min(max(units, 0), mostUnits))
		top -= height
		p.Boxes = append(p.Boxes, box{x, top, height, class})
	}
	back := min(max(r.admitted-r.own, 0), r.lent)
	own := r.own + back
	stack("own", min(r.admitted, own))
	stack("borrowed", r.admitted-own)
	stack("free", own-r.admitted)
	stack("lent", r.lent-back)
	if r.refused > 0 {
		p.text(x+16, top-4, "refused", "−"+strconv.FormatInt(r.refused, 10))
	}
}

func (p *picture) text(x, y int, class, text string) {
	p.Texts = append(p.Texts, words{x, y, class, text})
}
