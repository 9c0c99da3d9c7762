package feedback

import (
	"math/rand/v2"
	"time"
)

// The constants of [Slower] are explained in the package comment.
const (
	// Decrease is the level after a refusal or a warning, in percent of the level before.
	Decrease = 80
	// Increase is added to the level after each recovery interval, in percent of the limit.
	Increase = 5
	// Floor is the lowest level outside of stops, in percent of the limit.
	Floor = 10

	shortestInterval = 5 * time.Second
	longestInterval  = 10 * time.Minute

	firstBackoff   = time.Second
	longestBackoff = time.Minute

	// slack is how much later a new stop must end to replace the current one. A provider that
	// starts to refuse also refuses all calls in flight, at slightly different times.
	slack = 100 * time.Millisecond
	// rounding is the maximum error of a time that was rounded up to whole seconds.
	rounding = time.Second
	// margin is the minimum time from the end of a brake to the next edge of a window. The
	// method early applies it.
	margin = 20 * time.Millisecond
)

// Brake is a percentage of a limit that calls may use, and its end. It converts to a pace.Brake.
type Brake struct {
	Until   time.Time
	Percent int // of the limit; 100 means no brake
	Reason  string
}

// Slower combines the advice of many answers into one brake. The caller passes the times,
// which should have monotonic readings. The zero Slower is ready to use and has no brake. A
// Slower is not safe for concurrent use.
type Slower struct {
	// Random returns numbers from 0 up to 1 for the jitter of the backoff. If Random is nil,
	// rand.Float64 is used.
	Random func() float64

	stop     time.Time // end of the stop
	cut      int       // percent of the limit that are not used after the stop
	raise    time.Time // time of the next decrease of cut, if cut is not 0
	began    time.Time // of the last increase of cut; answers to earlier calls are not new
	per      time.Duration
	interval time.Duration
	pause    time.Duration // the last backoff
	reason   string
}

// Observe applies the advice of one answer, and reports whether the brake changed. The call was
// sent at sent, and its answer arrived at now. per is the length of the pacer's windows.
func (s *Slower) Observe(a Advice, sent, now time.Time, per time.Duration) bool {
	s.recover(now)
	if s.per != per || s.interval == 0 {
		s.per = per
		s.interval = min(max(2*min(per, longestInterval), shortestInterval), longestInterval)
	}
	switch a.Kind {
	case Warned:
		return s.warned(a, sent, now)
	case Spent:
		// The last call of each second gets this answer even at the right rate, and its time
		// is rounded up to a second. To follow it would halve the calls.
		return a.For > rounding && s.stopFor(a.For, now, a.Reason)
	case Refused:
		return s.refused(a, sent, now)
	default:
		return false
	}
}

// Brake returns the brake at now, and the time of the next one. A zero next means that no other brake follows.
func (s *Slower) Brake(now time.Time) (b Brake, next time.Time) {
	s.recover(now)
	switch {
	case now.Before(s.stop):
		return Brake{Until: s.stop, Reason: s.reason}, s.stop
	case s.cut > 0:
		return Brake{Until: s.raise, Percent: 100 - s.cut, Reason: s.reason}, s.raise
	default:
		return Brake{Percent: 100}, time.Time{}
	}
}

// warned lowers the level, at most once a second and once a window.
func (s *Slower) warned(a Advice, sent, now time.Time) bool {
	if sent.Before(s.began) {
		return false
	}
	if s.cut > 0 && now.Before(s.began.Add(max(s.per, time.Second))) {
		return false
	}
	s.lower(now)
	s.reason = a.Reason
	return true
}

func (s *Slower) refused(a Advice, sent, now time.Time) bool {
	known := sent.Before(s.began)
	wait := a.For
	switch {
	case a.Unsaid && known:
		return false
	case a.Unsaid:
		wait = s.backoff(now)
	case wait == 0:
		wait = s.rest(now)
	}
	changed := s.stopFor(wait, now, a.Reason)
	if !known {
		s.lower(now)
		s.reason = a.Reason
		changed = true
	}
	return changed
}

func (s *Slower) stopFor(d time.Duration, now time.Time, reason string) bool {
	until := s.early(now.Add(bounded(d)))
	if now.Before(s.stop) && until.Before(s.stop.Add(slack)) {
		return false
	}
	s.stop, s.reason = until, reason
	if raise := s.early(until.Add(s.interval)); s.cut > 0 && s.raise.Before(raise) {
		s.raise = raise
	}
	return true
}

// lower lowers the level. The level rises an interval after now, or after the end of the stop.
func (s *Slower) lower(now time.Time) {
	s.cut = 100 - max((100-s.cut)*Decrease/100, Floor)
	s.began = now
	from := now
	if from.Before(s.stop) {
		from = s.stop
	}
	s.raise = s.early(from.Add(s.interval))
}

// recover applies all increases of the level that are due at now.
func (s *Slower) recover(now time.Time) {
	for s.cut > 0 && !now.Before(s.raise) {
		s.cut = max(s.cut-Increase, 0)
		s.raise = s.early(s.raise.Add(s.interval))
	}
}

// backoff returns the stop after a refusal without a time. It doubles the last backoff if
// that ended a short time ago, and subtracts up to half as jitter.
func (s *Slower) backoff(now time.Time) time.Duration {
	if s.pause == 0 || now.After(s.stop.Add(s.pause)) {
		s.pause = firstBackoff
	} else {
		s.pause = min(2*s.pause, longestBackoff)
	}
	random := s.Random
	if random == nil {
		random = rand.Float64
	}
	return s.pause - time.Duration(random()*float64(s.pause)/2)
}

// early returns the time at which a brake must end, which is end or a little earlier. A
// pacer decides the units of a window when the window begins. If the brake ended then, the
// next brake would be too late for the window.
func (s *Slower) early(end time.Time) time.Time {
	near := min(margin, s.per/4)
	if rest := s.rest(end.Add(-1)) - 1; s.per > 0 && rest < near {
		return end.Add(rest - near)
	}
	return end
}

// rest returns the time from t to the end of its window, by the wall clock.
func (s *Slower) rest(t time.Time) time.Duration {
	if s.per <= 0 {
		return 0
	}
	passed := t.UnixNano() % int64(s.per)
	if passed < 0 {
		passed += int64(s.per)
	}
	return s.per - time.Duration(passed)
}
