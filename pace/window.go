package pace

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace/schedule"
)

// window is the window that a pacer is in, as its monotonic clock has it.
type window struct {
	schedule.Window

	begin, end int64
	ahead      int64            // how far the wall clock is ahead, as this window has it
	edge       headgate.Instant // the wall time at which the next begins
	part       int64            // units that may be given, in all
	given      int64            // units that have been given, those in the gate among them
	refused    int64            // units that were asked for and neither given nor waited for
	spent      int64            // when it was first seen that all were given; 0 if never
	wanted     bool             // more was asked for than the part
	until      int64            // until when those who went without would have waited
	disturbed  bool             // something else than demand and line made it what it was
	line       schedule.Line
}

// at gives the wall time of a time in the window.
func (w *window) at(now int64) headgate.Instant { return headgate.Instant(now + w.ahead) }

// of gives when it will be a wall time at or after the window's edge.
func (w *window) of(t headgate.Instant) int64 { return w.end + int64(t-w.edge) }

// length gives a window's length by its plan; 0 when no plan held.
func (w *window) length() int64 { return int64(w.Plan.Per) }

// opens gives when so many units in all may have been given, if the part has so many.
func (w *window) opens(units int64) int64 { return w.begin + w.line.When(units) }

// fits says whether n more units may be given now.
func (w *window) fits(now, n int64) bool {
	return n <= w.part-w.given && n <= w.line.Open(now-w.begin)-w.given
}

// left gives the units that open before the window ends.
func (w *window) left() int64 {
	return max(min(w.part, w.line.Open(w.end-w.begin-1))-w.given, 0)
}

// ask notes that n units were asked for behind so many that wait.
func (w *window) ask(n, waiting int64) { w.wanted = w.wanted || n+waiting > w.part-w.given }

// look notes when all units were given.
func (w *window) look(now int64) {
	if w.spent == 0 && w.given >= w.part {
		w.spent = now
	}
}

// never is later than every time.
const never = int64(1<<63 - 1)

// A wall clock that was set forward by no more than maxShift, or a tenth of a window, is
// followed by a part of a window in slew at a time.
const (
	maxShift = int64(100 * time.Millisecond)
	slew     = 1000
)

// lateTimer is by how much a timer may be late, and lose nothing of a window.
const lateTimer = int64(2 * time.Millisecond)

// advance takes back what is in the gate, and goes on to the window that now is in.
func (p *Pacer) advance(now int64) {
	p.window.given -= p.gate.close()
	p.window.look(now)
	if now >= p.window.end {
		p.nextWindow(now)
	}
}

