package middlewares

import (
	"math"
	"net/http"

	"github.com/didip/tollbooth/v7"
	"github.com/go-chi/httprate"
	sethvargo "github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululehttp "github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
)

// Peers returns the middlewares of other projects. Each reads the key as its documentation
// says, and sends its default header fields.
func Peers() []Maker {
	return []Maker{
		{Name: "go-chi/httprate", Kind: contest.Peer, New: newHTTPRate},
		{Name: "sethvargo httplimit", Kind: contest.Peer, New: newSethvargo},
		{Name: "ulule/limiter stdlib", Kind: contest.Peer, New: newUlule},
		// The compare-and-swap of throttled fails with an error after ten attempts.
		{Name: "throttled HTTPRateLimiter", Kind: contest.Peer, MayFail: true, New: newThrottled},
		{Name: "didip/tollbooth", Kind: contest.Peer, New: newTollbooth},
	}
}

// client returns the key of a request, for peers that take a key function.
func client(r *http.Request) (string, error) { return r.Header.Get(header), nil }

func newHTTPRate(l limiters.Limit, next http.Handler) (http.Handler, error) {
	return httprate.LimitBy(l.Burst, limiters.Window, client)(next), nil
}

// newSethvargo never sweeps, because a sweep could run while another side is measured.
func newSethvargo(l limiters.Limit, next http.Handler) (http.Handler, error) {
	store, err := memorystore.New(&memorystore.Config{
		Tokens: uint64(l.Burst), Interval: limiters.Window, SweepInterval: math.MaxInt64, SweepMinTTL: 2 * limiters.Window,
	})
	if err != nil {
		return nil, err
	}
	m, err := sethvargo.NewMiddleware(store, client)
	if err != nil {
		return nil, err
	}
	return m.Handle(next), nil
}

// newUlule starts no cleaner, because its sweep could run while another side is measured.
func newUlule(l limiters.Limit, next http.Handler) (http.Handler, error) {
	store := ululememory.NewStoreWithOptions(ulule.StoreOptions{Prefix: ulule.DefaultPrefix})
	limiter := ulule.New(store, ulule.Rate{Period: limiters.Window, Limit: int64(l.Burst)})
	key := ululehttp.WithKeyGetter(func(r *http.Request) string { return r.Header.Get(header) })
	return ululehttp.NewMiddleware(limiter, key).Handler(next), nil
}

func newThrottled(l limiters.Limit, next http.Handler) (http.Handler, error) {
	store, err := memstore.NewCtx(0)
	if err != nil {
		return nil, err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(l.Count, l.Per), MaxBurst: l.Burst - 1}
	limiter, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, err
	}
	h := throttled.HTTPRateLimiterCtx{RateLimiter: limiter, VaryBy: &throttled.VaryBy{Headers: []string{header}}}
	return h.RateLimit(next), nil
}

func newTollbooth(l limiters.Limit, next http.Handler) (http.Handler, error) {
	limiter := tollbooth.NewLimiter(float64(l.Count)/l.Per.Seconds(), nil)
	limiter.SetBurst(l.Burst).SetHeader(header, nil).SetIPLookups([]string{"RemoteAddr"}).SetIgnoreURL(true)
	return tollbooth.LimitHandler(limiter, next), nil
}
