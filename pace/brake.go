package pace

import (
	"time"
)

// brakes are what slows a pacer down besides its plan: what it was told by its own
// calls, and what its source says of all instances.
type brakes [2]brake

type brake struct {
	until   int64
	percent int
	reason  string
}

const (
	own = iota
	fleet
)

// percent gives what of the limit may go at now.
func (b *brakes) percent(now int64) int {
	percent := 100
	for i := range b {
		if now < b[i].until {
			percent = min(percent, b[i].percent)
		}
	}
	return percent
}

// until gives when the last brake that holds at now ends.
func (b *brakes) until(now int64) int64 {
	var until int64
	for i := range b {
		if now < b[i].until {
			until = max(until, b[i].until)
		}
	}
	return until
}

// stopped gives until when nothing at all may go; 0 when something may.
func (p *Pacer) stopped(now int64) int64 {
	var until int64
	for i := range p.brakes {
		if b := &p.brakes[i]; now < b.until && b.percent == 0 {
			until = max(until, b.until)
		}
	}
	return until
}

// braked gives what the brakes leave of a window's part.
func (p *Pacer) braked(w *window, now int64) int64 {
	percent := p.brakes.percent(max(now, w.begin))
	if percent >= 100 {
		return w.Part
	}
	w.disturbed = true
	return w.Plan.Braked(w.Number, percent)
}

// Brake slows this instance down, and all instances when the source is a [Braker]:
// because the provider asked for it. A brake of 0 percent stops until its end. It
// holds at once, and ends with the first window that begins after its end.
func (p *Pacer) Brake(b Brake) {
	if p.brake(own, b) {
		if all, ok := p.config.Source.(Braker); ok {
			all.Brake(b)
		}
	}
}

// brake says whether the brake slows anything down.
func (p *Pacer) brake(whose int, b Brake) bool {
	now := p.clock.now()
	p.mu.Lock()
	p.advance(now)
	until := p.clock.of(b.Until, p.window.ahead)
	percent := min(max(b.Percent, 0), 100)
	before := p.brakes[whose]
	stronger := until > now && percent < 100 &&
		(now >= before.until || percent < before.percent || percent == before.percent && until > before.until)
	if whose == own && !stronger {
		p.leave(now)
		return false
	}
	p.brakes[whose] = brake{until: until, percent: percent, reason: b.Reason}
	if stronger {
		p.counts.brakes++
		w := &p.window
		w.part = max(min(w.part, p.braked(w, now)), w.given)
	}
	p.retime(now)
	p.leave(now)
	if stronger {
		p.config.Logger.Warn("pace: slowed down", "provider", p.config.Provider, "percent", percent,
			"for", time.Duration(until-now).Round(time.Millisecond), "reason", b.Reason)
	}
	return stronger
}
