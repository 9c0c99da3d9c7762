package simulate

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/output"
)

// curve has the counts of a part of a run, for a picture: at each arrival of the first key.
type curve struct {
	start, from, until headgate.Instant
	last               headgate.Instant // of the last point
	exact, estimate    []output.Point
}

// Windows that a picture shows: those after the first few, in which counters are still empty.
const (
	skippedWindows = 2
	shownWindows   = 10
	mostPoints     = 600 // A picture is 800 pixels wide.
)

func newCurve(start headgate.Instant, per, length time.Duration) *curve {
	from := skippedWindows * per
	if from+shownWindows*per > length {
		from = max(length-shownWindows*per, 0)
	}
	return &curve{start: start, from: start.Add(from), until: start.Add(min(length, from+shownWindows*per))}
}

func (c *curve) add(now headgate.Instant, exact, estimate float64) {
	if now < c.from || now >= c.until || len(c.exact) > 0 && now-c.last < (c.until-c.from)/mostPoints {
		return
	}
	c.last = now
	at := now.Sub(c.start).Seconds()
	c.exact = append(c.exact, output.Point{X: at, Y: exact})
	c.estimate = append(c.estimate, output.Point{X: at, Y: estimate})
}

// errors returns the error at each point, in percent.
func (c *curve) errors() []output.Point {
	all := make([]output.Point, len(c.exact))
	for i, at := range c.exact {
		all[i] = output.Point{X: at.X, Y: 100 * (c.estimate[i].Y - at.Y) / at.Y}
	}
	return all
}
