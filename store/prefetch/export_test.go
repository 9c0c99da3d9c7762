package prefetch

// Waiting gives how many keys have a flight, or somebody who waits for one.
func (s *Store) Waiting() int {
	s.flights.mu.Lock()
	defer s.flights.mu.Unlock()
	return len(s.flights.slots)
}
