package pace

import (
	"errors"
	"math"
	"time"

	"github.com/headgate/headgate/internal/pace/schedule"
)

// rate is the state of a pacer whose source gives rates. Such a pacer has windows of one second, which
// only count. Its line goes on from one to the next.
type rate struct {
	Rate

	on     bool
	amount int64 // of the line: the rate under the brakes
}

const (
	// thousand is the time in which a rate of one thousandth a second opens one permit.
	thousand = int64(1000 * time.Second)
	// lineScale makes room in a line for requests of many units at a small rate.
	lineScale = 1 << 20
	// maxSaved is the time for which permits that are not used stay open.
	maxSaved = int64(100 * time.Millisecond)
)

// interval returns the time between two permits of a rate above 0, rounded up.
func interval(amount int64) int64 { return (thousand + amount - 1) / amount }

var (
	errRates = errors.New("the source gives rates: it must not give assignments too")
	errPlans = errors.New("the source gives assignments: it must not give rates too")
)

// Rate adopts a rate at once.
func (r receiver) Rate(to Rate) {
	p := r.Pacer
	to.Amount = min(max(to.Amount, 0), schedule.MaxLimit)
	now := p.enter()
	if _, planned := p.timeline.Last(); planned {
		p.leave(now)
		r.Fault(errPlans)
		return
	}
	first, before := !p.rate.on, p.rate.Rate
	if first || before != to {
		p.rate.on, p.rate.Rate = true, to
		p.settleRate(now, first)
		p.retime(now)
		p.begun()
	}
	p.leave(now)
	if first {
		p.config.Logger.Info("pace: a rate", "provider", p.config.Provider, "per_second", float64(to.Amount)/1000)
	}
}

// Requested returns the units that were requested so far, and those that wait.
func (r receiver) Requested() (total, waiting int64) {
	p := r.Pacer
	now := p.enter()
	w, c := &p.window, &p.counts
	total = int64(c.acquired) + w.earlier + w.given + c.refused + w.refused + c.left + p.queue.units
	waiting = p.queue.units
	p.leave(now)
	return total, waiting
}

// settleRate begins the line of the present rate and brakes at now.
func (p *Pacer) settleRate(now int64, first bool) {
	w := &p.window
	if first {
		p.settleAccount(now)
		p.beginSecond(now)
	}
	p.reline(now, p.rate.Amount*int64(p.brakes.percent(now))/100)
	w.Plan.Limit = (p.rate.Amount + 999) / 1000
}

// beginSecond begins a window of a rate. The line has no permits yet.
func (p *Pacer) beginSecond(now int64) {
	ahead := p.clock.ahead(now)
	p.window = window{
		Window: schedule.Window{Plan: Plan{Per: time.Second, Instances: 1}},
		begin:  now, end: now + int64(time.Second), ahead: ahead, part: math.MaxInt64, disturbed: true,
	}
	p.window.edge = p.window.at(p.window.end)
	p.window.line = lineOfRate(0, 0)
	p.ahead.Store(ahead)
}

// nextSecond moves the line to the next window.
func (p *Pacer) nextSecond(now int64) {
	p.reline(now, p.rate.amount)
	p.settleAccount(now)
	line := p.window.line
	p.beginSecond(now)
	p.window.line = line
	p.settleRate(now, false) // Brakes may have ended.
}

func lineOfRate(amount, phase int64) schedule.Line {
	return schedule.Line{Part: amount * lineScale, Length: thousand * lineScale, Phase: phase, Credit: math.MaxInt64 / 2}
}

// reline changes the rate of the line at now. The time until the next permit changes with the rate. A
// larger rate begins without saved permits, and a smaller one clips them. Units that the first waiter
// needs are not saved permits.
func (p *Pacer) reline(now, amount int64) {
	w, before := &p.window, p.rate.amount
	elapsed := now - w.begin
	var saved, wait int64
	if before > 0 {
		saved = max(w.line.Open(elapsed)-w.given, 0)
		wait = min(max(w.line.When(w.given+saved+1)-elapsed, 0), interval(before))
	}
	if amount > before && p.queue.first == nil {
		saved = 0
	}
	w.earlier += w.given
	w.begin, w.given, p.rate.amount = now, 0, amount
	phase := int64(0)
	if amount > 0 {
		next := interval(amount)
		switch {
		case before == amount:
			next = wait
		case before > 0:
			next = min(int64(math.Ceil(float64(wait)*float64(before)/float64(amount))), next)
		}
		phase = next - times(saved, interval(amount))
	}
	w.line = lineOfRate(amount, phase)
	p.trim(now)
}

// times returns n*d, or a time of 146 years if that is longer.
func times(n, d int64) int64 {
	if n > 1<<62/d {
		return 1 << 62
	}
	return n * d
}

// trim expires saved permits beyond max(1 unit, 0.1 s of the rate). Those that the first waiter needs
// stay.
func (p *Pacer) trim(now int64) {
	if p.rate.amount == 0 {
		return
	}
	w, each := &p.window, interval(p.rate.amount)
	saved := max(maxSaved-each, 0)
	if first := p.queue.first; first != nil {
		saved = max(saved, times(first.n-1, each))
	}
	w.line.Phase += max(now-w.begin-w.line.When(w.given+1)-saved, 0)
}

// predictRate returns the time at which the last of further units opens at the present rate.
func (p *Pacer) predictRate(now, units int64) (opens int64, ok bool) {
	from, w := now, &p.window
	if until := p.stopped(now); until > now {
		from = until
	}
	switch {
	case p.rate.Amount == 0:
		return never, false
	case p.rate.amount == 0:
		return from + times(units, interval(p.rate.Amount)), true
	}
	after := w.line.When(w.given + units)
	if after > 1<<62 {
		return never, false
	}
	return max(from, w.begin+after), true
}
