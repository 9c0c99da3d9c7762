package pace

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/pace/schedule"
)

// window is a pacer's current window, in monotonic time.
type window struct {
	schedule.Window

	begin, end int64
	ahead      int64            // how far the wall clock is ahead, as this window has it
	edge       headgate.Instant // the wall time at which the next begins
	part       int64            // units that may be given, in all
	given      int64            // units that have been given, those in the gate among them
	earlier    int64            // of a rate: units that were given before its last change
	refused    int64            // units of requests that were refused
	spent      int64            // when it was first seen that all were given; 0 if never
	wanted     bool             // more was asked for than the part
	until      int64            // until when those who went without would have waited
	disturbed  bool             // something else than demand and line made it what it was
	line       schedule.Line
}

// at converts a time in the window to wall time.
func (w *window) at(now int64) headgate.Instant { return headgate.Instant(now + w.ahead) }

// monotonic converts a wall time at or after the window's edge to monotonic time.
func (w *window) monotonic(t headgate.Instant) int64 { return w.end + int64(t-w.edge) }

// length returns the window's length by its plan, and 0 without a plan.
func (w *window) length() int64 { return int64(w.Plan.Per) }

// opens returns the time at which the given number of units in total has opened, if the
// part has as many.
func (w *window) opens(units int64) int64 { return w.begin + w.line.When(units) }

// fits reports whether n more units may be granted now.
func (w *window) fits(now, n int64) bool {
	return n <= w.part-w.given && n <= w.line.Open(now-w.begin)-w.given
}

// left returns the units that can still be granted before the window ends.
func (w *window) left() int64 {
	return max(min(w.part, w.line.Open(w.end-w.begin-1))-w.given, 0)
}

// ask records a request for n units behind the units that already wait.
func (w *window) ask(n, waiting int64) { w.wanted = w.wanted || n+waiting > w.part-w.given }

// look records the time at which all units were granted.
func (w *window) look(now int64) {
	if w.spent == 0 && w.given >= w.part {
		w.spent = now
	}
}

// never is later than every other time.
const never = int64(1<<63 - 1)

// A wall clock that was set forward by at most maxShift, or a tenth of a window, is
// followed slowly: by one part in slew of each window.
const (
	maxShift = int64(100 * time.Millisecond)
	slew     = 1000
)

// lateTimer is the timer latency that loses no units of a window.
const lateTimer = int64(2 * time.Millisecond)

// advance closes the gate, takes its units back, and moves on to the window of now.
func (p *Pacer) advance(now int64) {
	p.window.given -= p.gate.close()
	p.window.look(now)
	if now >= p.window.end {
		p.nextWindow(now)
	}
	if p.rate.on {
		p.trim(now)
	}
}

// nextWindow begins the window of the wall clock if that window begins after the end of the current
// one, with a tolerance of a thousandth of a window. Otherwise the wall clock was set, and the
// current window continues until the next edge that is late enough.
//
// For every change of the clock, an interval of one window's length, less a thousandth, sees at most
// the parts of two successive windows. The first waiter waits for at most two windows, unless the
// clock is set again meanwhile.
func (p *Pacer) nextWindow(now int64) {
	if p.rate.on {
		p.nextSecond(now)
		return
	}
	over := &p.window
	ahead := p.wallAhead(now)
	w, ok := p.timeline.At(headgate.Instant(now+ahead), headgate.Instant(now))
	if !ok {
		p.await(now, ahead, w.Revised)
		return
	}
	begin, per := int64(w.Start)-ahead, int64(w.Plan.Per)
	if per <= 0 {
		p.await(now, ahead, w.Revised)
		return
	}
	if least := over.end - over.length()/slew; over.length() > 0 && begin < least {
		edge := w.Start.Add(time.Duration((least - begin + per - 1) / per * per))
		edge = min(edge, p.edgeOf(w, headgate.Instant(now+ahead)))
		over.end, over.edge = int64(edge)-ahead, edge
		p.lessen(w)
		over.ahead = ahead
		p.ahead.Store(ahead)
		return
	}
	p.settleAccount(now)
	p.begin(window{Window: w, begin: begin, edge: p.edgeOf(w, headgate.Instant(now+ahead)), ahead: ahead, part: w.Part}, now)
}

// edgeOf returns the next wall time after wall at which the window may change: the end of
// w, the start of a plan, or, if the newest plan has other windows, an edge of its
// windows.
func (p *Pacer) edgeOf(w schedule.Window, wall headgate.Instant) headgate.Instant {
	edge := min(w.Revised, w.Start.Add(w.Plan.Per))
	if edge <= wall {
		edge = w.Revised
	}
	if last, notified := p.timeline.Last(); notified && last.Per > 0 && last.Per != w.Plan.Per {
		edge = min(edge, last.Start(last.Window(wall)+1))
	}
	return edge
}

// lessen reduces the current window to the units that it has by the newest plan.
func (p *Pacer) lessen(is schedule.Window) {
	w := &p.window
	if is.Number != w.Number || is.Plan.Per != w.Plan.Per {
		is.Part = 0
	}
	if is.Part < w.part {
		w.part, w.disturbed = max(is.Part, w.given), true
	}
}

