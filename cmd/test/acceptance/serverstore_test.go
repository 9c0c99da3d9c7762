package acceptance

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// outageBounds are the server's store_timeout, the most time for 99% of the calls without Redis, and the most time from its return
// until no call fails.
type outageBounds struct{ timeout, calls, recovery time.Duration }

// busyMachine is for a busy machine, which may hold up a call for longer than 100 ms while Redis is there.
var busyMachine = outageBounds{500 * time.Millisecond, patience, patience}

// absentRedis takes the address of Redis and the store_timeout. The domain has the default fallback, error.
const absentRedis = `version: 1
store: redis://%s
store_timeout: %s
rules: []
server: {grpc: "127.0.0.1:0", http: "127.0.0.1:0"}
domains:
  shop:
    descriptors:
    - {key: user, limits: 1000000000/365d}
    - {key: user, value: few*, limits: 20/365d}
` + adminAnywhere

// TestServerWithoutRedis takes Redis away under load. First the process ends, and returns without keys.
// Then it stops to answer, and continues. TestSoakServerWithoutRedis has the bounds in time.
func TestServerWithoutRedis(t *testing.T) {
	t.Parallel()
	withoutRedis(t, 2*busyMachine.timeout, busyMachine)
}

// absence is a way in which Redis is unreachable.
type absence struct {
	name       string
	begin, end func()
	loses      bool // Redis loses its keys
	bounds     outageBounds
}

// withoutRedis takes Redis away for a time, in two ways.
func withoutRedis(t *testing.T, lasts time.Duration, bounds outageBounds) {
	t.Helper()
	redis := testserver.Start(t)
	i := launchServer(t, file(t, fmt.Sprintf(absentRedis, redis.Addr, bounds.timeout)))
	for _, o := range []absence{
		{"ended", redis.Kill, redis.Restart, true, bounds},
		{"silent", redis.Pause, redis.Resume, false, bounds},
	} {
		load := serverLoad{connections: 4, workers: 16, pause: 2 * time.Millisecond, request: func(worker, _ int) *ratelimitv3.RateLimitRequest {
			return user(fmt.Sprintf("%s-%d", o.name, worker))
		}}
		o.meet(t, i, &load, i.GRPC, lasts)
		exactly(t, i, "few-"+o.name)
	}
}

func (o absence) meet(t *testing.T, i *instance, load *serverLoad, at string, lasts time.Duration) {
	t.Helper()
	var before, during usage
	var gone, returning, back, steady time.Time
	client := rateLimitClient(t, i.GRPC)
	all := load.run(t, at, func() {
		before = i.usage(t, 300*time.Millisecond)
		gone = time.Now()
		o.begin()
		during = i.usage(t, lasts)
		returning = time.Now()
		o.end()
		back = time.Now()
		since := time.Now() // of decisions. A call from before the end can still time out, and open the breaker.
		eventually(t, "decisions for longer than store_timeout", func() bool {
			if _, err := client.ShouldRateLimit(t.Context(), user("probe")); err != nil {
				since = time.Now()
			}
			return time.Since(since) > o.bounds.timeout+100*time.Millisecond
		})
		steady = time.Now()
		<-time.After(200 * time.Millisecond)
	})
	t.Logf("Redis %s: before %v, during %v", o.name, before, during)
	if during.goroutines > before.goroutines+40 || during.resident > before.resident+64<<20 {
		t.Errorf("Redis %s: %v, before %v", o.name, during, before)
	}
	o.judge(t, i, load.workers, all, gone, returning, back, steady)
}

// judge checks the codes and times of the calls, and the counts of the workers' keys.
func (o absence) judge(t *testing.T, i *instance, workers int, all []serverCall, gone, returning, back, steady time.Time) {
	t.Helper()
	var failed []serverCall
	known, most := make([]int, workers), make([]int, workers)
	var recovered time.Duration
	var wrong []string
	for _, c := range all {
		ended := c.began.Add(c.elapsed)
		kept := !o.loses || ended.After(returning) // A server that starts again may decide before end returns.
		switch {
		case c.code == codes.OK && ended.Before(gone), c.code == codes.OK && c.began.After(back):
			if kept {
				known[c.worker]++
				most[c.worker]++
			}
		case c.code == codes.OK:
			if kept {
				most[c.worker]++
			}
		case c.code != codes.Unavailable, ended.Before(gone), c.began.After(steady):
			wrong = append(wrong, fmt.Sprintf("%v of a call %v after the begin and %v after the end", c.code, c.began.Sub(gone), c.began.Sub(back)))
		default:
			failed = append(failed, c)
			recovered = max(recovered, ended.Sub(back))
			if kept {
				most[c.worker]++
			}
		}
	}
	if len(wrong) > 0 {
		t.Errorf("Redis %s: %d unexpected codes, the first is %s", o.name, len(wrong), wrong[0])
	}
	t.Logf("Redis %s: %d calls of %d get UNAVAILABLE, 99%% within %v, all within %v; the last one ends %v after the return",
		o.name, len(failed), len(all), slowest(failed, 99), slowest(failed, 100), recovered.Round(time.Millisecond))
	if recovered > o.bounds.recovery {
		t.Errorf("Redis %s: calls fail until %v after the return, want %v at most", o.name, recovered, o.bounds.recovery)
	}
	if len(failed) == 0 || slowest(failed, 99) > o.bounds.calls {
		t.Errorf("Redis %s: %d calls failed, 99%% within %v", o.name, len(failed), slowest(failed, 99))
	}
	client := rateLimitClient(t, i.GRPC)
	for w := range workers {
		if n := hitsOf(t, client, fmt.Sprintf("%s-%d", o.name, w)); n < known[w] || n > most[w] {
			t.Errorf("Redis %s: worker %d has %d hits, want %d to %d", o.name, w, n, known[w], most[w])
		}
	}
}

// exactly makes 60 calls at the same time with a key that has a limit of 20. 20 of them are OK.
func exactly(t *testing.T, i *instance, key string) {
	t.Helper()
	client := rateLimitClient(t, i.GRPC)
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range 60 {
		all.Go(func() {
			answer, err := client.ShouldRateLimit(t.Context(), user(key))
			if err != nil {
				t.Errorf("after the outage: %v", err)
			}
			if answer.GetOverallCode() == ratelimitv3.RateLimitResponse_OK {
				admitted.Add(1)
			}
		})
	}
	all.Wait()
	if n := admitted.Load(); n != 20 {
		t.Errorf("%d calls of 60 are OK, want the limit, 20", n)
	}
}

// TestServerStartsWithoutRedis starts the server before its Redis. It serves, and it is unhealthy until
// Redis answers.
func TestServerStartsWithoutRedis(t *testing.T) {
	t.Parallel()
	redis := testserver.Start(t)
	redis.Kill()
	i := launchServer(t, file(t, fmt.Sprintf(absentRedis, redis.Addr, busyMachine.timeout)))
	health := func() int { got, _ := pageOf(t, "http://"+i.HTTP+"/healthcheck"); return got }
	if got := health(); got != http.StatusInternalServerError {
		t.Errorf("without Redis, healthcheck answers %d, want 500", got)
	}
	if _, err := rateLimitClient(t, i.GRPC).ShouldRateLimit(t.Context(), user("a")); status.Code(err) != codes.Unavailable {
		t.Errorf("without Redis, a call gets %v, want UNAVAILABLE", err)
	}
	redis.Restart()
	back := time.Now()
	eventually(t, "the health", func() bool { return health() == http.StatusOK })
	t.Logf("healthy %v after Redis", time.Since(back).Round(time.Millisecond))
	exactly(t, i, "few")
}
