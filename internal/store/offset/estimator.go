package offset

import (
	"fmt"
	"time"
)

// Estimator gathers samples of one server. It is not safe for concurrent use.
type Estimator struct {
	config Config
	known  bool
	now    interval
	assume assumption
	// streak counts samples in a row that cut the same end: above 0 the lower one.
	streak int
}

// assumption says which end of the interval no sample has shown yet, and how close to
// it an offset must not be for it to hold.
type assumption struct {
	side   side
	margin time.Duration
}

// side is an end of an interval.
type side uint8

const (
	neither side = iota
	lower
	upper
)

// interval holds the offset at the time at: low <= offset < high.
type interval struct {
	at, low, high time.Duration
}

// New checks the configuration.
func New(config Config) (*Estimator, error) {
	if config.Drift == 0 {
		config.Drift = 100
	}
	if config.Lag == 0 {
		config.Lag = 2000
	}
	if config.Slack == 0 {
		config.Slack = 50 * time.Millisecond
	}
	if config.Drift < 0 || config.Drift > maxParts || config.Lag < 0 || config.Lag > maxParts {
		return nil, fmt.Errorf("offset: Drift %d and Lag %d are millionths: use 0 to %d", config.Drift, config.Lag, maxParts)
	}
	if config.Slack < 0 || config.Slack > maxSlack {
		return nil, fmt.Errorf("offset: Slack is %v: use 0 to %v", config.Slack, maxSlack)
	}
	return &Estimator{config: config}, nil
}

// Add takes a sample into account. Samples may come out of order.
func (e *Estimator) Add(s Sample) Outcome {
	if s.Before < 0 || s.After < s.Before || s.After > maxTime || s.Second < 0 || s.Second >= maxSeconds {
		return Ignored
	}
	second := time.Duration(s.Second) * time.Second
	// It was read at some time from Before to After, and may have aged since.
	found := e.aged(interval{at: s.Before, low: second - s.After, high: second + time.Second - s.Before}, s.After)
	if !e.known {
		e.begin(found)
		return Began
	}
	at := max(e.now.at, found.at)
	old, found := e.aged(e.now, at), e.aged(found, at)
	slack := max(e.config.Slack, 16*(s.After-s.Before))
	below, above := old.low-found.high, found.low-old.high // At least 0 when the offset has left the interval there.
	switch {
	case e.refuted(old, found) || max(below, above) > slack || slack > maxSlack && max(below, above) >= 0:
		e.begin(found)
		return Restarted
	case below >= 0:
		e.now = interval{at: at, low: max(found.low, found.high-slack), high: found.high}
		e.assume, e.streak = assumption{lower, slack / 8}, 0
		return Followed
	case above >= 0:
		e.now = interval{at: at, low: found.low, high: min(found.high, found.low+slack)}
		e.assume, e.streak = assumption{upper, slack / 8}, 0
		return Followed
	}
	e.narrow(old, found)
	return Narrowed
}

// narrow takes what old and found have in common, which there is.
func (e *Estimator) narrow(old, found interval) {
	raised, lowered := found.low > old.low, found.high < old.high
	e.now = interval{at: old.at, low: max(old.low, found.low), high: min(old.high, found.high)}
	if e.assume.side == lower && raised || e.assume.side == upper && lowered {
		e.assume = assumption{}
	}
	switch {
	case raised == lowered:
		e.streak = 0
	case raised:
		e.streak = max(e.streak, 0) + 1
	default:
		e.streak = min(e.streak, 0) - 1
	}
}

func (e *Estimator) begin(found interval) {
	e.known, e.now, e.assume, e.streak = true, found, assumption{}, 0
}

// refuted reports whether found leaves of old only what lies at an end that was assumed.
func (e *Estimator) refuted(old, found interval) bool {
	switch e.assume.side {
	case lower:
		return found.high <= old.low+e.assume.margin
	case upper:
		return found.low >= old.high-e.assume.margin
	default:
		return false
	}
}

// At gives the estimate for the time now of our clock, and false while there is none.
func (e *Estimator) At(now time.Duration) (Estimate, bool) {
	if !e.known || now < 0 || now > maxTime {
		return Estimate{}, false
	}
	i := e.aged(e.now, max(now, e.now.at))
	return Estimate{Offset: i.middle(), Bound: (i.high - i.low + 1) / 2}, true
}

// Reset forgets all samples: when the server is known to be another.
func (e *Estimator) Reset() { e.known = false }

// aged gives what is still known of i at a later time: the clocks have parted meanwhile.
func (e *Estimator) aged(i interval, at time.Duration) interval {
	passed := at - i.at
	i.at = at
	i.low -= parts(passed, e.config.Drift+e.config.Lag)
	i.high += parts(passed, e.config.Drift)
	return i
}

// parts gives so many millionths of d, rounded up. With d at most maxTime and n at most
// 2 maxParts, whole millions first keep it within 63 bits.
func parts(d time.Duration, n int64) time.Duration {
	whole, rest := int64(d)/million, int64(d)%million
	return time.Duration(whole*n + (rest*n+million-1)/million)
}

func (i interval) middle() time.Duration { return i.low + (i.high-i.low)/2 }
