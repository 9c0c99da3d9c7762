// Package offset estimates the difference between this process' monotonic clock and
// the clock of a Memcached server, from samples of the whole second that the server's
// stats call "time". Callers of one server so agree on the time, whatever their own
// clocks say. It reads no clock: times are arguments.
//
// # The sample
//
// Asked at m0, answered by m1, the server's clock showed the second T at some r between
// them: T <= r + offset < T+1s, so the offset lies in [T - m1, T + 1s - m0). The
// intervals of several samples are intersected. What narrows them is to ask when a tick
// is due: before it or after it, half of the interval goes. See Next and Sweep.
//
// # The server's clock
//
// Memcached counts seconds by a timer that it sets anew at each tick, for a second
// later. Each tick so comes a little late, and the lateness adds up: on one machine,
// measured with 1.6.18, 0.65 ms a second while it had little to do and 1.2 ms when it
// was busy. At each tick it shows the whole seconds of the machine's monotonic clock,
// so when a second of lateness has gathered (about every 25 minutes at that rate) it
// counts two at once.
//
// The clock that is estimated here is that of the ticks: it shows T at the tick that
// shows T. It is what all callers see, and right in the long run; it falls behind by up
// to Config.Lag, drifts by up to Config.Drift, and leaps by a second where the server
// counts two. A leap, as a restart or a step, is known by the first sample after it.
// Until then two callers may be a second apart: who cannot bear that takes, of its own
// time and the one last stored with an item, the later.
package offset
