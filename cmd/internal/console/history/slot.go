package history

import (
	"time"

	"github.com/headgate/headgate/cmd/internal/console/history/ring"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
)

// The counts of a rule or a stage, in the order of ruleMetricNames.
const (
	passed = iota
	refused
	wouldRefuse
	waited
	ruleCounts
)

var ruleMetricNames = [ruleCounts]string{"passed", "refused", "would_refuse", "waited"}

// The counts of a client, in the order of clientMetricNames.
const (
	admitted = iota
	clientRefused
	clientCounts
)

var clientMetricNames = [clientCounts]string{"admitted", "refused"}

// slot is what the sampler keeps of a rule or a stage. Its memory is that of config.HistoryBound.
//
// What orders rules stands together, because each answer reads it for all rules.
type slot struct {
	window     [ruleCounts]window
	off, stage bool
	// name keeps the slot through reloads.
	name string
	rule *guard.Rule

	last   [ruleCounts]uint64
	undone undoneCounts
	series [ruleCounts]ring.Series
	run    episode
}

// undoneCounts are the last counts of the parts of refusals.
type undoneCounts struct{ banned, undecided uint64 }

func newSlot(name string) *slot {
	s := &slot{name: name}
	for i, metric := range ruleMetricNames {
		s.series[i].Name = ring.Name{Prefix: "rule", Of: name, Metric: metric}
	}
	return s
}

// deltas are the decisions of a rule since the last second.
type deltas struct {
	counts            [ruleCounts]uint64
	banned, undecided uint64
}

// differ takes the present counters of a rule.
func (s *slot) differ(now *report.Sums) (d deltas) {
	for i, n := range [ruleCounts]uint64{now.Passed, now.Refused, now.WouldRefuse, now.Waited} {
		d.counts[i] = since(n, &s.last[i])
	}
	d.banned, d.undecided = since(now.Banned, &s.undone.banned), since(now.Undecided, &s.undone.undecided)
	return d
}

// since gives what a counter has counted since the last call. A counter that has gone back has begun again at 0, for example with a rule
// that was removed and is there again.
func since(now uint64, last *uint64) uint64 {
	n := now - *last
	if now < *last {
		n = now
	}
	*last = now
	return n
}

// An episode is a run of refusals: it ends after maxPause without one. It has 16 bytes, and the sampler writes it.
type episode struct{ since, last int64 } // Unix seconds; 0 for none

const maxPause = 15

// refused notes refusals in the second that ends at a time.
func (e *episode) refused(end int64) {
	if e.last == 0 || end-e.last > maxPause || end < e.last {
		e.since = end - 1
	}
	e.last = end
}

// shown gives the present run, or nil.
func (e *episode) shown(end int64) (since, last *time.Time) {
	if e.last == 0 || end-e.last > maxPause || end < e.last {
		return nil, nil
	}
	from, to := time.Unix(e.since, 0).UTC(), time.Unix(e.last, 0).UTC()
	return &from, &to
}

// A window sums the counts of the last 11 to 15 seconds, in parts of partSeconds. All windows of a sampler turn together.
type window [windowParts]uint32

const (
	windowParts = 3
	partSeconds = 5
)

func (w *window) add(part int, n uint64) { w[part] = uint32(min(uint64(w[part])+n, 1<<32-1)) }

func (w *window) sum() (n uint64) {
	for _, part := range w {
		n += uint64(part)
	}
	return n
}

// rate is the mean in a second.
func (w *window) rate(seconds int64) float64 { return per(w.sum(), seconds) }

// per gives a mean with three digits, so that answers stay short.
func per(n uint64, seconds int64) float64 {
	if seconds <= 0 {
		return 0
	}
	const digits = 1000
	return float64(n*digits/uint64(seconds)) / digits
}
