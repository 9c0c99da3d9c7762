// Package memcached keeps counters on Memcached servers, so that many processes share
// one limit.
//
//	store, err := memcached.New(memcached.Config{Servers: []string{"10.0.0.1:11211", "10.0.0.2:11211"}})
//	...
//	defer store.Close()
//
// It speaks the meta protocol of Memcached 1.6 (tested with 1.6.18), through package
// meta. Servers begin without -M, so that they evict rather than refuse: one that
// refuses to store an item deletes what it had of it.
//
// # One item a key
//
// All windows of a key are one item, that is read, decided on with the steps of
// package limit, and written on condition that nobody else has written it meanwhile
// (compare-and-swap); else all begins anew, up to Config.Retries times, after which
// the answer is ErrContended and the rule's fallback decides. Decisions of one process
// that wait for the same key are made together, in one reading and one writing. A
// refusal that changes nothing is not written: it costs one round trip, others two.
//
// The item has a state for each window, algorithm and period, and says under which policy
// it was counted last, so that versions of a limit share it, whichever process has it
// first. Items die by themselves some
// seconds after the last of their windows is free, but for those that matter for more
// than 30 days, which a server cannot be told: they stay until they are evicted.
// codec.go has their form.
//
// token_bucket, leaky_bucket, fixed_window, sliding_window and ban are there.
// sliding_log is not: a log that is written whole for each decision is no use.
//
// # Several keys in one group
//
// No write reaches two items. The items of a group are read at once, and the group is
// tried on what was read: if it is refused then, nothing was taken. If it passes, its
// keys are decided one after another, in one order for all processes. Should one
// refuse after all, because another process was faster, what was taken under the
// others is given back before Apply returns; in between, others may find less than
// there is, and never more. A leaky_bucket that has booked others behind it keeps the
// departure that was given back as a gap.
//
// # Counters
//
// With Config.Counters each fixed_window of up to 2^31 units and 29 days, that does not
// count refused attempts, is counted in a counter of its own, which the server adds to:
// one round trip, no conflicts whatever the number of processes, and two round trips
// for a refusal. What differs from the contract of headgate.Store:
//
//   - A limit that comes to count refused attempts, or to more than 2^31 units, is
//     counted elsewhere, and begins anew.
//   - A clock that steps back to an earlier window finds what that had left. So the
//     limit holds for each window by the decisions' own times, but not across a step.
//   - Forget forgets the periods that this process has prepared, and the window of
//     now with its neighbours.
//
// # Time
//
// The clock is the server's: each process estimates how far it is ahead of its own
// monotonic clock, from the server's statistics (package offset). Wall clocks of
// callers are never read. Stats tell the estimate and its bound: half a second after
// the first sample, which the first decision waits for, 8 ms some seconds later. Where
// the server counts two seconds at once, which its timer does now and then, processes
// may be a second apart until they see it, 2 s later at the most.
//
// An item carries the time of its latest decision, and no later one is made at a time
// before it, as long as that is within 10 s: by their At, decisions never pass the limit,
// however clocks lie (TestClocksApart). By true time a window of W may hold what the
// limit admits in W + 2e, e being the bound; and where the server's clock leaps by a
// second, a bucket refills as much at once.
//
// # What is lost
//
//   - A server evicts what was not used for longest when it has no room, and forgets all
//     when it restarts. A key that is forgotten begins anew: at each such time up to Burst,
//     or Count, may be admitted once more, and a ban is lifted. Receipts from before
//     return nothing, but for a chance of 1 in 32,767. Stats.Evictions and Stats.Uptime
//     show both: evictions of a server that is large enough for its keys are 0.
//   - A receipt is returned once because the first to return it leaves a note. If the
//     note was evicted, a copy that is returned later gives its units back again.
//   - A write that was sent and not answered may have been done. It is not repeated, and
//     its units stay counted until they leave their window.
//   - A server that does not answer is not replaced by another: its keys are errors,
//     headgate.ErrUnavailable once its breaker is open, and fallbacks decide. Moving
//     them would give each a new beginning, there and back.
//   - Processes that list different servers count some keys in different places.
package memcached
