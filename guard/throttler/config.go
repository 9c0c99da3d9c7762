package throttler

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/internal/wheel"
	"github.com/headgate/headgate/internal/throttle"
	"github.com/headgate/headgate/rule"
)

// Name is the name of the stage, and of the rule that describes it in logs and to callers. No
// rule of the Config may have this name.
const Name = "throttle"

// The headers of the stage. A trusted peer sends the first two, and the service gets them. The
// service sends the third.
const (
	FieldCriticality = throttle.FieldCriticality
	FieldTimeout     = throttle.FieldTimeout
	FieldWork        = "Headgate-Work"
)

const fieldGRPCTimeout = "Grpc-Timeout"

// OwnHeader reports whether the stage sets or reads a header of this canonical name. No other setting may
// give such a header a meaning.
func OwnHeader(name string) bool {
	switch name {
	case FieldCriticality, FieldTimeout, FieldWork, fieldGRPCTimeout:
		return true
	default:
		return false
	}
}

// Config is the configuration of a Stage.
type Config struct {
	Limits

	// Mode Shadow delays and refuses nothing, and models the queue. Off skips the stage.
	Mode guard.Mode
	// Tenant is the part of a request that names its tenant, read by rule.Part.AppendClient. With
	// the zero Part, all requests have one tenant.
	Tenant rule.Part
	// Class is the class of requests that state none and match no entry of Classes.
	Class Class
	// Classes gives classes by match. Of several entries that match, the first counts.
	Classes []Classified
	// Folds are the differences between paths that the service ignores, for Classes.
	Folds rule.Folds
	// Identity knows the trusted peers, which may state class and deadline. nil trusts no peer.
	Identity *rule.Identity
	// MaxDeadline bounds the deadlines that requests state. 0 is a minute.
	MaxDeadline time.Duration
	// ServiceTime takes the service time for the work, and ignores what the service reports.
	ServiceTime bool
	// CountStreams lets a stream keep its slot until its end.
	CountStreams bool
	// Clock is the time. nil is the machine's monotonic clock.
	Clock Clock
}

// check sets the defaults, and finds the first fault.
func (c *Config) check() error {
	if c.Deadline == 0 {
		c.Deadline = time.Second
	}
	if c.MaxDeadline == 0 {
		c.MaxDeadline = max(time.Minute, c.Deadline)
	}
	if c.Clock == nil {
		c.Clock = wheel.Machine()
	}
	switch {
	case c.Mode > guard.Off:
		return fmt.Errorf("throttler: mode %d is not known: use the constants", c.Mode)
	case c.Tenant.OfMatch():
		return fmt.Errorf("throttler: the tenant %s names a part of a match, and the stage has none: use another part", c.Tenant)
	case c.Class > throttle.Sheddable:
		return fmt.Errorf("throttler: class %d is not known: use the constants", c.Class)
	case c.MaxDeadline < c.Deadline:
		return fmt.Errorf("throttler: MaxDeadline is %v, below the Deadline of %v: raise it", c.MaxDeadline, c.Deadline)
	case c.ServiceTime && c.Search.Apply:
		return errors.New("throttler: Search.Apply needs reported work, and ServiceTime ignores it: remove one of them")
	}
	return c.Limits.Check() //nolint:wrapcheck // The error names the field already.
}
