package pace

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/pace/schedule"
)

// receiver is the interface of a pacer to its source.
type receiver struct{ *Pacer }

// Assign adopts a plan from the edge of a window on.
func (r receiver) Assign(a Assignment) {
	p := r.Pacer
	now := p.enter()
	if p.rate.on {
		p.leave(now)
		r.Fault(errRates)
		return
	}
	last, notified := p.timeline.Last()
	if notified && last.Revision == a.Revision && last.Equal(a.Plan) && a.From <= last.From {
		p.leave(now)
		return
	}
	ahead := p.clock.ahead(now)
	from := a.From
	if from == 0 {
		number := a.Plan.Window(headgate.Instant(now + ahead))
		if notified {
			number++
		}
		p.fresh = !notified
		from = a.Plan.Start(number)
	}
	settled := headgate.Instant(p.clock.convert(a.Settled, ahead))
	p.timeline.Add(schedule.Change{Plan: a.Plan, From: from, Settled: settled, Revision: a.Revision})
	p.cut(from, now, ahead)
	p.retime(now)
	p.begun()
	p.leave(now)
	p.config.Logger.Info("pace: a plan", "provider", p.config.Provider, "limit", a.Plan.Limit, "per", a.Plan.Per,
		"index", a.Plan.Index, "instances", a.Plan.Instances, "from", from.Time(), "revision", a.Revision)
}

// cut ends the current window where a new plan begins. If the plan should hold already,
// cut reduces the window: units are never added to a window that has begun.
func (p *Pacer) cut(from headgate.Instant, now, ahead int64) {
	w := &p.window
	switch begins := int64(from) - ahead; {
	case w.length() == 0: // No plan has held yet.
		w.end, w.ahead = min(w.end, max(begins, now)), ahead
		w.edge = headgate.Instant(w.end + ahead)
		p.advance(now)
	case begins > now && begins < w.end:
		w.end, w.edge = begins, from
	case begins <= now:
		is, _ := p.timeline.At(headgate.Instant(now+w.ahead), headgate.Instant(now))
		p.lessen(is)
		if edge := p.edgeOf(is, headgate.Instant(now+w.ahead)); edge < w.edge {
			w.end, w.edge = w.monotonic(edge), edge
		}
	}
}

// ValidUntil sets the expiry of the assigned plan.
func (r receiver) ValidUntil(t time.Time) {
	p := r.Pacer
	now := p.enter()
	if p.closed == nil {
		if now >= p.valid { // The units that opened meanwhile have expired.
			p.window.line.Idle(now-p.window.begin, p.window.given)
		}
		p.valid = p.clock.convert(t, p.clock.ahead(now))
		if t.IsZero() {
			p.valid = never
		}
	}
	p.leave(now)
}

// Brake adopts the brake that the source reports for all instances.
func (r receiver) Brake(b Brake) { r.Pacer.brake(b, true) }

// warnOffset is the clock offset from which a warning is logged.
const warnOffset = 100 * time.Millisecond

// ClockOffset stores the offset for the metrics, and warns when it becomes large.
func (r receiver) ClockOffset(d time.Duration) {
	p := r.Pacer
	p.mu.Lock()
	before := p.clockOffset
	p.clockOffset = d
	p.mu.Unlock()
	if d.Abs() > warnOffset && before.Abs() <= warnOffset {
		p.config.Logger.Warn("pace: this machine's clock differs from the other instances': set it by NTP, else windows do not meet",
			"provider", p.config.Provider, "ahead", d)
	}
}

// Fault counts the error, and logs it unless the same error was logged within a minute.
func (r receiver) Fault(err error) {
	p := r.Pacer
	now := p.clock.now()
	text := err.Error()
	p.mu.Lock()
	p.counts.faults++
	_, planned := p.timeline.Last()
	planned = planned || p.rate.on
	known := text == p.fault && now-p.faultAt < int64(time.Minute)
	if !known {
		p.fault, p.faultAt = text, now
	}
	p.mu.Unlock()
	switch {
	case known:
	case planned:
		p.config.Logger.Warn("pace: the source is troubled: the last plan is kept", "provider", p.config.Provider, "error", text)
	default:
		p.config.Logger.Warn("pace: no plan yet: the source has not answered", "provider", p.config.Provider, "error", text)
	}
}

// Demand returns the units that were requested in the last complete window.
func (r receiver) Demand() int64 {
	p := r.Pacer
	now := p.enter()
	demand := p.counts.demand
	p.leave(now)
	return demand
}
