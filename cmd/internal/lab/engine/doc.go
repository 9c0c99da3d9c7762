// Package engine decides made-up and logged requests in virtual time, for headgate simulate and headgate replay. It runs the guard
// of production with counters in memory. It reads no clock and starts no goroutine, and equal calls give equal decisions, evictions
// included.
//
//	e, err := engine.New(c, engine.Options{Start: first, Seed: 1})
//	for _, line := range lines {
//		e.Advance(line.at)      // lets waiting requests depart, and ends admitted ones
//		a := pool.get()
//		a.Request, a.Lasts, a.Decided, a.Ended = line.request, line.lasts, note, pool.put
//		e.Arrive(a)
//	}
//	e.Finish()
//
// # What is decided
//
// Fair share, rules with bans, delays, quotas and calendar windows, and throttle. Rules of a shared store count in memory. These are
// left out, and [Engine.LeftOut] names them: rules with a lease, prefetch, fallbacks, the tokens and the region database that the
// configuration names, a rule source, and metering. [Options.WithoutDurations] also leaves out throttle and in_flight.
//
// The engine opens nothing: an Attempt has the Claims and the Region of its request, if it has any. The guard keeps values that a
// request already has, and takes XFFIP and UserIP from headers if the configuration trusts them.
//
// # The life of an attempt
//
// Arrive decides a request at Now. A plain decision calls Decided at once. A waiting request keeps its booking and its place among
// max_waiters until it departs, in virtual time; Decided then follows during an Advance or another Arrive. An admitted request ends
// after Lasts with its Outcome, and Ended is called. Decided may still set Lasts and Outcome, for example by a model of a service. With
// Lasts Open, the caller ends the request by End.
//
// # Order
//
// Advance(t) runs all events until t, t included, and then stands at t. So a request that arrives at t comes after the
// departures and the ends of t. Events of one time happen in the order in which they were planned.
package engine
