package history

import (
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard/report"
)

// durations are the windows of the buckets of a histogram.
type durations struct {
	now, last []uint64
	windows   []window
}

func (d *durations) sample(from *report.Durations, part int) {
	d.now = from.AppendBuckets(d.now[:0])
	if d.windows == nil {
		d.windows, d.last = make([]window, len(d.now)), make([]uint64, len(d.now))
	}
	for i, n := range d.now {
		if n = since(n, &d.last[i]); n > 0 {
			d.windows[i].add(part, n)
		}
	}
}

// clear empties a part of the windows.
func (d *durations) clear(part int) {
	for i := range d.windows {
		d.windows[i][part] = 0
	}
}

// shown gives the counts of the window; nil without one.
func (d *durations) shown() []uint64 {
	sums, all := make([]uint64, len(d.windows)), uint64(0)
	for i := range d.windows {
		sums[i] = d.windows[i].sum()
		all += sums[i]
	}
	if all == 0 {
		return nil
	}
	return sums
}

// showDurations adds the times of requests.
func (s *sampler) showDurations(to *admin.LiveTotals) {
	to.ServiceTime, to.RequestTime = s.serviceTime.shown(), s.requestTime.shown()
	if to.RequestTime == nil && to.ServiceTime == nil {
		return
	}
	for _, bound := range report.DurationBounds() {
		to.DurationBounds = append(to.DurationBounds, bound.Seconds())
	}
}
