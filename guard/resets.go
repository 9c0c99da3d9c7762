package guard

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate"
)

// maxResets bounds the counters whose resets are remembered.
const maxResets = 1024

// counter is what a customer uses of a quota.
type counter struct{ quota, name string }

// resetSpan is the time from the start of a window to its reset. The receipts from this time return nothing.
type resetSpan struct{ from, to headgate.Instant }

// resets remembers the last reset of each counter. A reset has taken back what was in flight, so the ends of these requests take nothing
// back a second time. It is safe for concurrent use.
type resets struct {
	noted atomic.Bool // spans has an entry
	mu    sync.Mutex
	spans map[counter]resetSpan
}

// note notes a reset. Beyond maxResets, the oldest one is forgotten.
func (r *resets) note(c counter, s resetSpan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spans == nil {
		r.spans = map[counter]resetSpan{}
	}
	if _, known := r.spans[c]; !known && len(r.spans) >= maxResets {
		var oldest counter
		first := true
		for c, span := range r.spans {
			if first || span.to < r.spans[oldest].to {
				oldest, first = c, false
			}
		}
		delete(r.spans, oldest)
	}
	c.name = strings.Clone(c.name)
	r.spans[c] = s
	r.noted.Store(true)
}

// covers reports whether a reset has taken back the units of a decision.
func (r *resets) covers(c counter, at headgate.Instant) bool {
	if !r.noted.Load() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, found := r.spans[c]
	return found && s.from <= at && at <= s.to
}

// takeBack has Config.Meter count units that come back, unless a reset has taken them back already.
func (s *set) takeBack(u *headgate.Usage) {
	if !s.guard.state.resets.covers(counter{u.Quota, u.Customer}, u.At) {
		s.config.Meter.Count(*u)
	}
}
