package guard_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
)

// crowd has many clients of one key that wait for a while, leave, and come again.
type crowd struct {
	clients  int
	patience time.Duration
	rate     int64 // of the limit, per second
	seconds  int
	// instances share one store. Each has its own queue.
	instances int
}

// served is the result of a crowd.
type served struct {
	mu     sync.Mutex
	second []int // the number of requests that went in each second
	early  int   // requests beyond the limit up to that time
	total  int64
	late   []int // requests that went within 20 ms of their deadline
}

// TestCrowdThatLeaves: the demand for one key is forty times its limit. Clients wait for five seconds
// and leave. In every second, nine tenths of the limit are used by clients that still wait, and
// never more than the limit.
func TestCrowdThatLeaves(t *testing.T) {
	for _, algorithm := range []headgate.Algorithm{headgate.TokenBucket, headgate.LeakyBucket} {
		t.Run(algorithm.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := crowd{clients: 2000, patience: 5 * time.Second, rate: 50, seconds: race.Fewer(30, 10), instances: 1}
				c.expect(t, algorithm)
			})
		})
	}
}

// TestCrowdThatLeavesInstances is TestCrowdThatLeaves with three instances and one store. A departure
// of a request that left goes to the instance's next request.
func TestCrowdThatLeavesInstances(t *testing.T) {
	for _, algorithm := range []headgate.Algorithm{headgate.TokenBucket, headgate.LeakyBucket} {
		t.Run(algorithm.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := crowd{clients: 900, patience: 5 * time.Second, rate: 50, seconds: 30, instances: 3}
				c.expect(t, algorithm)
			})
		})
	}
}

func (c crowd) expect(t *testing.T, algorithm headgate.Algorithm) {
	t.Helper()
	all := c.guards(t, algorithm)
	got := c.run(t, all)
	for i, n := range got.second {
		if n*10 < int(c.rate)*9 {
			t.Errorf("in second %d %d went, want at least 90 %% of %d", i, n, c.rate)
		}
	}
	if got.early > 0 {
		t.Errorf("%d went before the limit admits them", got.early)
	}
	for _, g := range all {
		if n := g.Waiting("crowded"); n != 0 {
			t.Errorf("%d wait after all have gone or left", n)
		}
	}
	if sum(got.late)*10 > sum(got.second) {
		t.Errorf("%v went, of which %v were about to leave: want at most a tenth", got.second, got.late)
	}
	t.Logf("%v went, about to leave %v", got.second, got.late)
}

func sum(numbers []int) (all int) {
	for _, n := range numbers {
		all += n
	}
	return all
}

func (c crowd) guards(t *testing.T, algorithm headgate.Algorithm) []*guard.Guard {
	t.Helper()
	r := byClient(t, "crowded", "/p", headgate.Limit{Count: c.rate, Per: time.Second, Burst: c.rate})
	r.Policies[0].Algorithm = algorithm
	most := int(c.rate) * 10
	if algorithm == headgate.LeakyBucket {
		r.Policies[0].Limit.Burst = int64(most)
		r.Exceed.MaxWaiters = most
	} else {
		r.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: time.Minute, MaxWaiters: most}
	}
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	all := make([]*guard.Guard, c.instances)
	for i := range all {
		if all[i], err = guard.New(guard.Config{Rules: []guard.Rule{r}, Store: store}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func (c crowd) run(t *testing.T, instances []*guard.Guard) *served {
	t.Helper()
	got := &served{second: make([]int, c.seconds), late: make([]int, c.seconds)}
	began := time.Now()
	ends := began.Add(time.Duration(c.seconds) * time.Second)
	var all sync.WaitGroup
	for i := range c.clients {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 1))
			<-time.After(time.Duration(rnd.IntN(300)) * time.Millisecond)
			for time.Now().Before(ends) {
				c.request(t, instances[i%len(instances)], rnd, got, began)
			}
		})
	}
	all.Wait()
	return got
}

// request is one request of a client. It goes, leaves after its patience, or is refused and comes
// again some time later.
func (c crowd) request(t *testing.T, g *guard.Guard, rnd *rand.Rand, got *served, began time.Time) {
	t.Helper()
	var a guard.Answer
	if err := g.Decide(t.Context(), request("/p", "a"), &a); err != nil {
		t.Error(err)
	}
	if a.Verdict == headgate.Deny {
		<-time.After(time.Duration(rnd.IntN(1000)) * time.Millisecond)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), c.patience)
	defer cancel()
	if a.Verdict == headgate.Wait && g.Wait(ctx, &a) != nil {
		return
	}
	deadline, _ := ctx.Deadline()
	got.note(c, time.Since(began), time.Until(deadline))
	<-time.After(time.Duration(rnd.IntN(100)) * time.Millisecond)
}

func (s *served) note(c crowd, at, left time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total++
	if most := float64(c.rate) + at.Seconds()*float64(c.rate) + 1; float64(s.total) > most {
		s.early++
	}
	i := int(at / time.Second)
	if i >= len(s.second) {
		return
	}
	s.second[i]++
	if left < 20*time.Millisecond {
		s.late[i]++
	}
}

// TestSpareDeparturesOfAnInstance: all requests of one instance leave, no request follows there, and
// another instance has booked behind them. Their booked departures are lost, and no others. No
// request goes early.
func TestSpareDeparturesOfAnInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowd{rate: 50, instances: 2}
		all := c.guards(t, headgate.TokenBucket)
		ctx, leave := context.WithCancel(t.Context())
		var first, second sync.WaitGroup
		for range 50 {
			decide(t, all[0], request("/p", "a")) // These requests empty the bucket.
		}
		began := time.Now()
		c.wait(ctx, t, all[0], 100, &first, nil)
		went := make(chan time.Duration, 100)
		c.wait(t.Context(), t, all[1], 100, &second, func() { went <- time.Since(began) })
		leave()
		first.Wait()
		again := make(chan time.Duration, 50)
		c.wait(t.Context(), t, all[0], 50, &first, func() { again <- time.Since(began) })
		first.Wait()
		second.Wait()
		for n := range 50 {
			if at, want := <-again, time.Duration(n+1)*time.Second/50; at.Round(time.Millisecond) != want {
				t.Errorf("newcomer %d of the instance goes after %v, want %v: it takes a departure that was left", n, at, want)
			}
		}
		for n := range 100 {
			if at, want := <-went, time.Duration(100+n+1)*time.Second/50; at.Round(time.Millisecond) != want {
				t.Errorf("request %d of the other instance goes after %v, want %v", n, at, want)
			}
		}
	})
}

// wait makes n requests wait at an instance, and calls gone for each request that goes.
func (c crowd) wait(ctx context.Context, t *testing.T, g *guard.Guard, n int, all *sync.WaitGroup, gone func()) {
	t.Helper()
	for range n {
		a := decide(t, g, request("/p", "a"))
		if a.Verdict != headgate.Wait {
			t.Fatalf("the verdict is %v", a.Verdict)
		}
		all.Go(func() {
			if g.Wait(ctx, a) == nil && gone != nil {
				gone()
			}
		})
	}
}
