package throttle

import "math"

// regression is the sums of a linear regression of y on x, by least squares.
type regression struct{ n, x, y, xx, xy, yy float64 }

func (g *regression) add(x, y float64) {
	g.n++
	g.x += x
	g.y += y
	g.xx += x * x
	g.xy += x * y
	g.yy += y * y
}

// leastSpread is the relative deviation of x below which the slope is not known.
const leastSpread = 0.2

// line is y = intercept + slope x, with the standard error of the slope.
type line struct{ intercept, slope, err float64 }

// line returns the line, or false for few samples or nearly equal values of x.
func (g *regression) line() (line, bool) {
	if g.n < searchSamples/2 {
		return line{}, false
	}
	mean := g.x / g.n
	varX := g.xx/g.n - mean*mean
	if varX <= leastSpread*leastSpread*mean*mean {
		return line{}, false
	}
	varY := g.yy/g.n - (g.y/g.n)*(g.y/g.n)
	l := line{slope: (g.xy/g.n - mean*g.y/g.n) / varX}
	l.intercept = g.y/g.n - l.slope*mean
	l.err = math.Sqrt(max(varY-l.slope*l.slope*varX, 0) / (varX * g.n))
	return l, true
}

// weighty returns the mean of x, weighted with x: the x of the request that a unit of work belongs to.
func (g *regression) weighty() float64 { return g.xx / g.x }
