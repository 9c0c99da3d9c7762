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
	ahead      int64 // how far the wall clock is ahead, read when the window began
	part       int64 // units that may be given, in all
	given      int64 // units that have been given, those in the gate among them
	refused    int64 // units that were asked for and neither given nor waited for
	exhausted  int64 // when somebody first wanted more than the part; 0 if nobody has
	disturbed  bool  // something else than demand and line made it what it was
	line       schedule.Line
}

// at gives the wall time of a time in the window.
func (w *window) at(now int64) headgate.Instant { return headgate.Instant(now + w.ahead) }

// opens gives when so many units in all may have been given, if the part has so many.
func (w *window) opens(units int64) int64 { return w.begin + w.line.When(units) }

// fits says whether n more units may be given now.
func (w *window) fits(now, n int64) bool {
	return n <= w.part-w.given && n <= w.line.Open(now-w.begin)-w.given
}

// never is later than every time.
const never = int64(1<<63 - 1)

// maxTolerance bounds by how much a window may begin before the one before it is over,
// because the wall clock was set right meanwhile.
const maxTolerance = int64(100 * time.Millisecond)

// advance takes back what is in the gate, and goes on to the window that now is in.
func (p *Pacer) advance(now int64) {
	p.window.given -= p.gate.close()
	if now >= p.window.end {
		p.nextWindow(now)
	}
}

// nextWindow begins the window that the wall clock is in. One that would begin before
// the present one is over, because the clock was set forward or back, is passed over:
// so no time as long as a window sees more than the parts of two that follow each
// other, whatever is done to the clock, and nobody waits for longer than two.
func (p *Pacer) nextWindow(now int64) {
	over := &p.window
	ahead := p.clock.ahead(now)
	w, ok := p.timeline.At(headgate.Instant(now+ahead), headgate.Instant(now))
	if !ok {
		p.window = window{begin: now, end: p.lookAgain(now, int64(w.Revised)-ahead), ahead: ahead}
		return
	}
	begin := int64(w.Start) - ahead
	per := int64(w.Plan.Per)
	if earliest := over.end - min(over.length()/10, maxTolerance); over.length() > 0 && begin < earliest {
		over.end = begin + (earliest-begin+per-1)/per*per
		over.part, over.disturbed = over.given, true
		return
	}
	p.settleAccount(now)
	next := window{Window: w, begin: begin, end: begin + per, ahead: ahead, part: w.Part}
	if w.Revised < w.Start.Add(w.Plan.Per) {
		next.end = int64(w.Revised) - ahead
	}
	if p.fresh && begin < now { // What is left of the window has its part of the units.
		next.part = w.Part * ((next.end - now) >> 10) / (per >> 10)
		next.begin, next.disturbed = now, true
	}
	p.fresh = false
	next.part = min(next.part, p.braked(&next, now))
	next.line = p.lineOf(&next)
	p.window = next
	p.ahead.Store(ahead)
}

// length gives a window's length by its plan; 0 when no plan held.
func (w *window) length() int64 { return int64(w.Plan.Per) }

// lookAgain gives when to look for a plan again: when the next begins, and after a
// second in any case, since the wall clock may be set.
func (p *Pacer) lookAgain(now, begins int64) int64 {
	if _, told := p.timeline.Last(); !told {
		return never
	}
	return max(min(begins, now+int64(time.Second)), now+1)
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
			Part: over.part, Used: over.given, Wanted: over.exhausted > 0,
			Lasted: float64(over.exhausted-over.begin) / float64(over.length()),
		})
	}
}

// lineOf gives the times at which a window's permits open. The instances of a fleet
// begin one after the other, so that their permits do not open together.
func (p *Pacer) lineOf(w *window) schedule.Line {
	length := w.end - w.begin
	switch {
	case p.config.Smoothing == Off || w.part == 0:
		return schedule.Line{Part: w.part}
	case p.config.Smoothing == PID:
		length = int64(float64(length) * p.spread)
	}
	const credit = int64(10 * time.Millisecond)
	space := length / w.part
	return schedule.Line{
		Part: w.part, Length: length, Credit: max(credit/max(space, 1), 1),
		Phase: space / int64(w.Plan.Instances) * int64(w.Plan.Index),
	}
}

// open opens the gate for the slot that now is in, while nobody waits.
func (p *Pacer) open(now int64) {
	w := &p.window
	if p.queue.first != nil || now >= p.valid {
		return
	}
	left := min(w.part, w.line.Open(now-w.begin)) - w.given
	w.given += p.gate.open(now, w.begin, min(w.end, p.valid), left)
}

// predict gives when the last of so many units can be given, none of which has been,
// as far as plans are known: sooner only if others give up.
func (p *Pacer) predict(now, units int64) (opens int64, ok bool) {
	w := &p.window
	if rest := w.part - w.given; units <= rest {
		return max(now, w.opens(w.given+units)), true
	} else if rest > 0 {
		units -= rest
	}
	from := headgate.Instant(max(w.end, p.stopped(now)) + w.ahead)
	start, before, plan, ok := p.timeline.After(from, units)
	if !ok {
		return never, false
	}
	then := window{Window: schedule.Window{Plan: plan}, begin: int64(start) - w.ahead}
	then.end = then.begin + int64(plan.Per)
	then.part = plan.Part(plan.Window(start))
	then.line = p.lineOf(&then)
	return then.opens(units - before), true
}
