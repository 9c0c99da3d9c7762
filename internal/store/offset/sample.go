package offset

import (
	"fmt"
	"time"
)

// Config bounds how far the two clocks drift apart. A zero value is the default.
type Config struct {
	// Drift is the largest difference in rate between the server's crystal and this machine's, in
	// millionths. The default is 100: twice the error of common crystals.
	Drift int64
	// Lag is how much more the server's clock may fall behind because of late ticks, in millionths.
	// The default is 2000. The measured lateness of a busy server was 1240.
	Lag int64
	// Slack is the largest deviation, beyond drift and lag, that the estimate still follows. The
	// default is 50 ms: a server that was stopped for so long ticks later from then on. Slack is
	// at least 16 times the duration of a sample.
	Slack time.Duration
}

const million = 1_000_000

// These bounds of Config and of samples keep all sums within 63 bits.
const (
	maxParts   = 100_000 // A tenth, in millionths.
	maxSlack   = 250 * time.Millisecond
	maxSeconds = 1 << 32
	maxTime    = 50 * 365 * 24 * time.Hour
)

// Sample is one reading of the server's clock.
type Sample struct {
	// Before and After are times of this process's monotonic clock, at least 0, from any fixed
	// start: before the query was sent, and after the answer arrived.
	Before, After time.Duration
	// Second is the reading of the server's clock: whole seconds since 1970.
	Second int64
}

// Outcome is the effect of a sample on the estimate.
type Outcome uint8

const (
	// Began: the sample is the first.
	Began Outcome = iota
	// Narrowed: the sample agrees with the estimate. The interval is at most as wide as before.
	Narrowed
	// Followed: the sample contradicts the estimate by at most Config.Slack. The interval is now
	// that slack beyond the sample. The next samples show whether it is wide enough.
	Followed
	// Restarted: the sample contradicts the estimate. The server has restarted, or its clock has
	// stepped. All earlier samples are dropped. Call Sweep again.
	Restarted
	// Ignored: the sample is invalid. After is before Before, or a number is out of range.
	Ignored
)

// String gives the outcome as one word.
func (o Outcome) String() string {
	words := [...]string{"began", "narrowed", "followed", "restarted", "ignored"}
	if int(o) < len(words) {
		return words[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// Estimate is the estimated offset at one time.
type Estimate struct {
	// Offset plus this process's monotonic clock gives the server's clock, since 1970.
	Offset time.Duration
	// Bound is the largest possible error of Offset.
	Bound time.Duration
}
