package pace

import (
	"math"
	"slices"
	"time"
)

// brakes are what slows a pacer down besides its plan: what it was told by its own
// calls, each of which holds until its end, and what its source says of all instances.
type brakes struct {
	own   []brake // in the order of their ends; each lets less go than those after it
	fleet brake
	told  brake // the last that was told to others
}

type brake struct {
	until   int64
	percent int
}

// maxBrakes bounds the brakes of one instance.
const maxBrakes = 8

// stronger says whether b leaves nothing to o.
func (b brake) stronger(o brake) bool { return b.until >= o.until && b.percent <= o.percent }

// add adds one, and says whether it slows anything down.
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

// news says whether others should be told of a brake: not of each millisecond more.
func (b *brakes) news(now int64, added brake) bool {
	if now < b.told.until && added.percent >= b.told.percent && added.until < b.told.until+int64(100*time.Millisecond) {
		return false
	}
	b.told = added
	return true
}

// percent gives what of the limit may go at a time.
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

// until gives when the last brake ends that lets at most so many percent go; 0 when
// there is none at now.
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

// stopped gives until when nothing at all may go; 0 when something may.
func (p *Pacer) stopped(now int64) int64 { return p.brakes.until(now, 0) }

// braked gives what the brakes leave of a window's part: those that hold when it begins.
func (p *Pacer) braked(w *window) int64 {
	percent := p.brakes.percent(w.begin)
	if percent >= 100 {
		return math.MaxInt64
	}
	w.disturbed = true
	return w.Plan.Braked(w.Number, percent)
}

// Brake slows this instance down, and all instances when the source is a [Braker]:
// because the provider asked for it. A brake of 0 percent stops until its end. It
// holds at once, and ends with the first window that begins after its end. Of several, all hold.
func (p *Pacer) Brake(b Brake) {
	if !p.made() || !p.brake(b, false) {
		return
	}
	if all, ok := p.config.Source.(Braker); ok {
		all.Brake(b)
	}
}

// brake slows down, and says whether that is news.
func (p *Pacer) brake(b Brake, fleet bool) (news bool) {
	now := p.enter()
	added := brake{until: p.clock.of(b.Until, p.clock.ahead(now)), percent: min(max(b.Percent, 0), 100)}
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

// slow lessens the present window to what the brakes leave of it.
func (p *Pacer) slow(now int64) {
	w := &p.window
	if percent := p.brakes.percent(now); w.length() > 0 && percent < 100 {
		w.part = max(min(w.part, w.Plan.Braked(w.Number, percent)), w.given)
		w.disturbed = true
	}
}
