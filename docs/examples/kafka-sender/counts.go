package main

// Counts has the totals of a Sender since its start, and its present state.
type Counts struct {
	Read    int // records
	Sent    int // records with a successful call
	Failed  int // calls that failed
	Refused int // calls that the provider refused because of overload
	Dead    int // records given up after the last try
	Dropped int // records not sent because their partition moved to another instance
	// Abandoned counts calls still in flight when their partition moved to another instance.
	Abandoned int
	Unused    int // permits that arrived just after their partition had moved
	Pauses    int
	Resumes   int

	Partitions int
	Paused     int
	Backlog    int // records that were read and are not done
	Calls      int // in flight, including calls that wait for a permit
}

// Counts returns the totals and the present state.
func (s *Sender) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	c.Partitions, c.Calls = len(s.partitions), s.c.Calls-s.free
	for _, p := range s.partitions {
		c.Backlog += p.events.len()
		if p.paused {
			c.Paused++
		}
	}
	return c
}