// begin starts a window.
func (p *Pacer) begin(next window, now int64) {
	next.end = int64(next.edge) - next.ahead
	if p.fresh && next.begin < now { // The rest of the window gets its share of the units.
		next.part = int64(float64(next.part) * float64(next.end-now) / float64(next.length()))
		next.begin, next.disturbed = now, true
	}
	p.fresh = false
	next.part = min(next.part, p.braked(&next))
	next.line = p.lineOf(&next, p.spread)
	p.window = next
	p.ahead.Store(next.ahead)
}

// await makes the pacer wait for the start of the first plan.
func (p *Pacer) await(now, ahead int64, begins headgate.Instant) {
	p.settleAccount(now)
	end := max(min(int64(begins)-ahead, now+int64(time.Second)), now+1) // The wall clock may be set.
	if _, notified := p.timeline.Last(); !notified {
		end = never - max(ahead, 0)
	}
	p.window = window{begin: now, end: end, edge: headgate.Instant(end + ahead), ahead: ahead}
	p.ahead.Store(ahead)
}

// wallAhead returns the offset of the wall clock for the next window. A clock that was set
// forward a little is followed slowly: windows are shorter by a thousandth until they have
// caught up.
func (p *Pacer) wallAhead(now int64) int64 {
	over := &p.window
	ahead := p.clock.ahead(now)
	shift := ahead - over.ahead
	if over.length() == 0 || now-over.end >= over.length() || shift <= 0 || shift > min(over.length()/10, maxShift) {
		return ahead
	}
	return over.ahead + min(shift, over.length()/slew)
}

// settleAccount adjusts the smoothing to the window that has ended, and adds its units to
// the counters.
func (p *Pacer) settleAccount(now int64) {
	over := &p.window
	p.counts.acquired += uint64(over.earlier + over.given)
	p.counts.refused = min(p.counts.refused+over.refused, 1<<62)
	p.counts.demand = over.earlier + over.given + over.refused + p.queue.units
	if now-over.end >= max(over.length(), 1) {
		p.counts.demand = p.queue.units // Whole windows have passed without a request.
	}
	if p.config.Smoothing == PID && !over.disturbed && over.length() > 0 {
		p.spread = p.pid.Next(schedule.Outcome{
			Part: over.part, Used: over.given, Wanted: over.wanted && over.spent > 0,
			Lasted: float64(over.spent-over.begin) / float64(over.length()), Until: p.wantedUntil(),
		})
	}
}

// wantedUntil returns the time until which the demand exceeded the window's units, as a fraction of
// the window. The result is 1 if a caller still waits.
func (p *Pacer) wantedUntil() float64 {
	over := &p.window
	if p.queue.first != nil {
		return 1
	}
	return float64(over.until-over.begin) / float64(over.length())
}

// lineOf returns the times at which a window's permits open. The instances of a fleet
// begin one after the other, so that their permits do not open together.
//
// The last permit opens a little before the window ends, so that a late timer does not
// lose it.
func (p *Pacer) lineOf(w *window, spread float64) schedule.Line {
	length := w.end - w.begin
	length -= min(length/50, lateTimer)
	switch {
	case p.config.Smoothing == Off || w.part == 0:
		return schedule.Line{Part: w.part}
	case p.config.Smoothing == PID:
		length = max(int64(float64(length)*spread), 1)
	}
	const credit = 10 * time.Millisecond // credit is how long unused units stay open.
	return schedule.Line{
		Part: w.part, Length: length,
		Credit: max(int64(float64(w.part)*float64(credit)/float64(length)), 1),
		Phase:  length / w.part / int64(w.Plan.Instances) * int64(w.Plan.Index),
	}
}

// open opens the gate for the slot of now if no caller waits.
func (p *Pacer) open(now int64) {
	w := &p.window
	if p.queue.first != nil || now >= p.valid {
		return
	}
	w.line.Idle(now-w.begin, w.given)
	left := min(w.part, w.line.Open(now-w.begin)) - w.given
	w.given += p.gate.open(now, w.begin, min(w.end, p.valid), left)
}

// predict returns the time at which the last of the given number of further units can be granted by
// the known plans. The grant comes earlier only if waiters give up.
func (p *Pacer) predict(now, units int64) (opens int64, ok bool) {
	if p.rate.on {
		return p.predictRate(now, units)
	}
	w := &p.window
	left := w.left()
	if units <= left {
		return max(now, w.opens(w.given+units)), true
	}
	from := w.edge
	if until := p.stopped(now); until > w.end && w.length() > 0 { // Up to the first edge then.
		windows := (until - w.end + w.length() - 1) / w.length()
		from = from.Add(time.Duration(windows * w.length()))
	}
	start, before, plan, ok := p.timeline.After(from, units-left)
	if !ok {
		return never, false
	}
	then := window{Window: schedule.Window{Plan: plan}, begin: w.monotonic(start)}
	then.end = then.begin + int64(plan.Per)
	then.part = plan.Part(plan.Window(start))
	then.line = p.lineOf(&then, 1.0/schedule.MaxSpeed) // The pacer may have learnt a higher speed by then.
	return max(now, then.opens(units-left-before)), true
}
