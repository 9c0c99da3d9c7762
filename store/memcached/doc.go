// Package memcached keeps counters on Memcached servers, so that many processes share one limit.
//
//	store, err := memcached.New(memcached.Config{Servers: []string{"10.0.0.1:11211", "10.0.0.2:11211"}})
//	...
//	defer store.Close()
//
// The package speaks the meta protocol of Memcached 1.6 (tested with 1.6.18), through package meta.
// Start the servers without -M, so that they evict items when full. A server that refuses to store
// an item deletes the old version of that item.
//
// # One item for each key
//
// All windows of a key are one item. A decision reads the item, applies the steps of package limit,
// and writes the item on the condition that no other process has written it (compare-and-swap). On
// a conflict, the decision starts again, up to Config.Retries times. After that, the error is
// ErrContended, and the rule's fallback decides. Waiting decisions of one process on the same key
// share one read and one write. A refusal that changes nothing is not written: it takes one round
// trip instead of two.
//
// The item has a state for each window, algorithm and period, and the policy that counted last. So
// versions of a limit share the state, in any order of processes. An item expires some seconds
// after the last of its windows. A server cannot keep an expiry of more than 30 days: items that
// are needed longer stay until they are evicted. codec.go has the form of items.
//
// The package supports ban and all algorithms whose state has a fixed size. It does not support a log, because
// each decision would write the whole log.
//
// # Several keys in one group
//
// No write reaches two items. The items of a group are read at the same time, and the whole group is
// tried on these versions. A group that is refused then has taken nothing. The keys of a group that
// passes are decided one after another, in the same order in all processes. A key may still be
// refused, because another process has written first. The units of the other keys are then returned
// before Apply returns. Until then, a concurrent request may see fewer free units than there are, and
// never more. A leaky_bucket with later bookings keeps a returned departure as a gap. Of a refused group
// of TakeIfAll, only the items of refused Ops that count are written.
//
// # Counters
//
// With Config.Counters, a fixed_window of up to 2^31 units and 29 days uses a counter, unless it counts
// refused attempts. The server adds to the counter: one round trip, or two for a refusal, and no
// conflicts between processes. Only a Refund writes a counter on the condition that no other process has
// changed it. Three points differ from the contract of headgate.Store:
//
//   - When a limit changes to count refused attempts, or to more than 2^31 units, it is counted in
//     another place, and starts at 0.
//   - A clock that steps back to an earlier window finds the counts of that window. So the limit holds
//     for each window by the decisions' own times, but not across a step.
//   - Forget drops the periods that this process has prepared: the present window and its neighbours.
//
// # Time
//
// The clock is the server's. Each process estimates the offset of that clock from its own monotonic
// clock, from the server's statistics (package offset). Wall clocks of callers are never read. Stats
// has the estimate and its bound. The bound is half a second after the first sample, for which the
// first decision waits, and 8 ms some seconds later. A server sometimes counts two seconds at once.
// Processes may then be a second apart until they notice, at most 2 s later.
//
// An item has the time of its latest decision, and no decision is made before that time, within 10 s.
// So, by their At, decisions never exceed the bound of the algorithm, whatever the clocks do (TestClocksApart). By true
// time, a window of W may hold what the limit admits in W + 2e, where e is the bound. When the
// server's clock leaps by a second, a bucket refills by a second at once.
//
// # Losses
//
//   - A full server evicts the items that were not used for longest, and a restarted server has none. A
//     lost key starts with empty counts: each time, up to Burst or Count may be admitted once more,
//     and a ban ends. Receipts from before return nothing, except with a probability of 1 in 32,767.
//     Stats.Evictions and Stats.Uptime show both. A server that is large enough evicts nothing.
//   - The first Return of a receipt leaves a note on the server. If the note is evicted, a copy of the
//     receipt returns its units again.
//   - A write without an answer may have been done. It is not repeated, and its units stay counted
//     until their window ends.
//   - No other server takes over the keys of a server that does not answer. Its keys give errors,
//     headgate.ErrUnavailable once the breaker is open, and fallbacks decide. Moving keys would start
//     them with empty counts, twice.
//   - Processes with different lists of servers count some keys in different places.
package memcached
