package lease

import (
	"strings"

	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/lease/state"
	"github.com/headgate/headgate/internal/sorting"
)

// totals sums what is out by the entries of the file. So the number of series is bounded by the file. A server with a parent has no
// entries.
func (l *Granted) totals() []prom.LeaseTotal {
	l.mu.Lock()
	entries := l.file.Resources
	l.mu.Unlock()
	if len(entries) == 0 {
		return nil
	}
	sums := make(map[string]*prom.LeaseTotal, len(entries))
	for i := range entries {
		sums[entries[i].Match] = &prom.LeaseTotal{Match: entries[i].Match}
	}
	for _, resource := range l.service.Resources() {
		entry := state.ResourceOf(entries, resource.Name)
		if entry == nil {
			continue
		}
		t := sums[entry.Match]
		u := &resource.Usage
		t.Capacity += units(u.Capacity, u.Slots)
		t.Wants += units(u.Wants, u.Slots)
		t.Has += units(u.Granted, u.Slots)
		t.Ledger += units(u.Ledger, u.Slots)
		t.Unknown += units(u.Unknown, u.Slots)
	}
	all := make([]prom.LeaseTotal, 0, len(sums))
	for _, t := range sums {
		all = append(all, *t)
	}
	sorting.Func(all, func(a, b prom.LeaseTotal) int { return strings.Compare(a.Match, b.Match) })
	return all
}
