// Package schedule has the arithmetic of pacing. It computes an instance's part of a limit
// in each window, the plan that is valid at a time, and the times at which permits open.
// The package is pure: time is an argument.
//
//	plan, err := schedule.Even(10, time.Second, 96, 7)
//	plan.Part(w)                 // this instance's units of window w
//	timeline.At(wall, mono)      // the valid plan and its part
//	line.Open(elapsed)           // the number of open permits
//	spread := pid.Next(outcome)  // the fraction of the next window in which permits open
//
// # Parts
//
// With a limit of R units a window, instance i of N has in window w
//
//	floor(((w+1)R + i) / N) - floor((wR + i) / N)
//
// Since floor(x/N) + floor((x+1)/N) + ... + floor((x+N-1)/N) = x (Hermite's identity), the
// parts of all instances add up to (w+1)R - wR = R, in every window. In the windows from v
// to w-1, an instance has floor((wR+i)/N) - floor((vR+i)/N) units. This number differs from
// (w-v)R/N by less than one. For example, with a limit of 10 and 96 instances, the instances
// have exactly 10 units together in each window. Each instance has a unit in every ninth or
// tenth window.
//
// # Brakes
//
// A brake allows B of the R units of each window. It selects units instead of shrinking the
// parts, because a part of one unit would shrink to 0.
//
// The units of a window have the numbers 0 to R-1. Instance i has each unit u for which N
// divides wR + u + 1 + i. In a round of N/gcd(R,N) windows, the instance has each of its
// numbers once. In round k, the numbers kB, ..., kB+B-1 modulo R are
// allowed. So B units are allowed in each window, and over the rounds all numbers are
// allowed equally often.
//
// # A change of plans
//
// Instances learn changes at different times, but all in the same order. Each change is
// newer than the changes before it. A change begins at the edge of a window, From. It is
// settled at a later time, at which all instances are sure to know it.
//
// For window w, an instance first finds its base. The base is the newest known change that
// has begun and was settled when w began. The instance's part is the smallest part in the
// base and in all newer known changes that have begun. The instance forgets all changes
// that are older than its base.
//
// The proof needs an assumption. Let an instance treat a change as settled in a window w.
// Then every instance that has not stopped knew the change, as one that has begun, before
// its own query for w. Under this assumption, each w has one change whose limit is at least
// the sum of the parts of all instances. Instances may query w several times: the largest
// answer of each instance counts.
//
// Proof. Let k be the newest base with which any instance had a part of w. Consider an
// instance that had a part of w with the base b, which is k or an older change. If b is k,
// the part is at most k's part. If b is older, the instance knew k, and k had begun, by the
// assumption. The instance had not forgotten k, because k is newer than b, and bases only
// become newer. So k's part is one of the parts of which the smallest counts. In both cases
// the part is at most the part that k gives the instance. These are parts of one division,
// so their sum is at most k's limit.
//
// A change to windows of another length has no units for the old windows after it has begun.
// The instance then has no units until the change is settled. By the same argument, once any
// instance uses the new length, no window of the old length that begins later has units.
//
// To satisfy the assumption, a source announces a change and settles it later. The delay
// must be the longest time that the message takes, plus the largest difference of clocks.
// If the message takes longer, the instances that know the change have at most its limit.
// The other instances have the parts of their own plans, and the excess is at most these
// parts. An instance whose first plan is not settled has no units. A change that lowers a
// part does not wait until it is settled, but a change that raises a part does. So
// decreases always come first.
//
// # Lines
//
// Permit k of n opens k/n of the line's length after the window begins. The length is the
// window's length or less. If no caller waits, an open permit stays open if it is within
// the credit, and expires otherwise. Later permits keep the same pace.
//
// # The controller
//
// Permits that open evenly delay callers that arrive in a burst, and waste permits that no
// caller wants in time. PID opens permits u times as fast, in 1/u of the window, and learns
// u. Let s be the logarithm of u. Each window shows the error e of s:
//
//   - Not all units of the part were used. The speed could have been part/used times as
//     high, so e is log(part/used).
//   - All units were used, and some callers got none. The permits lasted until the fraction
//     L of the window, and the demand until the fraction D. The permits should have opened
//     L/D times as fast, so e is log(L/D), which is below 0.
//   - All units were used, and every caller got one: e is 0.
//   - No units were used, or the part is 0: the window is ignored.
//
// While the demand exceeds the part, permits last as long as they take to open, so log L =
// -s. If the demand begins at the fraction a of the window, (1-a)u of the part is used, as
// long as this is below 1. So log(part/used) = -log(1-a) - s. In both cases e = d - s,
// where d is the right value of s. In control theory, this is a plant with a gain of -1 and
// no memory, which responds after one window. With less demand, faster permits change
// nothing, and the gain is nearer to 0.
//
// A PID controller in incremental form is
//
//	s' = s + I e + P (e - e1) + D (e - 2 e1 + e2)
//
// with the errors e1 and e2 of the two windows before. With a gain of -g, the loop's
// characteristic polynomial is
//
//	z^3 + (g(P+I+D) - 1) z^2 - g(P+2D) z + gD
//
// By Jury's test, the loop is stable when
//
//	gI > 0,  g(2P+I+4D) < 2,  |gD| < 1,  |1 - (gD)^2| > |g(P+2D) + gD(g(P+I+D) - 1)|
//
// For I = 1 and P = D = 0 all poles are 0, so the next window corrects an error completely.
// The plant has no inertia that a derivative could predict, and no lag that a proportional
// term could shorten. For P = D = 0 and g = 1, the only nonzero pole is 1 - I, and the loop
// is stable for 0 < I < 2.
//
// So one number remains to choose. After n windows, (1-I)^n of an error remains. Of the
// noise in the windows, I/(2-I) reaches s. The controller uses I = 0.75: a quarter of an
// error remains after a window, and the loop is stable up to 2.6 times the plant's gain.
// This is exponential smoothing of d. It is the best predictor of a value that follows a
// random walk and is measured with noise.
//
// The speed is kept between 1 and MaxSpeed = 5. This form needs no other anti-windup,
// because the speed is the only state. The consequences are:
//
//   - Demand above the limit: from MaxSpeed, permits are even within four windows, or five
//     at most. The coefficient of variation in a window of speed u is sqrt(u-1). It is
//     below 0.2 when u < 1.04, and log 5 times 0.25^3 is 0.025.
//   - Demand below the limit: the speed grows to MaxSpeed. At half the limit, this takes
//     log 5 / (0.75 log 2) = 3.1 windows. Only bursts above the credit are delayed.
//   - Demand late in the window: permits become fast enough to use the limit, if the demand
//     begins before 1 - 1/MaxSpeed of the window.
//   - Demand that ends early: permits become fast enough for the demand, and no faster.
//   - Late timers: the last permits of a window are lost. The permits of the next window
//     open faster by the same amount.
//   - Alternating demand: a window with high demand has the speed that was learned in the
//     window with low demand.
//
// docs/decisions/0011-smoothing.md describes the tested alternatives, and docs/plots has
// plots.
package schedule
