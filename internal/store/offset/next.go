package offset

import "time"

// suspicious is the number of consecutive samples that may cut the same end before the other
// end is tried. If the offset has left the interval at the other end, every sample cuts the
// same end, and none of them contradicts the estimate. The estimate then follows the truth
// only as fast as it ages.
const suspicious = 4

// Next gives the earliest time from now on at which a sample halves the interval: the time at
// which a tick is due in the middle of the possible range. Sometimes the sample instead tries
// an end of the interval: an end assumed after Followed, or an end not seen for long.
//
// trip is the duration of a query; the query leaves half a trip earlier. Each sample waits up
// to a second, until the bound is about half of trip, or the drift and lag of a second. A
// dozen samples reduce the bound from a second to a few milliseconds. Without any sample,
// the time is now.
func (e *Estimator) Next(now, trip time.Duration) time.Duration {
	if !e.known {
		return now
	}
	i := e.aged(e.now, max(now, e.now.at))
	tick := i.middle()
	switch {
	case e.assume.side == lower:
		tick = min(tick, i.low+e.assume.margin/2)
	case e.assume.side == upper:
		tick = max(tick, i.high-e.assume.margin/2)
	case e.streak >= suspicious: // The tick came in time after each sample. Try whether it can come too early.
		tick = i.high + trip
	case e.streak <= -suspicious:
		tick = i.low - trip
	}
	return upcoming(-tick-trip/2, now)
}

// Sweep fills times with the times of the next queries, in order, from now on. They are spread
// evenly over the range in which the next tick may be, so n queries make the interval n+1
// times narrower within about a second. Three sweeps of 9 reach a millisecond in about 4
// seconds, where Next needs a dozen. trip is as with Next.
func (e *Estimator) Sweep(now, trip time.Duration, times []time.Duration) {
	start, width := now, time.Second
	if e.known {
		i := e.aged(e.now, max(now, e.now.at))
		if w := i.high - i.low; w < time.Second/2 {
			// The tick comes when this process's clock shows a whole second less the offset.
			start, width = upcoming(-i.high-trip/2, now), w
		}
	}
	n := time.Duration(len(times))
	for k := range times {
		times[k] = start + width*time.Duration(k+1)/(n+1)
	}
}

// upcoming gives the first time from now on that is a whole number of seconds after phase.
func upcoming(phase, now time.Duration) time.Duration {
	wait := (phase - now) % time.Second
	if wait < 0 {
		wait += time.Second
	}
	return now + wait
}