// nextWindow begins the window that the wall clock is in, when it does not begin before
// the present one is over, but for a thousandth of it. Else the clock was set, and the
// present one goes on until the next edge that is late enough. So no time as long as a
// window, less a thousandth, sees more than the parts of two that follow each other,
// whatever is done to the clock, and who is next waits for no longer than two, unless it
// is set again meanwhile.
func (p *Pacer) nextWindow(now int64) {
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

// edgeOf gives the wall time after wall at which to look which window it is: when w
// ends, or a plan begins, or a window of the newest plan does, if it is of others.
func (p *Pacer) edgeOf(w schedule.Window, wall headgate.Instant) headgate.Instant {
	edge := min(w.Revised, w.Start.Add(w.Plan.Per))
	if edge <= wall {
		edge = w.Revised
	}
	if last, told := p.timeline.Last(); told && last.Per > 0 && last.Per != w.Plan.Per {
		edge = min(edge, last.Start(last.Window(wall)+1))
	}
	return edge
}

// lessen takes from the present window what it does not have by what is known now.
func (p *Pacer) lessen(is schedule.Window) {
	w := &p.window
	if is.Number != w.Number || is.Plan.Per != w.Plan.Per {
		is.Part = 0
	}
	if is.Part < w.part {
		w.part, w.disturbed = max(is.Part, w.given), true
	}
}

// begin begins a window.
func (p *Pacer) begin(next window, now int64) {
	next.end = int64(next.edge) - next.ahead
	if p.fresh && next.begin < now { // What is left of the window has its part of the units.
		next.part = int64(float64(next.part) * float64(next.end-now) / float64(next.length()))
		next.begin, next.disturbed = now, true
	}
	p.fresh = false
	next.part = min(next.part, p.braked(&next))
	next.line = p.lineOf(&next, p.spread)
	p.window = next
	p.ahead.Store(next.ahead)
}

// await waits for the first plan to begin.
func (p *Pacer) await(now, ahead int64, begins headgate.Instant) {
	p.settleAccount(now)
	end := max(min(int64(begins)-ahead, now+int64(time.Second)), now+1) // The wall clock may be set.
	if _, told := p.timeline.Last(); !told {
		end = never - max(ahead, 0)
	}
	p.window = window{begin: now, end: end, edge: headgate.Instant(end + ahead), ahead: ahead}
	p.ahead.Store(ahead)
}

// wallAhead gives how far the wall clock is ahead, as the next window shall have it. One
// that was set forward a little is followed slowly: windows that follow each other are
// shorter by a thousandth until they have caught up.
func (p *Pacer) wallAhead(now int64) int64 {
	over := &p.window
	ahead := p.clock.ahead(now)
	shift := ahead - over.ahead
	if over.length() == 0 || now-over.end >= over.length() || shift <= 0 || shift > min(over.length()/10, maxShift) {
		return ahead
	}
	return over.ahead + min(shift, over.length()/slew)
}

// settleAccount learns from the window that is over, and adds it to what was done.
func (p *Pacer) settleAccount(now int64) {
	over := &p.window
	p.counts.acquired += uint64(over.given)
	p.counts.demand = over.given + over.refused + p.queue.units
	if now-over.end >= max(over.length(), 1) {
		p.counts.demand = p.queue.units // Whole windows have passed in which nobody came.
	}
	if p.config.Smoothing == PID && !over.disturbed && over.length() > 0 {
		p.spread = p.pid.Next(schedule.Outcome{
			Part: over.part, Used: over.given, Wanted: over.wanted && over.spent > 0,
			Lasted: float64(over.spent-over.begin) / float64(over.length()), Until: p.wantedUntil(),
		})
	}
}

// wantedUntil gives until when more was wanted than the window had, as a part of it: to
// its end if somebody still waits.
func (p *Pacer) wantedUntil() float64 {
	over := &p.window
	if p.queue.first != nil {
		return 1
	}
	return float64(over.until-over.begin) / float64(over.length())
}

// lineOf gives the times at which a window's permits open. The instances of a fleet
// begin one after the other, so that their permits do not open together.
//
// The last permit opens a little before the window ends, so that a timer that is late
// does not lose it.
func (p *Pacer) lineOf(w *window, spread float64) schedule.Line {
	length := w.end - w.begin
	length -= min(length/50, lateTimer)
	switch {
	case p.config.Smoothing == Off || w.part == 0:
		return schedule.Line{Part: w.part}
	case p.config.Smoothing == PID:
		length = max(int64(float64(length)*spread), 1)
	}
	const credit = 10 * time.Millisecond // Of what nobody wanted, so much stays open.
	return schedule.Line{
		Part: w.part, Length: length,
		Credit: max(int64(float64(w.part)*float64(credit)/float64(length)), 1),
		Phase:  length / w.part / int64(w.Plan.Instances) * int64(w.Plan.Index),
	}
}

// open opens the gate for the slot that now is in, while nobody waits.
func (p *Pacer) open(now int64) {
	w := &p.window
	if p.queue.first != nil || now >= p.valid {
		return
	}
	w.line.Idle(now-w.begin, w.given)
	left := min(w.part, w.line.Open(now-w.begin)) - w.given
	w.given += p.gate.open(now, w.begin, min(w.end, p.valid), left)
}

// predict gives when the last of so many units can be given, none of which has been,
// as far as plans are known: sooner only if others give up.
func (p *Pacer) predict(now, units int64) (opens int64, ok bool) {
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
	then := window{Window: schedule.Window{Plan: plan}, begin: w.of(start)}
	then.end = then.begin + int64(plan.Per)
	then.part = plan.Part(plan.Window(start))
	then.line = p.lineOf(&then, 1.0/schedule.MaxSpeed) // It may have learnt that by then.
	return max(now, then.opens(units-left-before)), true
}
