package limiter

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/store/memory"
)

// Config configures a limiter. The zero Config is a token bucket for a million keys.
type Config struct {
	// Algorithm is the algorithm of the limit. The default is TokenBucket.
	Algorithm headgate.Algorithm
	// SubWindows is the number of sub-windows of SlidingWindow.
	SubWindows int
	// CountRejected also counts refused attempts, for the window algorithms.
	CountRejected bool
	// MaxMemory bounds the memory of all keys, in bytes. The memory is reserved address space,
	// outside the heap where the operating system supports that. Pages are used as keys arrive:
	// some kilobytes for the first key.
	//
	// Size it for the keys that are in use within the time in which the limit refills: a period,
	// or Burst intervals. Multiply their number by 100 bytes if all of them can be limited at once, and by 54
	// if few are. Two algorithms need more state than that. For them, one quarter of MaxMemory is
	// for the keys, and three quarters are for one block for each key. docs/algorithms.md has the size of a
	// block: a power of two of at least 64 bytes.
	//
	// 0 means 96 MiB: a million keys, all of them limited. With blocks it means
	// 960 MiB, with nine tenths for blocks: a million keys with blocks of 512 bytes, that is, 28
	// units or 59 sub-windows. On systems without mmap it means 96 MiB for these too, and on 32-bit
	// systems 4 MiB. A Single uses MaxMemory only as a bound for a log (0: 64 MiB).
	MaxMemory int64
	// AllowOnFull admits a new key without counting it when every slot for the key holds a
	// limited key. By default such a key is refused with the Reason StoreFull, and RetryAfter is
	// the time until the next of these slots has room.
	AllowOnFull bool
	// Log gets one warning when the first key finds no room. nil means slog.Default.
	Log *slog.Logger
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
	limit  headgate.Limit
	config Config
	full   atomic.Bool
}

// The default sizes. A program can have one limiter for each tenant: the memory of keys that
// do not arrive is only address space.
const (
	forMillion       = 96 << 20  // A million keys fill 32 % of the table. At 48 %, five of them found no room.
	blocksForMillion = 960 << 20 // One tenth is for the table.
	for32Bit         = 4 << 20
)

// memoryFor gives the size of the memory, and the part of it for blocks in percent.
func (c Config) memoryFor() (bytes int64, blocks int) {
	switch {
	case !limit.TraitsOf(c.Algorithm).Blocks():
		bytes, blocks = forMillion, -1
	case memory.OutsideHeap && c.MaxMemory == 0 && strconv.IntSize > 32:
		return blocksForMillion, 90
	default:
		bytes, blocks = forMillion, 75
	}
	if strconv.IntSize == 32 {
		bytes = for32Bit
	}
	if c.MaxMemory != 0 {
		bytes = c.MaxMemory
	}
	return bytes, blocks
}

// New returns a Keyed. The error names the invalid field and valid values.
func New(l headgate.Limit, c Config) (*Keyed, error) {
	if l.Calendar != headgate.NoCalendar {
		return nil, errCalendar
	}
	bytes, blocks := c.memoryFor()
	store, err := memory.New(memory.Config{
		MaxMemory: bytes, BlockShare: blocks, SmallPages: c.MaxMemory == 0, AllowOnFull: c.AllowOnFull, Clock: c.Clock,
	})
	if err != nil {
		return nil, err
	}
	policy, err := store.Prepare(c.policy(l))
	if err != nil {
		return nil, err
	}
	c.MaxMemory = bytes
	return &Keyed{store: store, policy: policy, limit: l, config: c}, nil
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
	err := k.store.Take(&headgate.Op{Key: key, Policy: k.policy, Cost: n, Kind: mode}, d)
	if d.Reason == headgate.StoreFull {
		k.warnFull()
	}
	return err
}

// warnFull logs the first decision of a key without room.
func (k *Keyed) warnFull() {
	if k.full.Load() || !k.full.CompareAndSwap(false, true) {
		return
	}
	log, verdict := k.config.Log, headgate.Deny
	if log == nil {
		log = slog.Default()
	}
	if k.config.AllowOnFull {
		verdict = headgate.Allow
	}
	stats := k.store.Stats()
	log.Warn("limiter: the memory is full of limited keys, and a new key has no room: raise Config.MaxMemory",
		"verdict", verdict.String(), "limit", k.limit.String(), "max_memory", k.config.MaxMemory, "slots", stats.Places, "used", stats.Used,
		"block_bytes", stats.BlockBytes, "block_bytes_used", stats.BlockBytesLent)
}

// TakeMany counts n units under each of keys, and writes the decisions into decisions, which
// must be at least as long. It reads the clock once for every 32 keys. The errors are the
// same as those of Take.
func (k *Keyed) TakeMany(_ context.Context, keys []string, n int64, decisions []headgate.Decision) error {
	if k == nil {
		return (*memory.Store)(nil).TakeMany(keys, 0, n, decisions)
	}
	err := k.store.TakeMany(keys, k.policy, n, decisions)
	for i := range keys {
		if err == nil && decisions[i].Reason == headgate.StoreFull {
			k.warnFull()
			break
		}
	}
	return err
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
