package acceptance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// version is one version of a limit in a configuration.
type version struct {
	algorithm, limit, extra string
	// count units are admitted in per, and room units at once
	count, room int64
	per         time.Duration
}

// versions are two versions of a limit in use on one Redis. With another algorithm or period,
// they count separately.
type versions struct {
	name  string
	both  [2]version
	apart bool
}

// token gives a token bucket with a rate per second, and with its own burst if that is not 0.
func token(count, burst int64) version {
	v := version{algorithm: "token_bucket", limit: fmt.Sprintf("%d/s", count), count: count, room: count, per: time.Second}
	if burst > 0 {
		v.extra, v.room = fmt.Sprintf("burst: %d", burst), burst
	}
	return v
}

// window gives a window algorithm, with a number of sub-windows if that is not 0.
func window(algorithm string, count int64, period string, per time.Duration, n int) version {
	v := version{algorithm: algorithm, limit: fmt.Sprintf("%d/%s", count, period), count: count, room: count, per: per}
	if n > 0 {
		v.extra = fmt.Sprintf("sub_windows: %d", n)
	}
	return v
}

func versionPairs() []versions {
	sliding := window("sliding_window", 100, "s", time.Second, 10)
	return []versions{
		{"token_bucket 100 and 1000", [2]version{token(100, 0), token(1000, 0)}, false},
		{"sliding_window N 10 and 5", [2]version{sliding, window("sliding_window", 100, "s", time.Second, 5)}, false},
		{"token_bucket and sliding_window", [2]version{token(100, 0), sliding}, true},
		{"token_bucket 100 and 120", [2]version{token(100, 0), token(120, 0)}, false},
		{"burst 10 and 20", [2]version{token(100, 10), token(100, 20)}, false},
		{"sliding_window 100 and 120", [2]version{sliding, window("sliding_window", 120, "s", time.Second, 10)}, false},
		{"sliding_window 100/s and 200/2s", [2]version{sliding, window("sliding_window", 200, "2s", 2*time.Second, 10)}, true},
		{"token_bucket and fixed_window", [2]version{token(100, 0), window("fixed_window", 100, "s", time.Second, 0)}, true},
		{
			"fixed_window 100/s and 6000/m",
			[2]version{window("fixed_window", 100, "s", time.Second, 0), window("fixed_window", 6000, "m", time.Minute, 0)},
			true,
		},
	}
}

// TestTwoVersionsThroughProxies: two proxies with two versions of one limit take from one Redis
// without pauses. By its clock, no interval has more units than the more generous version
// admits, plus a Burst or Count. For versions that count separately, the bound is their sum. In
// total, at least the units of the stricter version are admitted.
// TestSoakTwoVersionsThroughProxies has all pairs.
func TestTwoVersionsThroughProxies(t *testing.T) {
	for _, v := range versionPairs()[:3] {
		t.Run(v.name, func(t *testing.T) { v.play(t, 2*time.Second) })
	}
}

func (v versions) play(t *testing.T, during time.Duration) {
	t.Helper()
	server := testserver.Start(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(upstream.Close)
	f := &fleet{}
	for i, v1 := range v.both {
		path := filepath.Join(t.TempDir(), fmt.Sprint("access", i, ".log"))
		text := fmt.Sprintf(sharedConfiguration, "redis://"+server.Addr, "off", path, v1.algorithm, v1.limit, 1)
		text = strings.Replace(text, "    cost: 1\n", "    cost: 1\n    "+v1.extra+"\n", 1)
		f.logs, f.instances = append(f.logs, path), append(f.instances, start(t, text, upstream.URL))
	}
	f.hammer(t, len(f.instances), during)
	v.check(t, f.admitted(t))
}

// check compares every interval with the upper bound, and the whole time with the lower bound.
func (v versions) check(t *testing.T, at []int64) {
	t.Helper()
	if len(at) == 0 {
		t.Fatal("nothing was admitted")
	}
	for i := range at {
		for j := i; j < len(at); {
			n, most := int64(j-i+1), v.bound(at[i], at[j])
			if n > most {
				t.Fatalf("%d admitted in %d µs, more than %d", n, at[j]-at[i], most)
			}
			j += int(most-n) + 1 // The bound never falls, so it holds for all intervals in between.
		}
	}
	elapsed := at[len(at)-1] - at[0]
	a, b := v.both[0], v.both[1]
	least := min(elapsed*a.count/a.per.Microseconds(), elapsed*b.count/b.per.Microseconds()) - max(a.room, b.room)
	t.Logf("%d admitted in %d µs", len(at), elapsed)
	if int64(len(at)) < least {
		t.Errorf("%d admitted in %d µs, less than %d", len(at), elapsed, least)
	}
}

// bound gives the most units that both versions admit between two times.
func (v versions) bound(from, to int64) int64 {
	a, b := v.both[0].admits(from, to), v.both[1].admits(from, to)
	constant := max(v.both[0].room, v.both[1].room)
	if v.apart {
		return a + b + constant
	}
	return max(a, b) + constant
}

// admits gives the most units that this version admits between two times.
func (v version) admits(from, to int64) int64 {
	per := v.per.Microseconds()
	if v.algorithm == "token_bucket" {
		return v.room + (to-from)*v.count/per
	}
	return v.count * (to/per - from/per + 1)
}
