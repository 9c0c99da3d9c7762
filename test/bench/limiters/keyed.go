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

	"github.com/headgate/headgate/test/bench/contest"
)

// KeyedPeers lists the peers that limit many keys.
func KeyedPeers() []KeyedMaker {
	return []KeyedMaker{
		XTimeMap(),
		{Name: "failsafe-go in sync.Map", Kind: contest.Peer, New: newFailsafeMap},
		// Its compare-and-swap gives up after ten attempts, with an error.
		{Name: "throttled memstore", Kind: contest.Peer, MayFail: true, New: newThrottled},
		{Name: "ulule/limiter memory", Kind: contest.Peer, New: newUlule},
		{Name: "sethvargo memorystore", Kind: contest.Peer, New: newSethvargo},
		{Name: "go-chi/httprate", Kind: contest.Peer, New: newHTTPRate},
	}
}

// KeyedLimiters lists ours and the peers.
func KeyedLimiters() []KeyedMaker {
	return append([]KeyedMaker{HeadgateTake()}, KeyedPeers()...)
}

// HeadgateTake is ours, a key a call.
func HeadgateTake() KeyedMaker {
	return KeyedMaker{Name: HeadgateKeyed, Kind: contest.Ours, New: newHeadgateKeyed}
}

// HeadgateTakeMany is ours, contest.Batch keys a call.
func HeadgateTakeMany() KeyedMaker {
	return KeyedMaker{Name: HeadgateMany, Kind: contest.Ours, New: newHeadgateMany}
}

// XTimeMap is x/time/rate, a limiter a key.
func XTimeMap() KeyedMaker {
	return KeyedMaker{Name: "x/time/rate in sync.Map", Kind: contest.Peer, New: newXTimeMap}
}

// xTimeMap is what programs build around x/time/rate when they have keys.
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
	return found.(*rate.Limiter) //nolint:errcheck,forcetypeassert // nothing else is stored
}

func (x *xTimeMap) Take(keys []string, from, n int) (t contest.Tally) {
	mask := len(keys) - 1
	for i := range n {
		asked(&t, x.of(keys[(from+i)&mask]).Allow())
	}
	return t
}

// failsafeMap is the same around the fastest peer without keys.
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
	return found.(ratelimiter.RateLimiter[any]) //nolint:errcheck,forcetypeassert // nothing else is stored
}

func (f *failsafeMap) Take(keys []string, from, n int) (t contest.Tally) {
	mask := len(keys) - 1
	for i := range n {
		asked(&t, f.of(keys[(from+i)&mask]).TryAcquirePermit())
	}
	return t
}

type throttledStore struct {
	noGoroutines

	limiter *throttled.GCRARateLimiterCtx
}

func newThrottled(l Limit, _ Room) (Keyed, error) { return throttledOf(l, 0) }

// newThrottledBounded keeps the least recently used keys only.
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
		asked(&t, !limited)
	}
	return t
}

type ululeMemory struct {
	noGoroutines

	limiter *ulule.Limiter
}

// newUlule starts no cleaner: its sweep would fall into the time of others.
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
		asked(&t, !d.Reached)
	}
	return t
}

type sethvargoMemory struct{ store sethvargo.Store }

// newSethvargo never sweeps, for the same reason as above.
func newSethvargo(l Limit, _ Room) (Keyed, error) {
	store, err := memorystore.New(&memorystore.Config{
		Tokens: uint64(l.Burst), Interval: Window, SweepInterval: math.MaxInt64, SweepMinTTL: 2 * Window,
	})
	return sethvargoMemory{store}, err
}

func (s sethvargoMemory) Close() {
	_ = s.store.Close(context.Background()) // The memory store has nothing to report.
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
		asked(&t, allowed)
	}
	return t
}

// ThrottledBounded is throttled with its memory bounded. It takes part in the
// flood only: a bound that evicts by use forgets who is limited.
func ThrottledBounded() KeyedMaker {
	return KeyedMaker{Name: "throttled memstore, bounded", Kind: contest.Peer, MayFail: true, New: newThrottledBounded}
}
