package limiter

import (
	"context"
	"errors"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/memory"
)

// Config configures a limiter. The zero Config is a token bucket in 4 MiB of memory.
type Config struct {
	// Algorithm is the algorithm of the limit. The default is TokenBucket.
	Algorithm headgate.Algorithm
	// SubWindows is the number of sub-windows of SlidingWindow.
	SubWindows int
	// CountRejected also counts refused attempts, for the window algorithms.
	CountRejected bool
	// MaxMemory bounds the memory of all keys, in bytes. A key takes 32 bytes. For SlidingLog
	// and SlidingWindow it also takes a block. 0 means 4 MiB: 131,072 slots, in which 78,000
	// keys keep their state. The memory is reserved address space, outside the heap where the
	// operating system supports that. Pages are used as keys arrive: some kilobytes for the
	// first key. A Single uses MaxMemory only as a bound for a SlidingLog (0: 64 MiB).
	MaxMemory int64
	// AllowOnFull admits a new key without counting it when every slot for the key holds a
	// limited key. By default such a key is refused.
	AllowOnFull bool
	// Clock replaces the monotonic clock in tests and simulations.
	Clock func() headgate.Instant
}

// errCalendar refuses a calendar period, because a limiter has no time zone.
var errCalendar = errors.New("limiter: the limit has a period of the calendar, which needs a time zone: use a period with a length, " +
	"such as 30d, or a store with Op.Edges of package calendar")

func (c Config) policy(l headgate.Limit) headgate.Policy {
	return headgate.Policy{Algorithm: c.Algorithm, Limit: l, SubWindows: c.SubWindows, CountRejected: c.CountRejected}
}

// Keyed applies one limit to each of many keys. It is safe for concurrent use.
type Keyed struct {
	store  *memory.Store
	policy headgate.PolicyID
}

// defaultMaxMemory is small because a program can have one limiter for each tenant.
const defaultMaxMemory = 4 << 20

// New returns a Keyed. The error names the invalid field and valid values.
func New(l headgate.Limit, c Config) (*Keyed, error) {
	if l.Calendar != headgate.NoCalendar {
		return nil, errCalendar
	}
	blocks := -1
	if c.Algorithm == headgate.SlidingLog || c.Algorithm == headgate.SlidingWindow {
		blocks = 75
	}
	if c.MaxMemory == 0 {
		c.MaxMemory = defaultMaxMemory
	}
	store, err := memory.New(memory.Config{MaxMemory: c.MaxMemory, BlockShare: blocks, AllowOnFull: c.AllowOnFull, Clock: c.Clock})
	if err != nil {
		return nil, err
	}
	policy, err := store.Prepare(c.policy(l))
	if err != nil {
		return nil, err
	}
	return &Keyed{store: store, policy: policy}, nil
}

// Take counts n units under key if they pass, and writes the decision into d. It overwrites
// all fields of d, so a caller can reuse one Decision without a copy. The error is
// headgate.ErrBadCost, or headgate.ErrNotMade for a Keyed that New did not make. After an
// error the verdict is Deny. Take does not wait, and ignores ctx.
func (k *Keyed) Take(_ context.Context, key string, n int64, d *headgate.Decision) error {
	return k.decide(key, n, headgate.Take, d)
}

func (k *Keyed) decide(key string, n int64, mode headgate.OpKind, d *headgate.Decision) error {
	if k == nil {
		*d = headgate.Undecided()
		return headgate.ErrNotMade
	}
	return k.store.Take(&headgate.Op{Key: key, Policy: k.policy, Cost: n, Kind: mode}, d)
}

// TakeMany counts n units under each of keys, and writes the decisions into decisions, which
// must be at least as long. It reads the clock once for every 32 keys. The errors are the
// same as those of Take.
func (k *Keyed) TakeMany(_ context.Context, keys []string, n int64, decisions []headgate.Decision) error {
	if k == nil {
		return (*memory.Store)(nil).TakeMany(keys, 0, n, decisions)
	}
	return k.store.TakeMany(keys, k.policy, n, decisions)
}

// Peek writes into d the decision that Take would make, and counts nothing.
func (k *Keyed) Peek(_ context.Context, key string, n int64, d *headgate.Decision) error {
	return k.decide(key, n, headgate.Peek, d)
}

// Return gives back the units of the receipts. Return each receipt at most once.
func (k *Keyed) Return(ctx context.Context, receipts ...headgate.Receipt) error {
	if k == nil {
		return headgate.ErrNotMade
	}
	return k.store.Return(ctx, receipts)
}

// Stats returns the size and use of the limiter's memory, for metrics.
func (k *Keyed) Stats() memory.Stats {
	if k == nil {
		return memory.Stats{}
	}
	return k.store.Stats()
}
