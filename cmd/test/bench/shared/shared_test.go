package shared

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
)

// TestEveryLimiterLimits checks that each side allows about its limit, and counts each key
// separately.
func TestEveryLimiterLimits(t *testing.T) {
	redis := append([]maker{headgateRedis(), headgatePrefetch()}, redisPeers()...)
	for _, group := range []struct {
		start  starter
		makers []maker
	}{{oneRedis, redis}, {oneMemcached, memcachedMakers()}} {
		for _, m := range group.makers {
			t.Run(m.Name, func(t *testing.T) {
				p := &place{dir: t.TempDir()}
				defer p.stop()
				e, err := p.enter(t.Context(), m, group.start, limiters.Limit{Count: 100, Per: time.Minute, Burst: 100})
				if err != nil {
					t.Fatal(err)
				}
				decide := e.limiter.Caller()
				for _, key := range []string{"a", "b"} {
					if allowed, err := decide(t.Context(), key); !allowed || err != nil {
						t.Errorf("first request under key %s: got allowed %v, error %v, want allowed", key, allowed, err)
					}
				}
				checkMeters(t, e)
			})
		}
	}
}

func checkMeters(t *testing.T, e *entrant) {
	t.Helper()
	for _, m := range e.meters {
		if used, err := m.Read(); err != nil || used <= 0 {
			t.Errorf("%s: got %v, error %v, want more than 0", m.Name, used, err)
		}
	}
}

// open is a limiter that always returns the same answer.
type open bool

func (o open) Caller() take {
	return func(context.Context, string) (bool, error) { return bool(o), nil }
}
func (open) Close() {}

// TestCheckFindsWhoDoesNotLimit checks that limits rejects a side that allows all requests,
// and a side that denies all requests.
func TestCheckFindsWhoDoesNotLimit(t *testing.T) {
	for _, o := range []open{true, false} {
		m := maker{Name: "open", Kind: contest.Peer, New: func(context.Context, []string, limiters.Limit) (limiter, error) { return o, nil }}
		if err := limits(t.Context(), m, nil); err == nil || !strings.Contains(err.Error(), "does not limit") {
			t.Errorf("a limiter that always answers %v: got error %v, want does not limit", o, err)
		}
	}
}

func TestRateOf(t *testing.T) {
	for text, want := range map[string]float64{
		"\"test\",\"rps\",\"avg\"\n\"GET x\",\"123.5\",\"1\"\n": 123.5,
		"\"test\",\"rps\"\n\"EVALSHA a,b\",\"7\"\n":             7,
		"\"test\",\"rps\"\n\"GET\",\"0\"\n":                     0,
		"Could not connect\n":                                   0,
		"":                                                      0,
	} {
		if got, err := rateOf([]byte(text)); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: got %v, error %v, want %v", text, got, err, want)
		}
	}
}

// TestWalk checks that callers begin at different keys and use all keys in turn.
func TestWalk(t *testing.T) {
	var taken []string
	l := recorder{&taken}
	run := runOf(t.Context(), l, []string{"a", "b", "c", "d"}, 2)
	if got := run(0, 3); got != (contest.Tally{Allowed: 3}) {
		t.Errorf("first caller: got %+v, want 3 allowed", got)
	}
	run(1, 3)
	run(0, 2)
	if got, want := strings.Join(taken, ""), "abccdada"; got != want {
		t.Errorf("got the keys %s, want %s", got, want)
	}
}

type recorder struct{ keys *[]string }

func (r recorder) Caller() take {
	return func(_ context.Context, key string) (bool, error) {
		*r.keys = append(*r.keys, key)
		return true, nil
	}
}
func (recorder) Close() {}
