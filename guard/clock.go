package guard

import "time"

// machineTime is the clock of the store's budget, as for all contexts. The stores' clocks decide
// about limits. Fair share counts in this process, so it uses a clock like that of the store
// in memory.
func machineTime() time.Time { return time.Now() }

// now gives the time by which departures and their timers run.
func (s *waitQueues) now() time.Duration { return s.clock.Now() }
