package offset

import (
	"fmt"
	"time"
)

// Estimator collects the samples of one server. An Estimator is not safe for concurrent use.
type Estimator struct {
	config Config
	known  bool
	now    interval
	assume assumption
	// streak counts consecutive samples that cut the same end: the lower end when above 0.
	streak int
}

// assumption marks an end of the interval that no sample has confirmed. It holds while the
// offset stays a minimum distance away from that end.
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

// interval contains the offset at the time at: low <= offset < high.
type interval struct {
	at, low, high time.Duration
}

// New makes an Estimator. The error names the setting that is invalid.
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

// Add adds a sample. Samples may come out of order.
func (e *Estimator) Add(s Sample) Outcome {
	if s.Before < 0 || s.After < s.Before || s.After > maxTime || s.Second < 0 || s.Second >= maxSeconds {
		return Ignored
	}
	second := time.Duration(s.Second) * time.Second
	// The clock was read between Before and After, and may have aged since.
	found := e.aged(interval{at: s.Before, low: second - s.After, high: second + time.Second - s.Before}, s.After)
	if !e.known {
		e.begin(found)
		return Began
	}
	at := max(e.now.at, found.at)
	old, found := e.aged(e.now, at), e.aged(found, at)
	slack := max(e.config.Slack, 16*(s.After-s.Before))
	below, above := old.low-found.high, found.low-old.high // At least 0 when the offset has left the interval at that end.
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

// narrow keeps the intersection of old and found. The intersection is not empty.
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

// refuted reports whether the intersection of old and found is only next to an assumed end.
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

// At gives the estimate for the time now of this process's clock. It reports false without
// samples.
func (e *Estimator) At(now time.Duration) (Estimate, bool) {
	if !e.known || now < 0 || now > maxTime {
		return Estimate{}, false
	}
	i := e.aged(e.now, max(now, e.now.at))
	return Estimate{Offset: i.middle(), Bound: (i.high - i.low + 1) / 2}, true
}

// Reset drops all samples. Call Reset when the server has been replaced.
func (e *Estimator) Reset() { e.known = false }

// aged widens i to a later time: the clocks may have drifted apart since.
func (e *Estimator) aged(i interval, at time.Duration) interval {
	passed := at - i.at
	i.at = at
	i.low -= parts(passed, e.config.Drift+e.config.Lag)
	i.high += parts(passed, e.config.Drift)
	return i
}

// parts gives n millionths of d, rounded up. d is at most maxTime and n at most 2 maxParts.
// Dividing whole millions first keeps the product within 63 bits.
func parts(d time.Duration, n int64) time.Duration {
	whole, rest := int64(d)/million, int64(d)%million
	return time.Duration(whole*n + (rest*n+million-1)/million)
}

func (i interval) middle() time.Duration { return i.low + (i.high-i.low)/2 }
