package feedback

import (
	"math/rand/v2"
	"time"
)

// Bounds of what [Slower] does: see the package's comment.
const (
	// Decrease is what a refusal or a warning leaves, in percent of what went before.
	Decrease = 80
	// Increase is what each hold without one adds, in percent of the limit.
	Increase = 5
	// Floor is the least that goes, but for stops, in percent of the limit.
	Floor = 10

	shortestHold = 5 * time.Second
	longestHold  = 10 * time.Minute

	firstBackoff   = time.Second
	longestBackoff = time.Minute

	// slack is by how much a stop must be longer to be another one: all that is in flight
	// when a provider begins to refuse is refused, at slightly different times.
	slack = 100 * time.Millisecond
	// rounding is what a time in whole seconds, rounded up, may be too long by.
	rounding = time.Second
	// margin is how long before the edge of a window a brake ends at the latest, if it does
	// not hold beyond it.
	margin = 20 * time.Millisecond
)

// Brake says how much of a limit may go, and until when. It converts to a pace.Brake.
type Brake struct {
	Until   time.Time
	Percent int // of the limit: 100 is no brake
	Reason  string
}

// Slower makes one brake of the advice of many answers. Its times are its caller's
// clock's, and should have monotonic readings. The zero Slower is ready, and brakes
// nothing. It is for one goroutine at a time.
type Slower struct {
	// Random gives numbers from 0 up to 1, for the jitter of the backoff: rand.Float64
	// when it is nil.
	Random func() float64

	stop   time.Time // nothing goes before it
	cut    int       // percent of the limit that do not go, after the stop
	raise  time.Time // when they become fewer, while there are any
	began  time.Time // of the last lowering: what was sent before it says nothing new
	per    time.Duration
	hold   time.Duration
	pause  time.Duration // the last backoff
	reason string
}

// Hear takes the advice of one answer that came at now to a call that was sent at sent,
// and says whether the brake is another one. Per is the length of the pacer's windows.
func (s *Slower) Hear(a Advice, sent, now time.Time, per time.Duration) bool {
	s.recover(now)
	if s.per != per || s.hold == 0 {
		s.per = per
		s.hold = min(max(2*min(per, longestHold), shortestHold), longestHold)
	}
	switch a.Kind {
	case Warned:
		return s.warned(a, sent, now)
	case Spent:
		// The last call of each second is told so, and the time, of a second at most, is
		// rounded up: to obey would halve what a pacer that keeps to the limit may send.
		return a.For > rounding && s.stopFor(a.For, now, a.Reason)
	case Refused:
		return s.refused(a, sent, now)
	default:
		return false
	}
}

// Brake gives the brake at now, and when there is another one: never, if that is zero.
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

// warned lowers, and at any rate does not raise soon.
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
	if raise := s.early(until.Add(s.hold)); s.cut > 0 && s.raise.Before(raise) {
		s.raise = raise
	}
	return true
}

// lower lowers at now, to be raised a hold later, or a hold after the stop.
func (s *Slower) lower(now time.Time) {
	s.cut = 100 - max((100-s.cut)*Decrease/100, Floor)
	s.began = now
	from := now
	if from.Before(s.stop) {
		from = s.stop
	}
	s.raise = s.early(from.Add(s.hold))
}

// recover raises as often as it is time by now.
func (s *Slower) recover(now time.Time) {
	for s.cut > 0 && !now.Before(s.raise) {
		s.cut = max(s.cut-Increase, 0)
		s.raise = s.early(s.raise.Add(s.hold))
	}
}

// backoff gives the time of a refusal that said none: twice that of the one before it,
// when it comes soon after that was over, less up to a half.
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

// early gives a time at which a brake is to end. What a pacer gives in a window is
// decided when the window begins: a brake that ended just then, or a moment before,
// would leave no time to say what comes after it.
func (s *Slower) early(end time.Time) time.Time {
	near := min(margin, s.per/4)
	if rest := s.rest(end.Add(-1)) - 1; s.per > 0 && rest < near {
		return end.Add(rest - near)
	}
	return end
}

// rest gives what is left of the window that t is in, by the wall clock.
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
