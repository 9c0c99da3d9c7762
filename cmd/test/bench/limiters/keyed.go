package limiters

import (
	"context"
	"math"
	"sync"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	sethvargo "github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	"github.com/headgate/headgate/cmd/test/bench/contest"
)

// KeyedPeers returns the peers that limit many keys.
func KeyedPeers() []KeyedMaker {
	return []KeyedMaker{
		XTimeMap(),
		{Name: "failsafe-go in sync.Map", Kind: contest.Peer, New: newFailsafeMap},
		// The compare-and-swap of throttled fails with an error after ten attempts.
		{Name: "throttled memstore", Kind: contest.Peer, MayFail: true, New: newThrottled},
		{Name: "ulule/limiter memory", Kind: contest.Peer, New: newUlule},
		{Name: "sethvargo memorystore", Kind: contest.Peer, New: newSethvargo},
		{Name: "go-chi/httprate", Kind: contest.Peer, New: newHTTPRate},
	}
}

// KeyedLimiters returns Headgate's limiter and the peers.
func KeyedLimiters() []KeyedMaker {
	return append([]KeyedMaker{HeadgateTake()}, KeyedPeers()...)
}

// HeadgateTake returns Headgate's limiter with one key in each call.
func HeadgateTake() KeyedMaker {
	return KeyedMaker{Name: HeadgateKeyed, Kind: contest.Ours, New: newHeadgateKeyed}
}

// HeadgateTakeMany returns Headgate's limiter with contest.Batch keys in each call.
func HeadgateTakeMany() KeyedMaker {
	return KeyedMaker{Name: HeadgateMany, Kind: contest.Ours, New: newHeadgateMany}
}

// XTimeMap returns x/time/rate with one limiter for each key.
func XTimeMap() KeyedMaker {
	return KeyedMaker{Name: "x/time/rate in sync.Map", Kind: contest.Peer, New: newXTimeMap}
}

// xTimeMap is the usual way to use x/time/rate with keys.
type xTimeMap struct {
	noGoroutines

	limiters sync.Map
	every    rate.Limit
	burst    int
}

func newXTimeMap(l Limit, _ Room) (Keyed, error) {
	return &xTimeMap{every: rate.Every(l.interval()), burst: l.Burst}, nil
}

func (x *xTimeMap) of(key string) *rate.Limiter {
	found, ok := x.limiters.Load(key)
	if !ok {
		found, _ = x.limiters.LoadOrStore(key, rate.NewLimiter(x.every, x.burst))
	}
	return found.(*rate.Limiter) //nolint:errcheck,forcetypeassert // The map stores only limiters.
}

func (x *xTimeMap) Take(keys []string, from, n int) (t contest.Tally) {
	mask := len(keys) - 1
	for i := range n {
		countAnswer(&t, x.of(keys[(from+i)&mask]).Allow())
	}
	return t
}

// failsafeMap uses failsafe-go, the fastest peer without keys, in the same way.
type failsafeMap struct {
	noGoroutines

	limiters sync.Map
	permits  uint
}

func newFailsafeMap(l Limit, _ Room) (Keyed, error) { return &failsafeMap{permits: uint(l.Burst)}, nil }

func (f *failsafeMap) of(key string) ratelimiter.RateLimiter[any] {
	found, ok := f.limiters.Load(key)
	if !ok {
		found, _ = f.limiters.LoadOrStore(key, ratelimiter.NewBursty[any](f.permits, Window))
	}
	return found.(ratelimiter.RateLimiter[any]) //nolint:errcheck,forcetypeassert // The map stores only limiters.
}

func (f *failsafeMap) Take(keys []string, from, n int) (t contest.Tally) {
	mask := len(keys) - 1
	for i := range n {
		countAnswer(&t, f.of(keys[(from+i)&mask]).TryAcquirePermit())
	}
	return t
}

type throttledStore struct {
	noGoroutines

	limiter *throttled.GCRARateLimiterCtx
}

func newThrottled(l Limit, _ Room) (Keyed, error) { return throttledOf(l, 0) }

// newThrottledBounded keeps only the r.Keys most recently used keys.
func newThrottledBounded(l Limit, r Room) (Keyed, error) { return throttledOf(l, r.Keys) }

func throttledOf(l Limit, maxKeys int) (Keyed, error) {
	store, err := memstore.NewCtx(maxKeys)
	if err != nil {
		return nil, err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(l.Count, l.Per), MaxBurst: l.Burst - 1}
	limiter, err := throttled.NewGCRARateLimiterCtx(store, quota)
	return throttledStore{limiter: limiter}, err
}

func (s throttledStore) Take(keys []string, from, n int) (t contest.Tally) {
	ctx := context.Background()
	mask := len(keys) - 1
	for i := range n {
		limited, _, err := s.limiter.RateLimitCtx(ctx, keys[(from+i)&mask], 1)
		if err != nil {
			t.Failed++
			continue
		}
		countAnswer(&t, !limited)
	}
	return t
}

type ululeMemory struct {
	noGoroutines

	limiter *ulule.Limiter
}

// newUlule starts no cleaner, because its sweep could run while another side is measured.
func newUlule(l Limit, _ Room) (Keyed, error) {
	store := ululememory.NewStoreWithOptions(ulule.StoreOptions{Prefix: ulule.DefaultPrefix})
	return ululeMemory{limiter: ulule.New(store, ulule.Rate{Period: Window, Limit: int64(l.Burst)})}, nil
}

func (u ululeMemory) Take(keys []string, from, n int) (t contest.Tally) {
	ctx := context.Background()
	mask := len(keys) - 1
	for i := range n {
		d, err := u.limiter.Get(ctx, keys[(from+i)&mask])
		if err != nil {
			t.Failed++
			continue
		}
		countAnswer(&t, !d.Reached)
	}
	return t
}

type sethvargoMemory struct{ store sethvargo.Store }

// newSethvargo never sweeps, because a sweep could run while another side is measured.
func newSethvargo(l Limit, _ Room) (Keyed, error) {
	store, err := memorystore.New(&memorystore.Config{
		Tokens: uint64(l.Burst), Interval: Window, SweepInterval: math.MaxInt64, SweepMinTTL: 2 * Window,
	})
	return sethvargoMemory{store}, err
}

func (s sethvargoMemory) Close() {
	_ = s.store.Close(context.Background()) // Close of the memory store always returns nil.
}

func (s sethvargoMemory) Take(keys []string, from, n int) (t contest.Tally) {
	ctx := context.Background()
	mask := len(keys) - 1
	for i := range n {
		_, _, _, allowed, err := s.store.Take(ctx, keys[(from+i)&mask])
		if err != nil {
			t.Failed++
			continue
		}
		countAnswer(&t, allowed)
	}
	return t
}

// ThrottledBounded returns throttled with bounded memory. This side takes part only in the
// flood, because a store that evicts the least recently used keys also evicts limited keys.
func ThrottledBounded() KeyedMaker {
	return KeyedMaker{Name: "throttled memstore, bounded", Kind: contest.Peer, MayFail: true, New: newThrottledBounded}
}
