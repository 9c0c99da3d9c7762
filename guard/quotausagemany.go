package guard

import (
	"context"
	"errors"

	"github.com/headgate/headgate"
)

// UsageOfMany is Usage of several customers, in few calls of the store. Customers whose plan counts nothing have nil.
func (g *Guard) UsageOfMany(ctx context.Context, customers []string) ([][]QuotaUse, error) {
	s := g.now()
	if s == nil {
		return nil, headgate.ErrNotMade
	}
	u := &usage{guard: g, set: s}
	ends := make([]int, len(customers))
	for i, name := range customers {
		err := u.find(name, "")
		if unknown := new(UnknownQuotaError); err != nil && !errors.As(err, &unknown) {
			return nil, err
		}
		ends[i] = len(u.counted)
	}
	if err := u.prepare(); err != nil {
		return nil, err
	}
	defer u.end()
	all, err := u.read(ctx)
	if err != nil {
		return nil, err
	}
	by, from := make([][]QuotaUse, len(customers)), 0
	for i, to := range ends {
		if to > from {
			one := usage{counted: u.counted[from:to]}
			by[i] = one.shown(all[from:to])
		}
		from = to
	}
	return by, nil
}

// PresentWindows gives the first start and the last end of the windows that limits of customers have now, by this instance's
// clock. found is false without a limit that has windows.
func (g *Guard) PresentWindows() (first, last headgate.Instant, found bool) {
	s := g.now()
	if s == nil || s.quotas == nil {
		return 0, 0, false
	}
	for n := range uint32(s.quotas.prepared.n) {
		windows := s.quotas.prepared.at(n).windows
		for i := range windows {
			c := countedLimit{window: &windows[i], limit: s.quotas.lists.at(n).limits[i]}
			use := c.use(&headgate.Decision{At: g.calendarNow()})
			if use.End == 0 {
				continue
			}
			if !found || use.Start < first {
				first = use.Start
			}
			last, found = max(last, use.End), true
		}
	}
	return first, last, found
}
