package backoff

import (
	"cmp"
	"sync"

	"github.com/headgate/headgate/internal/pace/feedback"
	"github.com/headgate/headgate/internal/sorting"
	"github.com/headgate/headgate/pace"
)

// Stats are the counters of the calls to one provider. The pacer counts waiting calls.
type Stats struct {
	Provider string
	Sent     uint64 // calls that were sent, again or for the first time
	Retried  uint64 // calls that were sent again
	Heard    uint64 // answers
	Warned   uint64 // answers that warned of the limit
	Spent    uint64 // that nothing remains for a time
	Refused  uint64 // that a limit refused the call
	// Implausible counts answers with an ignored time: see Advice.
	Implausible uint64
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

		Implausible: l.implausible.Load(),
	}
	s.Heard = l.heard[feedback.Nothing].Load() + s.Warned + s.Spent + s.Refused
	return s
}

// MaxListeners bounds those that Listeners remember.
const MaxListeners = 4096

// Listeners has a Listener for each of some pacers. The zero Listeners is ready, and safe for
// concurrent use.
type Listeners struct {
	mu    sync.RWMutex
	known map[*pace.Pacer]*Listener
}

// Listener gives the Listener of a pacer: always the same one, and nil for no pacer. Beyond MaxListeners
// pacers, it gives a new Listener that is not kept: this Listener brakes the pacer, but its counts
// are lost, and it does not lift the brake step by step.
func (ls *Listeners) Listener(p *pace.Pacer) *Listener {
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

// Stats gives the counters of each Listener, by the providers' names.
func (ls *Listeners) Stats() []Stats {
	ls.mu.RLock()
	all := make([]Stats, 0, len(ls.known))
	for _, l := range ls.known {
		all = append(all, l.Stats())
	}
	ls.mu.RUnlock()
	sorting.Func(all, func(a, b Stats) int { return cmp.Compare(a.Provider, b.Provider) })
	return all
}
