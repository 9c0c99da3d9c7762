package limiter

import (
	"context"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/memory"
)

// Config tunes a limiter. The zero Config is a token bucket in 4 MiB of memory.
type Config struct {
	// Algorithm is TokenBucket unless told otherwise.
	Algorithm headgate.Algorithm
	// SubWindows is the N of SlidingWindow.
	SubWindows int
	// CountRejected makes refused attempts count too, for the window algorithms.
	CountRejected bool
	// MaxMemory bounds all keys together, in bytes; a key takes 32 bytes, and for
	// SlidingLog and SlidingWindow a block besides. 0 is 4 MiB: 131,072 places, in
	// which 78,000 keys keep their state. It is address space, outside the heap where the
	// system has that, and takes memory as keys come: some kilobytes for the first one.
	// A Single takes none of it, and at most that much for a SlidingLog (0: 64 MiB).
	MaxMemory int64
	// AllowOnFull lets a new key pass uncounted when each place that it may take
	// holds a limited one. It is refused otherwise.
	AllowOnFull bool
	// Clock replaces the monotonic clock in tests and simulations.
	Clock func() headgate.Instant
}

func (c Config) policy(l headgate.Limit) headgate.Policy {
	return headgate.Policy{Algorithm: c.Algorithm, Limit: l, SubWindows: c.SubWindows, CountRejected: c.CountRejected}
}

// Keyed applies one limit to each of many keys. It is safe for concurrent use.
type Keyed struct {
	store  *memory.Store
	policy headgate.PolicyID
}

// defaultMaxMemory is small, since a program may have a limiter for each of its tenants.
const defaultMaxMemory = 4 << 20

// New makes a Keyed. The error says which field does not fit and what would.
func New(l headgate.Limit, c Config) (*Keyed, error) {
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

// Take counts n units under key if they pass, and writes what it decided into d, whatever
// d held before: a caller that keeps one Decision pays for no copy. The error is
// headgate.ErrBadCost, or headgate.ErrNotMade for a Keyed that New did not make; the
// verdict beside an error is Deny. ctx is for stores beyond this process; memory does
// not wait.
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

// TakeMany counts n units under each of keys and writes what it decided into
// decisions, which is at least as long. One reading of the clock serves 32 keys. The
// errors are those of Take.
func (k *Keyed) TakeMany(_ context.Context, keys []string, n int64, decisions []headgate.Decision) error {
	if k == nil {
		return (*memory.Store)(nil).TakeMany(keys, 0, n, decisions)
	}
	return k.store.TakeMany(keys, k.policy, n, decisions)
}

// Peek writes into d what Take would, and counts nothing.
func (k *Keyed) Peek(_ context.Context, key string, n int64, d *headgate.Decision) error {
	return k.decide(key, n, headgate.Peek, d)
}

// Return gives back what the decisions' receipts took, each once.
func (k *Keyed) Return(ctx context.Context, receipts ...headgate.Receipt) error {
	if k == nil {
		return headgate.ErrNotMade
	}
	return k.store.Return(ctx, receipts)
}

// Stats says what the limiter holds, for metrics.
func (k *Keyed) Stats() memory.Stats {
	if k == nil {
		return memory.Stats{}
	}
	return k.store.Stats()
}
