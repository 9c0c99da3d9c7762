package etcd

import (
	"slices"
	"time"
)

// offsets estimates how far this machine's wall clock is ahead of the clocks of other instances,
// from the times in their reports. A report arrives late, so the smallest of the last few
// differences counts.
type offsets struct {
	last map[string][]time.Duration
}

const maxSamples = 8

// add records how much later than its own time a report has arrived.
func (o *offsets) add(id string, later time.Duration) {
	if o.last == nil {
		o.last = map[string][]time.Duration{}
	}
	if o.last[id] == nil && len(o.last) >= maxMembers {
		return
	}
	before := o.last[id]
	o.last[id] = append(before[max(0, len(before)-maxSamples+1):], later)
}

func (o *offsets) remove(id string) { delete(o.last, id) }

// median gives the median of the differences to all others, and the number of others.
func (o *offsets) median() (ahead time.Duration, instances int) {
	if len(o.last) == 0 {
		return 0, 0
	}
	all := make([]time.Duration, 0, len(o.last))
	for _, samples := range o.last {
		all = append(all, slices.Min(samples))
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2, len(all)
}
