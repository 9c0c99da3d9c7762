package prefetch

import "sync/atomic"

// counts are the counters of Stats. An evicted place adds its own counters here.
type counts struct {
	granted, spent, expired, returned atomic.Uint64
	flights, denied, asked            atomic.Uint64
}

// Stats are the counters of a Store, for metrics and status pages.
type Stats struct {
	// Granted counts units that the source granted, for waiting requests and ahead of need. Spent
	// and Expired count what became of these units. The rest is still unspent.
	Granted, Spent, Expired uint64
	// Returned counts units that receipts returned to a stash. Spent does not include them.
	Returned uint64
	// Flights counts calls of Grant. Asked counts groups that the source decided.
	Flights, Asked uint64
	// Denied counts groups that were refused without a call of the source of their own.
	Denied uint64
}

// Stats reads the counters. Stats locks each set of the table in turn.
func (s *Store) Stats() Stats {
	if !s.made() {
		return Stats{}
	}
	st := Stats{
		Granted: s.counts.granted.Load(), Returned: s.counts.returned.Load(),
		Spent: s.counts.spent.Load(), Expired: s.counts.expired.Load(),
		Flights: s.counts.flights.Load(), Asked: s.counts.asked.Load(), Denied: s.counts.denied.Load(),
	}
	for i := range s.table.sets {
		t := &s.table.sets[i]
		t.lock()
		now := s.now()
		for j := range t.places {
			t.places[j].addTo(&st, int64(now))
		}
		t.unlock()
	}
	return st
}

// addTo adds the counters of a place.
func (p *place) addTo(st *Stats, now int64) {
	st.Denied += p.refused
	for i := range p.stashes {
		h := &p.stashes[i]
		st.Spent += uint64(h.units - h.left)
		if now >= int64(h.until) {
			st.Expired += uint64(h.left)
		}
	}
}
