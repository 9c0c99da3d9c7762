// Package prefetch stands in front of a shared store and spares it calls: it takes
// units ahead of need and spends them here, and it refuses here what is known to be
// over its limit.
//
// A Store is a headgate.Store. A policy with Hold above 0 may be prefetched; all
// others pass through, and only their refusals are remembered. Over the limit, a
// request is decided in nanoseconds instead of a round trip, and so is a request
// within it as long as a stash lasts; no limit admits a unit more for that.
//
// # Why a stash cannot be spent late
//
// Let h be the hold, W the period and B the burst. Our monotonic clock reads m0
// before a grant is asked for; the store grants n units at its time tau, which is
// after m0; we spend them while our clock reads less than m0 + h. So a unit that is
// spent at true time s was granted at some tau with
//
//	tau <= s < tau + h                                                     (1)
//
// if our clock runs no slower than the store's: a thousandth of h is kept for that.
// What each algorithm makes of (1):
//
//   - sliding_log: the source counts with the period W + h. What is spent in (t-W, t]
//     was granted in (t-W-h, t], where the source grants no more than Count.
//   - token_bucket: the source's burst is B - ceil(rate x h). What is spent in an
//     interval of length T was granted in one of length T + h, where the source grants
//     no more than B - ceil(rate x h) + rate x (T + h) <= B + rate x T.
//   - fixed_window and sliding_window are counted as they are, and a stash also ends
//     with the window, or sub-window, that it was granted in, by the latest time that
//     the store's clock can show: tau + (now - m0), and a microsecond for a store that
//     counts in those. What is spent in a sub-window was granted in it, so that every
//     estimate is what it would be without stashes. A period of W + h would not do
//     here: its sub-windows have other borders.
//   - leaky_bucket has departures, a ban counts attempts, and count_rejected counts
//     refused ones: Prepare refuses them a hold.
//
// A Decision's At is the earliest that the store's clock can show, tau + (now - m1),
// m1 being when the grant arrived, and within [tau, tau + h) and the window whatever the
// clocks do. So (1) holds of At itself, and exactness judged by At needs no clock.
//
// # What it costs
//
// A log loses h/(W+h) of its capacity, as the source admits Count per W + h, and a
// bucket nothing but the burst. Units that are left when a stash ends stay counted;
// how many are taken ahead is chosen so that this is rare. All instances that share a
// limit should use one hold: the source's state is that of the rewritten policy, and
// logs with two holds count apart.
// docs/prefetch.md has the figures.
//
// # Refusals
//
// A refusal with a RetryAfter is repeated here to requests of the same key and
// policies that cost as much or more, until that time has passed since the refused one
// was asked, but for DenyFor at most: units are returned and bans lifted elsewhere.
// Attempts that have to be counted reach the source: those of count_rejected always,
// those of a ban until the ban itself refuses. What is said of RetryAfter to a request that costs
// more than the refused one is a lower bound.
package prefetch
