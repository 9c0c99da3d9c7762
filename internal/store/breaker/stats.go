package breaker

import "time"

// State gives the current state. State takes a lock unless the last call succeeded.
func (b *Breaker) State() State {
	if b.gate.Load() != shut {
		return Closed
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// OpenedAt gives the time of the last opening, and whether the Breaker is still open or half
// open.
func (b *Breaker) OpenedAt() (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.openedAt, b.state != Closed
}

// Stats are the counters of a Breaker, for metrics and status pages.
type Stats struct {
	// Opened counts openings.
	Opened uint64
	// Refused counts refused calls.
	Refused uint64
}

// Stats reads the counters.
func (b *Breaker) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Stats{Opened: b.opened, Refused: b.refused.Load()}
}
