// Package pace keeps a program's calls within the rate limit of the provider that it
// calls. It works across many instances of the program, at hundreds of thousands of calls
// a second, without a request to a central store for each call.
//
//	source, err := etcd.New(etcd.Config{Client: client, Provider: "mail"})
//	...
//	mail, err := pace.New(pace.Config{Provider: "mail", Source: source, Smoothing: pace.EvenSpread})
//	...
//	if err := mail.Acquire(ctx, time.Second); err != nil {
//		return err // Not within a second: a *pace.TimeoutError says when.
//	}
//	send()
//
// # Windows and parts
//
// Time is divided into windows of the wall clock, counted from the Unix epoch. A window is
// one second long unless the limit names another period. In each window, an instance has a
// part of the limit. The parts of all instances add up to the limit exactly: a limit of 10
// a second over 96 instances admits 10 a second. Package
// [github.com/headgate/headgate/internal/pace/schedule] computes the parts. A [Source] reports the
// limit, the number of instances and the index of this instance, and follows their
// changes:
//
//	Static             a plan that never changes
//	File               a file that is read again when it changes
//	pace/etcd          limits in etcd; the instances are those with a live lease
//	pace/dogma         a document on a Central Dogma server
//	client/lease         a rate that follows demand, from a capacity lease; see [Rate]
//
// A change takes effect at the edge of a window. Decreases take effect before increases,
// so that the parts never add up to more than the greater of the two limits.
//
// # Waiting
//
// [Pacer.Acquire] waits for less than the given time, [Pacer.TryAcquire] does not wait,
// and [Pacer.AcquireFunc] waits without a goroutine. Waiters are served in first-come
// order. A wait that cannot succeed fails at once. Its error has the time at which a
// permit is predicted to open, given the known limit and the earlier waiters. When the
// limit changes, all waiters are checked again. Each pacer has one timer and one goroutine
// that serves its waiters. When the pacer is open, a caller takes a permit with one
// compare-and-swap.
//
// # Smoothing
//
// [Off] opens all permits of a window at its start, so callers that have waited go all at
// once. [EvenSpread] opens permits one after the other. A permit that is not used in its
// time expires, except for ten milliseconds' worth of permits. [PID] opens permits as fast
// as the previous windows have shown to be harmless. It spreads them evenly when the
// demand exceeds the part, and does not delay calls otherwise.
//
// # Clocks
//
// Windows follow the wall clock, so synchronize the instances' clocks with NTP. If clocks
// agree, a provider that counts the same windows sees at most the limit in each. In a
// second that begins at any other time it may see the parts of two windows: one spent at
// its end, the next at its beginning. With clocks that differ, it may also see a little of
// a third. With [EvenSpread] it sees hardly more than one part. docs/pacing.md has the
// bounds.
//
// The wall clock is read once a window. Within a window, and for all waits, the monotonic
// clock counts. When the wall clock is set back or forward, the next window begins no
// sooner than the current one would have ended. No unit is admitted twice, and no caller
// waits for longer than two windows.
//
// # Slowing down
//
// When a provider answers "too many requests", the configured limit is too high at that
// moment. [Pacer.Brake] slows an instance down for a time. If the source is a [Braker], it
// slows all instances down. Packages [github.com/headgate/headgate/pace/httppace] and
// [github.com/headgate/headgate/pace/grpcpace] call it according to the provider's
// answers.
package pace
