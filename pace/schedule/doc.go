// Package schedule is the arithmetic of pacing: which part of a limit is one instance's in
// each window, from when a plan holds, and when within a window its permits open. It is
// pure: time is an argument.
//
//	plan, err := schedule.Even(10, time.Second, 96, 7)  // or Uneven, by units
//	plan.Part(w)                                        // units of window w
//	timeline.At(wall, mono)                             // which plan holds, and what it gives
//	line.Open(elapsed)                                  // how many permits are open by then
//	spread := pid.Next(outcome)                         // the part of the next window they open in
//
// # Parts
//
// Of a limit of R units a window, instance i of N has in window w
//
//	floor(((w+1)R + i) / N) - floor((wR + i) / N)
//
// Since floor(x/N) + floor((x+1)/N) + ... + floor((x+N-1)/N) = x (Hermite's identity), the
// parts of all instances add up to (w+1)R - wR = R, in every window. In the windows from v
// to w-1 an instance has floor((wR+i)/N) - floor((vR+i)/N) units, which is less than one
// off (w-v)R/N. So a limit of 10 over 96 instances is 10: each has a unit in every ninth or
// tenth window.
//
// An uneven division has T windows to a turn, so that units[k], which are instance k's of a
// turn, are whole numbers and fine. With b(k) = units[0] + ... + units[k-1], instance k has
// in a window
//
//	floor((b(k+1) + j) / T) - floor((b(k) + j) / T)
//
// where j is another number below T in each window of a turn. For one window the sum over
// the instances is floor((RT+j)/T) - floor(j/T) = R. For one instance the sum over a turn
// is b(k+1) - b(k), by the same identity. The j of windows that follow each other are a
// golden section of T apart, so that in no run of windows an instance is off its average by
// more than a few units: 4 in all that TestUnevenRuns tries.
//
// # Brakes
//
// When only B of the R units of each window may go, some units are chosen, and not parts
// made smaller, which would leave nothing of a part of one. In an even division the units
// of a window have numbers 0 to R-1, of which instance i has those u for which N divides wR
// + u + 1 + i. In a round of N/gcd(R,N) windows it has each number that it ever has once.
// In round k the numbers kB, ..., kB+B-1 modulo R go: B in each window, and as k grows all
// in turn, evenly. In an uneven division units are numbered by instance, and unit x goes
// when (xB + s) mod R >= R - B, with another shift s in each window: B in each, a part of n
// has nB/R of them or one unit off that, and in the long run every unit goes as often as
// any other.
//
// # A change of plans
//
// Instances learn of changes each at its own time, in one order; k is newer than those
// before it. A change holds from a window's edge, From, and is settled at a time that comes
// after it is sure to be known to all. For window w an instance looks for its base, the
// newest change that it knows, that has begun and that was settled when w began, and has
// the least of the base's part and of those of all newer changes that it knows and that
// have begun. It forgets what is older than its base.
//
// Suppose that when some instance takes a change to be settled, in a window w, then every
// instance that has not stopped knew it before it asked for w, and as one that has begun.
// Then for each w there is one change whose limit the parts of all instances do not exceed,
// however often each instance asks, and if its greatest answer counts.
//
// For let k be the newest of all bases by which somebody had a part of w. Whoever had a
// part had it by a base b that is k or older. If it is k, the part is at most k's. If b is
// older, then k was known and had begun, by the supposition; it is newer than b, so that it
// was not forgotten, for bases only get newer; so it is one of those of which the part is
// the least. In both cases the part is at most what k gives that instance. These are parts
// of one division, so they add up to at most its limit.
//
// A change to windows of another length leaves nothing of the old windows once it has
// begun, until it is settled. By the same argument no window of the old length that begins
// later gives anything once somebody uses the new one.
//
// What the supposition asks of a source: a change is settled by the longest time that the
// news takes, and by as much as clocks differ, after it was told. Where the news takes
// longer, those who know have at most the limit, and those who do not know have what their
// own plans give them: the excess is at most that. An instance whose first plan is not
// settled has nothing. What lowers a part does not wait to be settled, what raises it does:
// so lowering comes first by itself.
//
// # Lines
//
// Permit k of n opens k/n of the length after the window's begin, and the length is the
// window's, or less. A permit whose time has passed while nobody waited stays open if it is
// within the credit, and lapses otherwise: the pace is the same for those who come later.
//
// # The controller
//
// Permits that open evenly delay callers who come in a burst, and waste what is not wanted
// in its time. PID opens them u times faster, in 1/u of the window, and learns u. With the
// logarithm s of u, a window shows how wrong s was:
//
//   - Not all of the part was used: with part/used times the speed it might have been, so
//     the mistake e is log(part/used).
//   - All was used, and somebody went without: the permits lasted until L and were wanted
//     until D, so they should have opened L/D times as fast, and e is log(L/D), below 0.
//   - All was used, and nobody went without: 0.
//   - Nothing was used, or there was nothing: nothing is learned.
//
// While demand is for more than the part, permits last as long as they take to open, so log
// L = -s, and of demand that begins at the part a of the window, the fraction (1-a)u is
// used as long as it is below 1, so log(part/used) = -log(1-a) - s. In both cases e = d -
// s, where d is what s should have been: a plant whose gain is -1, that does not remember,
// and answers after one window. With less demand, faster permits change nothing, and the
// gain is nearer to 0.
//
// A PID controller in the form that gives the change of its output is
//
//	s' = s + I e + P (e - e1) + D (e - 2 e1 + e2)
//
// with the mistakes e1 and e2 of the windows before. With a gain of -g the loop's
// characteristic polynomial is
//
//	z^3 + (g(P+I+D) - 1) z^2 - g(P+2D) z + gD
//
// and by Jury's test it is stable when
//
//	gI > 0,  g(2P+I+4D) < 2,  |gD| < 1,  |1 - (gD)^2| > |g(P+2D) + gD(g(P+I+D) - 1)|
//
// The poles are all 0, so that a mistake is mended in the next window, for I = 1 and P = D
// = 0: there is no inertia which a derivative could foresee, and no lag that a proportional
// term could shorten. For P = D = 0 the only pole that is not 0 is 1 - gI: stable for 0 < I
// < 2. What is left is a choice of one number: of a mistake (1-I)^n remains after n
// windows, and of noise in what windows show I/(2-I) comes through to s. The controller has
// I = 0.75: a quarter remains, a gain of the plant that is 2.6 times as large would still
// be stable. This is exponential smoothing of d, which is the best guess at the next of a
// value that wanders as a random walk and is seen through noise.
//
// The speed is kept between 1 and MaxSpeed = 5. In this form that is all the anti-windup
// there is to do: nothing but the speed itself is remembered. What follows:
//
//   - Demand above the limit, whenever it comes: evenly within four windows, five at most,
//     from MaxSpeed. The coefficient of variation in a window of speed u is sqrt(u-1); it
//     is below 0.2 when u < 1.04, and log 5 times 0.25^3 is 0.025.
//   - Demand below it: MaxSpeed after some windows, log 5 / (0.75 log 2) = 3.1 of them at
//     half. Nobody is delayed, but for bursts of more than a credit.
//   - Demand that comes late: fast enough that the limit is used, if it comes before 1 -
//     1/MaxSpeed of the window.
//   - Demand that leaves early: fast enough for it, and no faster.
//   - Timers that are late lose the last permits of a window; the next one opens faster by
//     as much.
//   - By turns: windows of much demand go at the speed that those of little have taught.
//
// docs/decisions/0011-smoothing.md has what else was tried, and docs/plots what it looks
// like.
package schedule
