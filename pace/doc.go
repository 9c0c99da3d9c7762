// Package pace keeps the calls that a program makes within the limit of the provider
// that it calls: over many instances of the program, at hundreds of thousands of calls
// a second, and without a central store that would be asked for each.
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
// Time is cut into windows of the wall clock, of a second or as long as you say,
// counted from the Unix epoch. In each, an instance has a part of the limit; the parts of all
// instances add up to the limit exactly, and a limit of 10 a second over 96 instances
// is 10 a second. Package [github.com/headgate/headgate/pace/schedule] has the
// arithmetic. A [Source] says how large the limit is, how many instances there are and which
// one this is, and follows as they change:
//
//	Static             a plan that never changes
//	File               a file that is read again when it changes
//	pace/etcd          limits in etcd; the instances are those that are alive
//	pace/dogma         a document on a Central Dogma server
//
// A change holds from the edge of a window on. What lowers holds before what raises, so
// that the parts never add up to more than the greater of the two limits.
//
// # Waiting
//
// [Pacer.Acquire] waits for less than the time it is given, [Pacer.TryAcquire] does not wait, and
// [Pacer.AcquireFunc] waits without a goroutine. Who came first is served first. A wait
// that cannot succeed fails at once, with the time at which a permit could be had: by
// what is known of the limit and of those who wait before. When the limit changes, all who
// wait are looked at again. There is one timer a pacer and one goroutine that serves
// who waits; those who find the pacer open take a permit by one compare-and-swap.
//
// # Smoothing
//
// With [Off], a window's permits are open from its start, and callers that have waited
// go all at once. [EvenSpread] opens them one after the other; what is not wanted in its time lapses,
// but for ten milliseconds' worth. [PID] lets them open as fast as the windows before
// have shown to be harmless: it spreads them evenly when more is asked for than the
// part, and lets calls go when not.
//
// # Clocks
//
// Windows go by the wall clock, so the instances' clocks should be set by NTP. A provider that
// counts the same windows sees the limit in each while clocks agree. In a second that begins
// at any other time it may see two windows' parts, of which one was spent at its end and
// one at its beginning, and with clocks that differ a little of a third; with [EvenSpread] hardly
// more than one: docs/pacing.md has the bounds. The wall clock is read once a window; within one, and for all
// waiting, it is the monotonic clock that counts. When the wall clock is set back or
// forward, the next window begins no sooner than the present one would have ended: nothing is
// admitted twice, and nobody waits for longer than two windows.
//
// # Slowing down
//
// A provider that answers "too many requests" knows better than a configured number. [Pacer.Brake]
// slows an instance down for a time, and by a source that is a [Braker] all of them. Packages
// [github.com/headgate/headgate/pace/httppace] and
// [github.com/headgate/headgate/pace/grpcpace] do so by what the provider answers.
package pace
