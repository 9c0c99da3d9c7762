package report

import (
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/errortype"
)

// clockLogEvery is the least time between two lines about the clock of the store.
const clockLogEvery = time.Minute

// storeClock counts the requests whose limits with a calendar period the store could not decide, because its clock is
// outside of their windows.
type storeClock struct {
	events   atomic.Uint64
	reported atomic.Uint64 // the events at the last line
	next     atomic.Int64  // no line before, in Unix nanoseconds
}

// observe counts and logs an error of the store if it is about the store's clock.
func (c *storeClock) observe(err error, l logging) {
	edge, ok := errortype.As[*headgate.EdgeError](err)
	if !ok {
		return
	}
	n := c.events.Add(1)
	if l.log == nil {
		return
	}
	now := l.clock()
	next := c.next.Load()
	wait := time.Duration(next - now.UnixNano()) // More than clockLogEvery: this machine's clock has stepped back.
	if wait > 0 && wait <= clockLogEvery || !c.next.CompareAndSwap(next, now.Add(clockLogEvery).UnixNano()) {
		return
	}
	ahead := edge.At.Time().Sub(now).Round(time.Second)
	l.log.Error("the clock of the store is wrong, or that of this machine: fallbacks decide the limits of calendar windows",
		"store_ahead", ahead.String(), "requests", n-c.reported.Swap(n), "error", edge)
}

// ClockErrors returns the number of requests whose limits with a calendar period were decided by fallbacks, because the
// store's clock is outside of their windows.
func (r *Report) ClockErrors() uint64 { return r.storeClock.events.Load() }
