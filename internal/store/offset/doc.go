// Package offset estimates the difference between this process's monotonic clock and the clock
// of a Memcached server. Its samples are the whole second that the server's stats call
// "time". All callers of one server thus agree on the time, whatever their own clocks show.
// The package reads no clock: times are arguments.
//
// # The sample
//
// A query is sent at m0 and answered by m1. At some r between them, the server's clock showed
// the second T: T <= r + offset < T+1s. So the offset lies in [T - m1, T + 1s - m0). The
// intervals of several samples are intersected. A query near the time of a tick narrows the
// interval most: whether the tick has happened or not removes half of it. See Next and Sweep.
//
// # The server's clock
//
// Memcached counts seconds with a timer that it sets again at each tick, one second ahead. So
// each tick comes a little late, and the lateness adds up. On one machine with Memcached
// 1.6.18 it was 0.65 ms a second at low load and 1.2 ms under load. At each tick, the server
// shows the whole seconds of its machine's monotonic clock. When the lateness has reached a
// second, about every 25 minutes at that rate, the server counts two seconds at once.
//
// The estimate follows the clock of the ticks: the clock that shows T at the tick that shows T.
// All callers see this clock, and it is right in the long run. It falls behind by up to
// Config.Lag and drifts by up to Config.Drift. It leaps by a second where the server counts
// two. The first sample after a leap, a restart or a step reveals it. Until then, two callers
// may be a second apart. A caller that cannot accept that uses the later of two times: its
// own, and the time stored last with an item.
package offset
