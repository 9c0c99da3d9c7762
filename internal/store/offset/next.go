package offset

import "time"

// suspicious is how many samples in a row may cut the same end before the other is
// tried. If the offset has left the interval there, every sample cuts towards that end,
// none contradicts, and the estimate runs after the truth as fast as it ages.
const suspicious = 4

// Next gives the earliest time from now on at which a sample halves the interval: a
// tick is due then in the middle of what is possible. Now and then it gives one that
// tries an end of the interval: one that is assumed after Followed, or one that has long
// not been seen. trip is how long a question and its answer take; half of it is what the
// question leaves earlier. Each sample costs up to a second of waiting, until the bound
// is about half of trip, or what drift and lag make of a second; a dozen make a few
// milliseconds of a second. Without any sample, the time is now.
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
	case e.streak >= suspicious: // The tick has come each time. Has it come before it could?
		tick = i.high + trip
	case e.streak <= -suspicious:
		tick = i.low - trip
	}
	return upcoming(-tick-trip/2, now)
}

// Sweep fills times with those at which to ask next, in order, from now on: spread
// evenly over where the next tick may be, so that n of them make an interval n+1 times
// as narrow within about a second. Three sweeps of 9 make a millisecond of a second in
// about 4 seconds, where Next takes a dozen. trip is as with Next.
func (e *Estimator) Sweep(now, trip time.Duration, times []time.Duration) {
	start, width := now, time.Second
	if e.known {
		i := e.aged(e.now, max(now, e.now.at))
		if w := i.high - i.low; w < time.Second/2 {
			// The tick comes when our clock shows a whole second less the offset.
			start, width = upcoming(-i.high-trip/2, now), w
		}
	}
	n := time.Duration(len(times))
	for k := range times {
		times[k] = start + width*time.Duration(k+1)/(n+1)
	}
}

// upcoming gives the first time from now on that is a whole number of seconds from phase.
func upcoming(phase, now time.Duration) time.Duration {
	wait := (phase - now) % time.Second
	if wait < 0 {
		wait += time.Second
	}
	return now + wait
}
