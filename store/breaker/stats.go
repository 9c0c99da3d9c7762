package breaker

import "time"

// State gives the state it is in. It takes a lock unless it is closed and well.
func (b *Breaker) State() State {
	if b.gate.Load() != shut {
		return Closed
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// OpenedAt gives when it opened last, and whether it is open, or half open, since then.
func (b *Breaker) OpenedAt() (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.openedAt, b.state != Closed
}

// Stats is what a Breaker has done, for metrics and status pages.
type Stats struct {
	// Opened is how often it has opened.
	Opened uint64
	// Refused is how many calls it has refused.
	Refused uint64
}

// Stats reads the counters.
func (b *Breaker) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Stats{Opened: b.opened, Refused: b.refused.Load()}
}
