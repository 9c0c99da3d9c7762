package pace

import (
	"log/slog"
	"math"
	"time"

	"github.com/headgate/headgate"
)

// Forever is a wait without an end of its own.
const Forever = time.Duration(math.MaxInt64)

// Smoothing says how permits are spread within a window.
type Smoothing uint8

const (
	// Off has all permits open at the start of a window.
	Off Smoothing = iota
	// EvenSpread spreads them evenly over the window.
	EvenSpread
	// PID spreads them only as far as the windows before have shown to be needed.
	PID
)

var smoothingNames = [...]string{"off", "even", "pid"}

// String gives "off", "even" or "pid".
func (s Smoothing) String() string { return smoothingNames[min(int(s), len(smoothingNames)-1)] }

// Config says whose calls a pacer paces, and how.
type Config struct {
	// Provider names the provider, in errors, logs and metrics.
	Provider string
	// Source tells the limit and this instance's part of it. It must be there.
	Source    Source
	Smoothing Smoothing
	// MaxWaiters bounds those who wait: 100,000 when it is 0.
	MaxWaiters int
	// Logger gets a line a change and a fault: slog.Default() when it is nil.
	Logger *slog.Logger
	// Wall is the clock that windows go by: the machine's when it is nil. It is read once
	// a window.
	Wall func() headgate.Instant
}

const (
	defaultMaxWaiters = 100_000
	mostWaiters       = 1 << 22
)
