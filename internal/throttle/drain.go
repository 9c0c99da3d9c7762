package throttle

import (
	"math"
	"time"

	"github.com/headgate/headgate"
)

// drainMemory is the time constant of the drain rate, in time with a queue.
const drainMemory = time.Second

// drain measures the work that ends per second while requests are queued: only then does the
// service show its capacity.
type drain struct {
	busy  bool
	since headgate.Instant
	work  float64 // nanoseconds of work, decayed
	time  float64 // nanoseconds with a queue, decayed
}

// ended notes work that ended while requests were queued.
func (d *drain) ended(now headgate.Instant, work time.Duration) {
	if d.busy {
		d.advance(now)
		d.work += float64(work)
	}
}

// queue says whether requests are queued from now on.
func (d *drain) queue(now headgate.Instant, busy bool) {
	if d.busy && !busy {
		d.advance(now)
	}
	if !d.busy && busy {
		d.since = now
	}
	d.busy = busy
}

func (d *drain) advance(now headgate.Instant) {
	if now <= d.since {
		return
	}
	passed := float64(now.Sub(d.since))
	part := math.Exp(-passed / float64(drainMemory))
	d.work, d.time, d.since = d.work*part, d.time*part+passed, now
}

// enoughTime is the time with a queue before the rate is known.
const enoughTime = 50 * time.Millisecond

// rate returns the work per second of time, and whether it is known.
func (d *drain) rate() (float64, bool) {
	if d.time < float64(enoughTime) || d.work <= 0 {
		return 0, false
	}
	return d.work / d.time, true
}

// takes returns the time that the work takes to drain; 0 while the rate is not known.
func (d *drain) takes(work time.Duration) time.Duration {
	rate, known := d.rate()
	if !known {
		return 0
	}
	return time.Duration(min(float64(work)/rate, float64(maxTime)))
}
