package pace

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace/schedule"
)

// receiver is what a pacer shows to its source.
type receiver struct{ *Pacer }

// Assign takes a plan over, from a window's edge on.
func (r receiver) Assign(a Assignment) {
	p := r.Pacer
	now := p.clock.now()
	p.mu.Lock()
	p.advance(now)
	last, told := p.timeline.Last()
	if told && last.Revision == a.Revision && last.Equal(a.Plan) && a.From <= last.From {
		p.leave(now)
		return
	}
	ahead := p.clock.ahead(now)
	from := a.From
	if from == 0 {
		number := a.Plan.Window(headgate.Instant(now + ahead))
		if told {
			number++
		}
		from = a.Plan.Start(number)
	}
	p.timeline.Add(schedule.Change{Plan: a.Plan, From: from, Settled: headgate.Instant(p.clock.of(a.Settled, ahead)), Revision: a.Revision})
	p.window.end = min(p.window.end, max(int64(from)-ahead, now))
	p.advance(now)
	p.retime(now)
	p.begun()
	p.leave(now)
	p.config.Logger.Info("pace: a plan", "provider", p.config.Provider, "limit", a.Plan.Limit, "per", a.Plan.Per,
		"index", a.Plan.Index, "instances", a.Plan.Instances, "from", from.Time(), "revision", a.Revision)
}

// ValidUntil sets until when what was assigned may be used.
func (r receiver) ValidUntil(t time.Time) {
	p := r.Pacer
	now := p.clock.now()
	p.mu.Lock()
	p.advance(now)
	if p.closed == nil {
		p.valid = p.clock.of(t, p.window.ahead)
		if t.IsZero() {
			p.valid = never
		}
	}
	p.leave(now)
}

// Brake takes over what the source says of all instances.
func (r receiver) Brake(b Brake) { r.Pacer.brake(fleet, b) }

// warnOffset is how far clocks may be apart before it is said.
const warnOffset = 100 * time.Millisecond

// ClockOffset keeps it for the metrics, and warns when it begins to be large.
func (r receiver) ClockOffset(d time.Duration) {
	r.mu.Lock()
	before := r.clockOffset
	r.clockOffset = d
	r.mu.Unlock()
	if d.Abs() > warnOffset && before.Abs() <= warnOffset {
		r.config.Logger.Warn("pace: this machine's clock differs from the other instances': set it by NTP, else windows do not meet",
			"provider", r.config.Provider, "ahead", d)
	}
}

// Fault counts it, and logs it unless the same was logged within a minute.
func (r receiver) Fault(err error) {
	now := r.clock.now()
	text := err.Error()
	r.mu.Lock()
	r.counts.faults++
	known := text == r.fault && now-r.faultAt < int64(time.Minute)
	if !known {
		r.fault, r.faultAt = text, now
	}
	r.mu.Unlock()
	if !known {
		r.config.Logger.Warn("pace: the source is troubled: the last plan is kept", "provider", r.config.Provider, "error", text)
	}
}

// Demand gives what was asked for in the last whole window.
func (r receiver) Demand() int64 {
	p := r.Pacer
	now := p.clock.now()
	p.mu.Lock()
	p.advance(now)
	demand := p.counts.demand
	p.leave(now)
	return demand
}
