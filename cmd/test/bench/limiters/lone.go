package limiters

import (
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	juju "github.com/juju/ratelimit"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/headgate/headgate/cmd/test/bench/contest"
)

// LoneLimiters returns Headgate's limiter and the peers that limit without keys.
func LoneLimiters() []LoneMaker {
	return []LoneMaker{
		{Name: HeadgateSingle, Kind: contest.Ours, New: newHeadgateSingle},
		{Name: "x/time/rate", Kind: contest.Peer, New: newXTime},
		{Name: "juju/ratelimit", Kind: contest.Peer, New: newJuju},
		{Name: "failsafe-go bursty", Kind: contest.Peer, New: newFailsafe},
		{Name: "uber-go/ratelimit", Kind: contest.Peer, NeverDenies: true, New: newUber},
	}
}

// countAnswer adds one decision to the tally.
func countAnswer(t *contest.Tally, allowed bool) {
	if allowed {
		t.Allowed++
	} else {
		t.Denied++
	}
}

type xTime struct{ limiter *rate.Limiter }

func newXTime(l Limit) (Lone, error) {
	return xTime{rate.NewLimiter(rate.Every(l.interval()), l.Burst)}, nil
}

func (x xTime) Take(n int) (t contest.Tally) {
	for range n {
		countAnswer(&t, x.limiter.Allow())
	}
	return t
}

type jujuBucket struct{ bucket *juju.Bucket }

func newJuju(l Limit) (Lone, error) {
	return jujuBucket{juju.NewBucket(l.interval(), int64(l.Burst))}, nil
}

func (j jujuBucket) Take(n int) (t contest.Tally) {
	for range n {
		countAnswer(&t, j.bucket.TakeAvailable(1) == 1)
	}
	return t
}

type failsafe struct {
	limiter ratelimiter.RateLimiter[any]
}

func newFailsafe(l Limit) (Lone, error) {
	return failsafe{ratelimiter.NewBursty[any](uint(l.Burst), Window)}, nil
}

func (f failsafe) Take(n int) (t contest.Tally) {
	for range n {
		countAnswer(&t, f.limiter.TryAcquirePermit())
	}
	return t
}

type uberLimiter struct{ limiter uber.Limiter }

// newUber sets a rate that no loop can reach, because the limiter sleeps instead of denying.
func newUber(Limit) (Lone, error) {
	return uberLimiter{uber.New(1e9, uber.Per(time.Second))}, nil
}

func (u uberLimiter) Take(n int) (t contest.Tally) {
	for range n {
		countAnswer(&t, !u.limiter.Take().IsZero())
	}
	return t
}
