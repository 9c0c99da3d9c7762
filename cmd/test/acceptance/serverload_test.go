package acceptance

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// uncounted is a limit that no test reaches. Its window is long, so that no test meets its end.
const uncounted = 1_000_000_000

// serverLoad is a load of calls on headgate server. Each worker makes one call after another, on the
// connections in turns. A failed call is repeated at once on the next connection, up to retries times.
type serverLoad struct {
	connections, workers, retries int
	pause                         time.Duration
	// request is call n of a worker, for Envoy's service.
	request func(worker, n int) *ratelimitv3.RateLimitRequest
	// open opens a connection in place of one of Envoy's service.
	open func(t *testing.T, at string) asker
}

// asker makes call n of a worker. Its error has a code of gRPC. attempt is 0, or that of a repeated call.
type asker func(ctx context.Context, worker, n, attempt int) error

// serverCall is a finished call.
type serverCall struct {
	worker   int
	began    time.Time
	elapsed  time.Duration
	code     codes.Code // of the last attempt
	attempts int
}

// user is a request with one hit of a key in the domain shop.
func user(value string) *ratelimitv3.RateLimitRequest {
	return &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: []*commonv3.RateLimitDescriptor{
		{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "user", Value: value}}},
	}}
}

// userOf is a request of serverLoad with a key for each worker.
func userOf(worker, _ int) *ratelimitv3.RateLimitRequest { return user(fmt.Sprint("worker-", worker)) }

// run calls until during returns, and gives all calls in the order of their start.
func (l serverLoad) run(t *testing.T, at string, during func()) []serverCall {
	t.Helper()
	open := l.open
	if open == nil {
		open = l.openEnvoy
	}
	clients := make([]asker, l.connections)
	for n := range clients {
		clients[n] = open(t, at)
	}
	calls := make([][]serverCall, l.workers)
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for w := range l.workers {
		workers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(l.pause):
				}
				calls[w] = append(calls[w], l.call(t.Context(), clients, w, n))
			}
		})
	}
	func() {
		defer workers.Wait()
		defer close(stop)
		during()
	}()
	all := slices.Concat(calls...)
	slices.SortFunc(all, func(a, b serverCall) int { return a.began.Compare(b.began) })
	return all
}

// openEnvoy opens a connection to Envoy's service.
func (l serverLoad) openEnvoy(t *testing.T, at string) asker {
	t.Helper()
	client := rateLimitClient(t, at)
	return func(ctx context.Context, worker, n, _ int) error {
		_, err := client.ShouldRateLimit(ctx, l.request(worker, n))
		return err
	}
}

func (l serverLoad) call(ctx context.Context, clients []asker, worker, n int) serverCall {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := serverCall{worker: worker, began: time.Now()}
	for {
		err := clients[(worker+n+c.attempts)%len(clients)](ctx, worker, n, c.attempts)
		c.attempts++
		c.code, c.elapsed = status.Code(err), time.Since(c.began)
		if err == nil || c.attempts > l.retries {
			return c
		}
	}
}

// succeed checks that no call failed. It gives the number of calls that needed a second attempt.
func succeed(t *testing.T, all []serverCall) (repeated int) {
	t.Helper()
	failed := map[codes.Code]int{}
	for _, c := range all {
		if c.code != codes.OK {
			failed[c.code]++
		}
		if c.attempts > 1 {
			repeated++
		}
	}
	if len(failed) > 0 || len(all) == 0 {
		t.Errorf("of %d calls, these failed: %v", len(all), failed)
	}
	return repeated
}

// slowest gives the time within which p percent of the calls ended.
func slowest(all []serverCall, p float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	durations := make([]time.Duration, 0, len(all))
	for _, c := range all {
		durations = append(durations, c.elapsed)
	}
	slices.Sort(durations)
	return durations[min(len(durations)-1, int(float64(len(durations))*p/100))].Round(10 * time.Microsecond)
}

// hitsOf gives the hits of a key that the store has.
func hitsOf(t *testing.T, client ratelimitv3.RateLimitServiceClient, key string) int {
	t.Helper()
	answer, err := client.ShouldRateLimit(t.Context(), user(key))
	if err != nil {
		t.Fatal(err)
	}
	return uncounted - int(answer.GetStatuses()[0].GetLimitRemaining()) - 1 // The query itself is a hit.
}

// usage is what a process uses at most in some time.
type usage struct {
	goroutines, files int
	resident          int64 // bytes
}

func (u usage) String() string {
	return fmt.Sprintf("%d goroutines, %d files, %d MiB", u.goroutines, u.files, u.resident>>20)
}

// usage looks at the process for a time, and gives the largest values.
func (i *instance) usage(t *testing.T, lasts time.Duration) usage {
	t.Helper()
	return usageUntil(t, i, time.After(lasts))
}

// usageUntil looks at the process until a channel has a value or is closed.
func usageUntil[T any](t *testing.T, i *instance, end <-chan T) usage {
	t.Helper()
	for most := i.uses(t); ; {
		select {
		case <-end:
			return most
		case <-time.After(20 * time.Millisecond):
		}
		now := i.uses(t)
		most.goroutines, most.files = max(most.goroutines, now.goroutines), max(most.files, now.files)
		most.resident = max(most.resident, now.resident)
	}
}

// uses gives what the process uses now.
func (i *instance) uses(t *testing.T) usage {
	t.Helper()
	pid := i.command.Process.Pid
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return usage{int(metric(t, i, "go_goroutines")), len(files), residentMemory(t, pid, "VmRSS:")}
}
