package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// Rate is so many requests in a time.
type Rate struct {
	Count int64
	Per   time.Duration
}

// interval is the mean time between two requests.
func (r Rate) interval() float64 { return float64(r.Per) / float64(r.Count) }

// shape draws the times of requests, one after the other. next returns the time of the next request since the beginning, which is
// never before that of the last one.
type shape interface {
	next(r *rand.Rand) time.Duration
}

// kind is a kind of traffic.
type kind struct {
	name, help string
	make       func(Rate) shape
}

// kinds lists the kinds of traffic, in the order of the help, with what they do.
func kinds() []kind {
	return []kind{
		{"constant", "requests at equal distances", func(r Rate) shape { return &constant{r, 0} }},
		{"poisson", "requests that are independent of one another", func(r Rate) shape { return &poisson{r, 0} }},
		{"bursty", "Poisson with a rate of 0.06 to 6.3 times the mean, drawn anew each 5 to 42 % of the window", newBursty},
		{"on_off", "twice the rate for one window, then nothing for one window, from the middle of a window on", newOnOff},
		{"edge", "a limit's worth on each side of every second boundary of windows", newEdge},
		{"herd", "three limits' worth at once, once in three windows at a random time", newHerd},
		{"retry", "Poisson at 1.2 times the rate; refused requests come back after Retry-After", func(r Rate) shape {
			return &poisson{Rate{r.Count * 6, r.Per * 5}, 0}
		}},
	}
}

// retries is the traffic whose refused requests come back.
const retries = "retry"

// Traffics lists the kinds of traffic.
func Traffics() (names []string) {
	for _, t := range kinds() {
		names = append(names, t.name)
	}
	return names
}

// newShape returns a kind of traffic at a mean rate.
func newShape(name string, r Rate) (shape, error) {
	for _, k := range kinds() {
		if k.name == name {
			return k.make(r), nil
		}
	}
	return nil, fmt.Errorf("traffic %q is not known: use one of %s", name, strings.Join(Traffics(), ", "))
}

type constant struct {
	rate Rate
	n    float64
}

func (c *constant) next(*rand.Rand) time.Duration {
	at := time.Duration(c.n * c.rate.interval())
	c.n++
	return at
}

type poisson struct {
	rate Rate
	at   float64
}

func (p *poisson) next(r *rand.Rand) time.Duration {
	p.at += r.ExpFloat64() * p.rate.interval()
	return clampAt(p.at)
}

// clampAt bounds a time that a random draw could take beyond the largest duration.
func clampAt(at float64) time.Duration { return time.Duration(min(at, math.MaxInt64/2)) }

// bursty is Poisson, with a rate that is drawn anew for each part of time.
type bursty struct {
	rate     Rate
	at, ends float64
	factor   float64
}

// The bounds of the factor are powers of ten, and those of a part are parts of the window.
const (
	leastPower, mostPower = -1.2, 0.8
	leastPart, mostPart   = 0.05, 0.42
)

func newBursty(r Rate) shape { return &bursty{rate: r} }

func (b *bursty) next(r *rand.Rand) time.Duration {
	for {
		if b.at >= b.ends {
			b.at = b.ends
			b.factor = math.Pow(10, leastPower+(mostPower-leastPower)*r.Float64())
			b.ends += (leastPart + (mostPart-leastPart)*r.Float64()) * float64(b.rate.Per)
		}
		b.at += r.ExpFloat64() * b.rate.interval() / b.factor
		if b.at < b.ends {
			return clampAt(b.at)
		}
		b.at = b.ends // The next part begins: a Poisson process has no memory.
	}
}

// onOff is Poisson at twice the rate in every second window, half a window after its boundary.
type onOff struct {
	rate Rate
	busy float64 // the time in the busy windows so far
}

func newOnOff(r Rate) shape { return &onOff{rate: r} }

func (o *onOff) next(r *rand.Rand) time.Duration {
	o.busy += r.ExpFloat64() * o.rate.interval() / 2
	per := float64(o.rate.Per)
	return clampAt(o.busy + math.Floor(o.busy/per)*per + per/2)
}

// crowds are groups of requests that come within a short time.
type crowds struct {
	rate  Rate
	n     int64 // requests so far
	size  int64 // of a crowd
	begin func(r *rand.Rand, crowd int64) (from, length float64)

	from, length float64
}

func (c *crowds) next(r *rand.Rand) time.Duration {
	within := c.n % c.size
	if within == 0 {
		c.from, c.length = c.begin(r, c.n/c.size)
	}
	c.n++
	return clampAt(c.from + c.length*float64(within)/float64(c.size))
}

// newEdge sends Count requests in the last 1 % before a boundary, and as many in the first 1 % after it.
func newEdge(rate Rate) shape {
	per := float64(rate.Per)
	return &crowds{rate: rate, size: 2 * rate.Count, begin: func(_ *rand.Rand, crowd int64) (from, length float64) {
		return (float64(2*crowd)+0.99)*per + 1, 0.02 * per
	}}
}

// newHerd sends three times Count within 1 % of a window.
func newHerd(rate Rate) shape {
	per := float64(rate.Per)
	return &crowds{rate: rate, size: 3 * rate.Count, begin: func(r *rand.Rand, crowd int64) (from, length float64) {
		return (float64(3*crowd) + 2.9*r.Float64()) * per, 0.01 * per
	}}
}
