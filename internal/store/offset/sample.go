package offset

import (
	"fmt"
	"time"
)

// Config says how far the two clocks part. Zero values mean the default.
type Config struct {
	// Drift is how much faster or slower the server's crystal may be than ours, in
	// millionths; 100: twice what common crystals keep.
	Drift int64
	// Lag is how much more the server's clock may fall behind, in millionths, because
	// its ticks come late; 2000: the lateness measured when busy was 1240.
	Lag int64
	// Slack is how far the server's clock may be out of step, beyond drift and lag, and
	// still be followed; 50 ms: a server that was held up for so long ticks later ever
	// after. It is at least 16 times what a sample takes.
	Slack time.Duration
}

const million = 1_000_000

// Bounds of a Config and of samples. They keep all sums within 63 bits.
const (
	maxParts   = 100_000 // Millionths: a tenth.
	maxSlack   = 250 * time.Millisecond
	maxSeconds = 1 << 32
	maxTime    = 50 * 365 * 24 * time.Hour
)

// Sample is one look at the server's clock.
type Sample struct {
	// Before and After are the times of our monotonic clock, at least 0, from any fixed
	// start: before the question left, and after the answer had come.
	Before, After time.Duration
	// Second is what the server's clock showed: whole seconds since 1970.
	Second int64
}

// Outcome says what a sample did to the estimate.
type Outcome uint8

const (
	// Began: it is the first.
	Began Outcome = iota
	// Narrowed: it agrees, and the interval is now no wider than it was.
	Narrowed
	// Followed: it contradicts by no more than Config.Slack: the interval now is that
	// slack, beyond the sample. The next samples show whether it is enough.
	Followed
	// Restarted: it contradicts. The server has restarted, or its clock has stepped. What
	// was known is forgotten: sweep again.
	Restarted
	// Ignored: it makes no sense. After is before Before, or a number is out of all bounds.
	Ignored
)

// String gives the outcome in a word.
func (o Outcome) String() string {
	words := [...]string{"began", "narrowed", "followed", "restarted", "ignored"}
	if int(o) < len(words) {
		return words[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// Estimate is what is known at one time.
type Estimate struct {
	// Offset is what is to be added to our monotonic clock to get the server's, since 1970.
	Offset time.Duration
	// Bound is how far the true offset is from that at most.
	Bound time.Duration
}
