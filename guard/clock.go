package guard

import "time"

// machineTime is what the store's budget runs by, as all contexts do. Decisions are
// made by the clocks of the stores, and those of fair share by one like the store's in
// memory, since they count in this process.
func machineTime() time.Time { return time.Now() }

// now gives the time that departures go by, as the timers do that they wait on.
func (s *waitQueues) now() time.Duration { return s.clock.Now() }
