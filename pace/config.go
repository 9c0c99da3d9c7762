package pace

import (
	"log/slog"
	"math"
	"time"

	"github.com/headgate/headgate"
)

// Forever is a wait that only ctx ends.
const Forever = time.Duration(math.MaxInt64)

// Smoothing selects how permits are spread within a window.
type Smoothing uint8

const (
	// Off opens all permits at the start of a window.
	Off Smoothing = iota
	// EvenSpread opens the permits evenly over the window.
	EvenSpread
	// PID spreads the permits only as far as the previous windows required.
	PID
)

var smoothingNames = [...]string{"off", "even", "pid"}

// String returns "off", "even" or "pid".
func (s Smoothing) String() string { return smoothingNames[min(int(s), len(smoothingNames)-1)] }

// Config configures a [Pacer].
type Config struct {
	// Provider is the provider's name in errors, logs and metrics.
	Provider string
	// Source supplies the limit and this instance's part of it. Required.
	Source    Source
	Smoothing Smoothing
	// MaxWaiters bounds the number of waiters. The default is 100,000.
	MaxWaiters int
	// Logger gets one line for each change and fault. The default is slog.Default().
	Logger *slog.Logger
	// Wall is the clock that windows follow. The default is the machine's clock. The pacer reads Wall
	// once a window.
	Wall func() headgate.Instant
}

const (
	defaultMaxWaiters = 100_000
	mostWaiters       = 1 << 22
)
