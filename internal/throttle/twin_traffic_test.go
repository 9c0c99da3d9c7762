package throttle

import (
	"fmt"
	"time"
)

// traffic is what the requests of a trace are like. Few tenants have uses near their shares. Few
// classes share a bucket often.
type traffic struct {
	tenants, routes, classes int
	class                    int           // the first one
	answers                  int           // of five requests
	pace                     time.Duration // the most time between two calls
}

func randomTraffic(draw func(n int) int) traffic {
	return traffic{
		tenants: 1 + draw(12), routes: 1 + draw(5), classes: 1 + draw(ClassCount), class: draw(ClassCount),
		answers: 1 + draw(5), pace: time.Duration(1+draw(20)) * time.Millisecond,
	}
}

// upTo draws a time of 0 to n times the pace.
func (d *twins) upTo(n int) time.Duration {
	return time.Duration(d.draw(n * int(d.traffic.pace)))
}

func (d *twins) config() Config {
	c := randomConfig(d.draw)
	c.Search.Apply = false // The twin has no search: one that is not applied changes nothing.
	c.Deadline = 20 * d.traffic.pace
	return c
}

// request draws a request, sometimes in the memory of an ended one.
func (d *twins) request() *Request {
	r := &Request{}
	if n := len(d.unused); n > 0 && d.draw(2) == 0 {
		r, d.unused = d.unused[n-1], d.unused[:n-1]
	}
	r.Class = Class((d.traffic.class + d.draw(d.traffic.classes)) % ClassCount)
	r.Tenant, r.Route = fmt.Sprint("tenant ", d.draw(d.traffic.tenants)), fmt.Sprint("/", d.draw(d.traffic.routes))
	r.Deadline = d.now.Add(d.upTo(40) - 2*d.traffic.pace)
	return r
}

// tick moves the clock by up to the pace, and sometimes back, or beyond the times of activity (2 s)
// and of probes (5 s).
func (d *twins) tick() {
	d.now = d.now.Add(d.upTo(1))
	switch d.draw(80) {
	case 0, 1, 2, 3:
		d.now = d.now.Add(-d.upTo(10))
	case 4:
		d.now = d.now.Add(time.Duration(d.draw(int(7 * time.Second))))
	}
}

// ended draws the end of a request. Its work is far from the mean: either small, or large.
func (d *twins) ended() Ended {
	var e Ended
	if d.draw(5) >= d.traffic.answers {
		e.Lesson, e.Answered = LearnMiss+Lesson(d.draw(2)), d.draw(8) == 0
	}
	if d.draw(4) > 0 {
		e.Work = d.upTo(1 + 9*d.draw(2))
	}
	return e
}
