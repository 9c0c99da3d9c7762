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

// OnLoss says what an instance does that has lost etcd.
type OnLoss uint8

const (
	// Hold keeps the last part for HoldFor: etcd being down does not stop the calls.
	Hold OnLoss = iota
	// Stop stops before others may take the part: the limit is never exceeded.
	Stop
)

var onLossNames = [...]string{"hold", "stop"}

// String gives "hold" or "stop".
func (o OnLoss) String() string { return onLossNames[min(int(o), len(onLossNames)-1)] }

// Config says which provider's limit an instance has a part of, and how. Client and
// Provider must be there.
type Config struct {
	// Client reaches etcd. It is not closed. Give it a DialKeepAliveTime, so that it finds
	// out that a server is gone without a word, and grpc.WithConnectParams with a MaxDelay
	// of about a second, since gRPC's own waits for a new connection grow to minutes. Give it
	// ClientLogger(logger) as Logger, so that its lines go where yours go; New does so for
	// calls, not for lease and watch, where the client has its default logger.
	Client   *clientv3.Client
	Provider string // 1 to 128 of A-Z, a-z, 0-9 and . _ : -
	// Prefix is where the keys are: DefaultPrefix when it is empty. It ends with a /.
	Prefix string
	// ID names the instance; no other that runs may have the same. One that is
	// started with the ID of one that has ended takes its place. When it is empty, it is
	// random, and the place of one that was killed is free after the TTL.
	ID string

	// TTL is how long an instance counts as alive that is not heard of: 6 s when it is 0.
	// Etcd grants no less than 1.5 times its election timeout in whole seconds, 2 s by
	// default, and finds out up to a second late.
	TTL time.Duration
	// Propagation is how long a change takes to be known by all: it takes effect at the
	// first window's edge so much later. 2 s when it is 0. It should be the same for all
	// instances; while it is not, the longest counts.
	Propagation time.Duration
	// OnLoss says what to do when etcd is lost: Hold, for HoldFor (1 h when it is 0), or Stop.
	OnLoss  OnLoss
	HoldFor time.Duration
	// Rebalance is how often the parts are adapted to demand, where the limit says so:
	// 2 s when it is 0.
	Rebalance time.Duration

	// Wall is the clock that windows go by: the machine's when it is nil.
	Wall func() headgate.Instant
	// Logger gets a line when the instance joins, or proposes a plan, and the lines of a
	// Client without a logger of its own: slog.Default() when it is nil.
	Logger *slog.Logger
}

const (
	minTTL, defaultTTL, maxTTL                         = time.Second, 6 * time.Second, time.Hour
	minPropagation, defaultPropagation, maxPropagation = 100 * time.Millisecond, 2 * time.Second, time.Minute
	minRebalance, defaultRebalance, maxRebalance       = 100 * time.Millisecond, 2 * time.Second, time.Hour
	minHoldFor, defaultHoldFor, maxHoldFor             = time.Second, time.Hour, 366 * 24 * time.Hour
)

// withDefaults gives the configuration that is meant, or says what is wrong with it.
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
		between("Rebalance", &c.Rebalance, minRebalance, defaultRebalance, maxRebalance),
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

// between sets a time that is 0, and says when one is out of bounds.
func between(name string, d *time.Duration, least, unset, most time.Duration) error {
	if *d == 0 {
		*d = unset
	}
	if *d < least || *d > most {
		return fmt.Errorf("pace/etcd: %s %v: use %v to %v, or 0 for %v", name, *d, least, most, unset)
	}
	return nil
}

// Of the bound in which changes are known by all: how long after it knows of a plan an
// instance may count on all others knowing it or having stopped; how long it may go by a
// plan after it has asked whether it is the newest, a twelfth less, since clocks do not go
// at quite the same rate; and how often it asks.
func settled(bound time.Duration) time.Duration  { return bound / 4 * 3 }
func valid(bound time.Duration) time.Duration    { return bound / 16 * 11 }
func askEvery(bound time.Duration) time.Duration { return bound / 4 }
