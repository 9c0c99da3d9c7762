// Package prefetch stands in front of a shared store and saves calls of the store. It takes
// units ahead of need and spends them in this process. It also repeats known refusals.
//
// A Store is a headgate.Store. A policy with Hold above 0 may be prefetched. Requests under
// other policies go to the source, and only their refusals are remembered. A known refusal
// is repeated in nanoseconds instead of a round trip. A request within its limit is decided
// as fast while a stash has units. No limit admits an additional unit.
//
// A stash is the unspent part of one grant. A flight is one call of the source for a grant.
//
// # Why a stash is never spent too late
//
// Let h be the hold, W the period and B the burst. This process's monotonic clock reads m0
// before a grant is requested. The store grants n units at its time tau, after m0. The units
// are spent while this clock reads less than m0 + h. So a unit that is spent at true time s
// was granted at some tau with
//
//	tau <= s < tau + h                                                     (1)
//
// if this clock runs no slower than the store's clock. A thousandth of h is reserved for
// that. limit.TraitsOf says which of four ways an algorithm uses. (1) means for them:
//
//   - limit.AheadByPeriod: the source counts with the period W + h. Units that are spent in (t-W, t]
//     were granted in (t-W-h, t]. The source grants at most Count units there.
//   - limit.AheadByBurst: the source's burst is B - ceil(rate x h). Units that are spent in an
//     interval of length T were granted in an interval of length T + h. The source grants
//     at most B - ceil(rate x h) + rate x (T + h) <= B + rate x T units there.
//   - limit.AheadByWindow: the source counts by the given period. A stash also
//     expires with the window, or sub-window, of its grant, at the latest time that the
//     store's clock can show: tau + (now - m0), and a microsecond more for a store that
//     counts in microseconds. So units are spent in the sub-window of their grant, and every
//     estimate is the same as without stashes. A period of W + h would not work: its
//     sub-windows have other borders.
//   - limit.AheadNever, because leaky_bucket books departures and a ban counts attempts: Prepare
//     refuses a Hold. It also refuses a Hold with count_rejected, which counts refused attempts.
//
// A Decision's At is the earliest time that the store's clock can show: tau + (now - m1),
// where m1 is the arrival of the grant. At is always within [tau, tau + h) and within the
// window, whatever the clocks do. So (1) holds for At itself, and exactness by At does not
// depend on clocks.
//
// # Costs
//
// A log loses h/(W+h) of its capacity, because the source admits Count per W + h. A bucket
// loses only burst. Unspent units of an expired stash stay counted; the number of prefetched
// units is chosen to make this rare. All instances that share a limit should use one hold:
// the source counts under the rewritten policy, and logs with different holds count apart.
// docs/prefetch.md has the figures.
//
// # Refusals
//
// A refusal with a RetryAfter is repeated to requests of the same key and policies with the
// same cost or more. It is repeated until the RetryAfter has passed, measured from the
// beginning of the refused request, but at most for DenyFor: another instance may return units
// or lift a ban. A Return or a Refund in this process lifts the known refusals of its key.
// Attempts that must be counted reach the source: under count_rejected always, and under a ban
// until the ban itself refuses. For a request with a higher cost than the refused one, the
// repeated RetryAfter is a lower bound.
package prefetch
