package heed

import (
	"cmp"
	"slices"
	"sync"

	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/feedback"
)

// Stats is what became of the calls to one provider. What became of those that wait,
// its pacer knows.
type Stats struct {
	Provider string
	Sent     uint64 // calls that were sent, again or for the first time
	Retried  uint64 // of them, those that were sent again
	Heard    uint64 // answers
	Warned   uint64 // of them, that the limit is near
	Spent    uint64 // that nothing remains for a time
	Refused  uint64 // that a limit refused the call
}

// Stats gives what was counted.
func (l *Listener) Stats() Stats {
	s := Stats{
		Provider: l.provider,
		Sent:     l.sent.Load(),
		Retried:  l.retried.Load(),
		Warned:   l.heard[feedback.Warned].Load(),
		Spent:    l.heard[feedback.Spent].Load(),
		Refused:  l.heard[feedback.Refused].Load(),
	}
	s.Heard = l.heard[feedback.Nothing].Load() + s.Warned + s.Spent + s.Refused
	return s
}

// MaxListeners bounds those that Listeners remember.
const MaxListeners = 4096

// Listeners are those of some pacers. The zero Listeners are none, and ready. They may
// be used by any number of goroutines.
type Listeners struct {
	mu    sync.RWMutex
	known map[*pace.Pacer]*Listener
}

// Of gives the Listener of a pacer: the same each time, nil for no pacer. Beyond
// MaxListeners pacers it gives one that is not remembered: it brakes the pacer, but what
// it hears is not counted, nor lowered from later on.
func (ls *Listeners) Of(p *pace.Pacer) *Listener {
	if p == nil {
		return nil
	}
	ls.mu.RLock()
	l := ls.known[p]
	ls.mu.RUnlock()
	if l != nil {
		return l
	}
	fresh := New(p)
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.known[p]; l != nil {
		return l
	}
	if ls.known == nil {
		ls.known = make(map[*pace.Pacer]*Listener)
	}
	if len(ls.known) < MaxListeners {
		ls.known[p] = fresh
	}
	return fresh
}

// Stats gives what each of them counted, by the providers' names.
func (ls *Listeners) Stats() []Stats {
	ls.mu.RLock()
	all := make([]Stats, 0, len(ls.known))
	for _, l := range ls.known {
		all = append(all, l.Stats())
	}
	ls.mu.RUnlock()
	slices.SortFunc(all, func(a, b Stats) int { return cmp.Compare(a.Provider, b.Provider) })
	return all
}
