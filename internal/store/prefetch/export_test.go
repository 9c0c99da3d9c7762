package prefetch

// Waiting gives the number of keys with a flight or with a waiting caller.
func (s *Store) Waiting() int {
	s.flights.mu.Lock()
	defer s.flights.mu.Unlock()
	return len(s.flights.slots)
}
