package main

// Counts is what a Sender has done since it was made, and how it stands.
type Counts struct {
	Read    int // records
	Sent    int // records whose call succeeded
	Failed  int // calls that failed
	Refused int // calls that the provider refused: it asked to be called later
	Dead    int // records that were given up after the last try
	Dropped int // records that were not sent, since their partition went to another instance
	// Abandoned is the calls that were still under way when their partition went away.
	Abandoned int
	Unused    int // permits that came when the partition had just gone
	Pauses    int
	Resumes   int

	Partitions int
	Paused     int
	Backlog    int // records that have been read and are not done with
	Calls      int // under way, those that wait for a permit among them
}

// Counts tells what the sender has done.
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
