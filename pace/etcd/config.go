package etcd

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate"
)

// OnLoss is what an instance does while etcd is unreachable.
type OnLoss uint8

const (
	// Hold keeps the last part for HoldFor, so that an outage of etcd does not stop the calls.
	Hold OnLoss = iota
	// Stop stops before other instances may get the part, so that the limit is never exceeded.
	Stop
)

var onLossNames = [...]string{"hold", "stop"}

// String gives "hold" or "stop".
func (o OnLoss) String() string { return onLossNames[min(int(o), len(onLossNames)-1)] }

// Config sets the provider, and how an instance shares its limit. Client and Provider are required.
type Config struct {
	// Client connects to etcd. The Source does not close it. Set DialKeepAliveTime, so that the client
	// notices a silent server. Set grpc.WithConnectParams with a MaxDelay of about a second,
	// because gRPC's default grows to minutes. Set Logger to ClientLogger(logger) to get all log
	// lines of the client. New sets the logger for calls only: lease and watch keep the client's
	// default logger.
	Client   *clientv3.Client
	Provider string // 1 to 128 of A-Z, a-z, 0-9 and . _ : -
	// Prefix begins all keys, and ends with a /; the default is DefaultPrefix.
	Prefix string
	// ID is the name of the instance. No two running instances may share an ID. A new process with
	// the ID of a former one takes its place. The default is a random ID; the place of a killed
	// process is then free after the TTL.
	ID string

	// TTL is how long an unreachable instance counts as alive; 6 s by default. Etcd grants no TTL
	// below 1.5 times its election timeout, in whole seconds: 2 s by default. It notices the end up
	// to a second late.
	TTL time.Duration
	// Propagation is the time in which all instances learn a change: a change takes effect at the first
	// window edge after that time. 2 s by default. All instances should use the same value;
	// otherwise the longest counts.
	Propagation time.Duration
	// OnLoss is what to do while etcd is unreachable: Hold, for HoldFor (1 h by default), or Stop.
	OnLoss  OnLoss
	HoldFor time.Duration

	// Wall is the clock of the windows; the default is the machine's clock.
	Wall func() headgate.Instant
	// Logger gets a line when the instance joins or proposes a plan, and the lines of a Client with the
	// default logger; slog.Default() by default.
	Logger *slog.Logger
}

const (
	minTTL, defaultTTL, maxTTL                         = time.Second, 6 * time.Second, time.Hour
	minPropagation, defaultPropagation, maxPropagation = 100 * time.Millisecond, 2 * time.Second, time.Minute
	minHoldFor, defaultHoldFor, maxHoldFor             = time.Second, time.Hour, 366 * 24 * time.Hour
)

// withDefaults sets the defaults. The error names an invalid setting.
func (c Config) withDefaults() (Config, error) {
	if c.Client == nil {
		return c, errors.New("pace/etcd: no client: make one by clientv3.New")
	}
	if c.ID == "" {
		c.ID = rand.Text()
	}
	var err error
	c.Prefix, err = checkPrefix(c.Prefix)
	if c.OnLoss > Stop {
		err = errors.Join(err, fmt.Errorf("pace/etcd: OnLoss %d: use Hold or Stop", c.OnLoss))
	}
	err = errors.Join(
		err, checkName("Provider", c.Provider), checkName("ID", c.ID),
		between("TTL", &c.TTL, minTTL, defaultTTL, maxTTL),
		between("Propagation", &c.Propagation, minPropagation, defaultPropagation, maxPropagation),
		between("HoldFor", &c.HoldFor, minHoldFor, defaultHoldFor, maxHoldFor),
	)
	if c.Wall == nil {
		c.Wall = func() headgate.Instant { return headgate.Instant(time.Now().UnixNano()) }
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, err
}

// between sets the default of a time, and gives an error for a time out of range.
func between(name string, d *time.Duration, least, unset, most time.Duration) error {
	if *d == 0 {
		*d = unset
	}
	if *d < least || *d > most {
		return fmt.Errorf("pace/etcd: %s %v: use %v to %v, or 0 for %v", name, *d, least, most, unset)
	}
	return nil
}

// settled, valid and verifyEvery are parts of the bound within which all instances learn a change.
// settled is how long after it has learnt a plan an instance may assume that all others know the plan
// or have stopped. valid is how long it may use a plan after a check that the plan is the newest: a
// twelfth less, for clocks with different rates. verifyEvery is the interval of these checks.
func settled(bound time.Duration) time.Duration     { return bound / 4 * 3 }
func valid(bound time.Duration) time.Duration       { return bound / 16 * 11 }
func verifyEvery(bound time.Duration) time.Duration { return bound / 4 }
