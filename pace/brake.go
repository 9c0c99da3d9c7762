package pace

import (
	"math"
	"slices"
	"time"
)

// brakes slow a pacer down below its plan. There are the brakes of its own callers, which expire,
// and the brake that its source reports for all instances.
type brakes struct {
	own      []brake // in the order of their ends; each lets less go than those after it
	fleet    brake
	reported brake // the last that was told to others
}

type brake struct {
	until   int64
	percent int
}

// maxBrakes bounds the number of brakes of one instance.
const maxBrakes = 8

// stronger reports whether o has no effect beside b.
func (b brake) stronger(o brake) bool { return b.until >= o.until && b.percent <= o.percent }

// add adds a brake and reports whether the brake has any effect.
func (b *brakes) add(now int64, added brake) bool {
	if added.until <= now || added.percent >= 100 {
		return false
	}
	b.own = slices.DeleteFunc(b.own, func(o brake) bool { return o.until < now-int64(time.Hour) })
	for _, o := range b.own {
		if o.stronger(added) {
			return false
		}
	}
	b.own = slices.DeleteFunc(b.own, added.stronger)
	at := 0
	for at < len(b.own) && b.own[at].until < added.until {
		at++
	}
	b.own = slices.Insert(b.own, at, added)
	if n := len(b.own); n > maxBrakes { // The two that let most go become one.
		b.own[n-1].percent = b.own[n-2].percent
		b.own = slices.Delete(b.own, n-2, n-1)
	}
	return true
}

// news reports whether other instances should be told of a brake. A brake that is only
// milliseconds longer is not worth a message.
func (b *brakes) news(now int64, added brake) bool {
	if now < b.reported.until && added.percent >= b.reported.percent && added.until < b.reported.until+int64(100*time.Millisecond) {
		return false
	}
	b.reported = added
	return true
}

// percent returns the percentage of the limit that is allowed at a time.
func (b *brakes) percent(at int64) int {
	percent := 100
	if at < b.fleet.until {
		percent = b.fleet.percent
	}
	for _, o := range b.own {
		if at < o.until {
			percent = min(percent, o.percent)
		}
	}
	return percent
}

// until returns the end of the last brake that allows at most percent of the limit. It returns 0
// without such a brake at now.
func (b *brakes) until(now int64, percent int) int64 {
	var until int64
	if now < b.fleet.until && b.fleet.percent <= percent {
		until = b.fleet.until
	}
	for _, o := range b.own {
		if now < o.until && o.percent <= percent {
			until = max(until, o.until)
		}
	}
	return until
}

// stopped returns the end of a full stop, and 0 if calls are allowed.
func (p *Pacer) stopped(now int64) int64 { return p.brakes.until(now, 0) }

// braked returns the units that remain of a window's part under the brakes that hold when
// the window begins.
func (p *Pacer) braked(w *window) int64 {
	percent := p.brakes.percent(w.begin)
	if percent >= 100 {
		return math.MaxInt64
	}
	w.disturbed = true
	return w.Plan.Braked(w.Number, percent)
}

// Brake slows this instance down because the provider asked for it. If the source is a
// [Braker], it slows all instances down. A brake of 0 percent stops all calls until it
// expires. A brake holds at once, and ends with the first window that begins after its
// expiry. All brakes hold at the same time.
func (p *Pacer) Brake(b Brake) {
	if !p.made() || !p.brake(b, false) {
		return
	}
	if all, ok := p.config.Source.(Braker); ok {
		all.Brake(b)
	}
}

// brake adds a brake and reports whether other instances should be told.
func (p *Pacer) brake(b Brake, fleet bool) (news bool) {
	now := p.enter()
	added := brake{until: p.clock.convert(b.Until, p.clock.ahead(now)), percent: min(max(b.Percent, 0), 100)}
	holds := added.until > now && added.percent < 100
	if fleet {
		news = holds && added != p.brakes.fleet
		p.brakes.fleet = added
	} else {
		holds = p.brakes.add(now, added)
		news = holds && p.brakes.news(now, added)
	}
	if holds {
		p.slow(now)
	}
	if news {
		p.counts.brakes++
		p.retime(now)
	}
	p.leave(now)
	if news {
		p.config.Logger.Warn("pace: slowed down", "provider", p.config.Provider, "percent", added.percent,
			"for", time.Duration(added.until-now).Round(time.Millisecond), "reason", b.Reason, "all", fleet)
	}
	return news
}

// slow reduces the current window to what the brakes leave of it.
func (p *Pacer) slow(now int64) {
	w := &p.window
	if p.rate.on {
		p.settleRate(now, false)
		return
	}
	if percent := p.brakes.percent(now); w.length() > 0 && percent < 100 {
		w.part = max(min(w.part, w.Plan.Braked(w.Number, percent)), w.given)
		w.disturbed = true
	}
}
