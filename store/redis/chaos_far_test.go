package redis_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/testkit/network"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// ahead opens a prefetch store before a store on a server. A nil clock is the machine's
// monotonic clock.
func ahead(t *testing.T, addr string, clock func() time.Duration) *prefetch.Store {
	t.Helper()
	store, err := prefetch.New(prefetch.Config{Source: newStore(t, addr, nil), Clock: clock, DenyFor: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// shifted gives the monotonic clocks of four instances. The clocks are ahead of time.Since by one
// second up to 9000 hours.
func shifted() []func() time.Duration {
	born := time.Now()
	var clocks []func() time.Duration
	for _, off := range []time.Duration{time.Second, 30 * time.Second, 7 * time.Hour, 9000 * time.Hour} {
		clocks = append(clocks, func() time.Duration { return off + time.Since(born) })
	}
	return clocks
}

// TestClocksApart: instances take turns, and their clocks differ by up to 9000 hours. They get the
// same decisions as a single instance.
func TestClocksApart(t *testing.T) {
	server := testserver.Start(t)
	for _, a := range headgate.Algorithms() {
		t.Run(a.String(), func(t *testing.T) {
			p := forever(a, 20)
			if a == headgate.SlidingWindow {
				p.SubWindows = 4
			}
			one := ahead(t, server.Addr, nil)
			alone := prepare(t, one, p)
			var many []*prefetch.Store
			for _, clock := range shifted() {
				many = append(many, ahead(t, server.Addr, clock))
			}
			for n := range 30 {
				want, err := take(one, alone, "alone", patience)
				if err != nil {
					t.Fatal(err)
				}
				store := many[n%len(many)]
				got, err := take(store, prepare(t, store, p), "together", patience)
				if err != nil {
					t.Fatal(err)
				}
				if got.Verdict != want.Verdict || got.Remaining != want.Remaining || got.Reason != want.Reason {
					t.Errorf("request %d: got %v (%v, %d remaining), want %v (%v, %d remaining)", n, got.Verdict, got.Reason, got.Remaining,
						want.Verdict, want.Reason, want.Remaining)
				}
				if d := got.At.Sub(want.At).Abs(); d > patience {
					t.Errorf("request %d: the two decisions have times %v apart", n, d)
				}
			}
		})
	}
}

// TestClocksApartAhead: the same instances prefetch units as fast as they can. By the server's
// clock, no window has more units than its limit.
func TestClocksApartAhead(t *testing.T) {
	server := testserver.Start(t)
	const count, per = 200, 500 * time.Millisecond
	p := headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: count, Per: per}, Hold: 20 * time.Millisecond}
	var b busy
	for _, clock := range shifted() {
		b.start(t, ahead(t, server.Addr, clock), p, 3)
	}
	b.until(t, 4*per)
	if most := b.most(per); most > count {
		t.Errorf("%d units in one window, want at most %d", most, count)
	}
	if len(b.at) < 2*count {
		t.Errorf("%d units admitted in four windows with a limit of %d, want at least twice the limit", len(b.at), count)
	}
	t.Logf("%d decisions, %d units admitted, at most %d in one window with a limit of %d", len(b.durations), len(b.at), b.most(per), count)
}

// busy is a number of instances that each take units of one key as fast as they get decisions.
type busy struct {
	stop sync.Once
	end  chan struct{}
	all  sync.WaitGroup

	mu        sync.Mutex
	at        []headgate.Instant // times of allowed units; guarded by mu
	durations []time.Duration    // durations of all decisions; guarded by mu
	fails     int                // guarded by mu
	fault     error              // guarded by mu
}

func (b *busy) start(t *testing.T, store headgate.Store, p headgate.Policy, workers int) {
	t.Helper()
	if b.end == nil {
		b.end = make(chan struct{})
	}
	id := prepare(t, store, p)
	for range workers {
		b.all.Go(func() { b.work(store, id) })
	}
}

func (b *busy) work(store headgate.Store, id headgate.PolicyID) {
	for {
		select {
		case <-b.end:
			return
		case <-time.After(time.Millisecond):
		}
		began := time.Now()
		d, err := take(store, id, "busy", 500*time.Millisecond)
		elapsed := time.Since(began)
		b.mu.Lock()
		b.durations = append(b.durations, elapsed)
		switch {
		case err != nil:
			b.fails, b.fault = b.fails+1, err
		case d.Verdict == headgate.Allow:
			b.at = append(b.at, d.At)
		}
		b.mu.Unlock()
	}
}

// until stops the instances after d.
func (b *busy) until(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
	b.stop.Do(func() { close(b.end) })
	b.all.Wait()
}

// most gives the largest number of units in any window of length per.
func (b *busy) most(per time.Duration) int {
	slices.Sort(b.at)
	most, from := 0, 0
	for to := range b.at {
		for b.at[to].Sub(b.at[from]) >= per {
			from++
		}
		most = max(most, to-from+1)
	}
	return most
}

// local gives the fraction of the decisions that took less than d.
func (b *busy) local(d time.Duration) float64 {
	n := 0
	for _, elapsed := range b.durations {
		if elapsed < d {
			n++
		}
	}
	return float64(n) / float64(len(b.durations))
}

// TestLongDistance: three data centres share one server with a round trip of 100 ms. Without
// prefetch, each decision takes one round trip. With prefetch, most decisions are local. By the
// server's clock, no window has more units than the limit.
func TestLongDistance(t *testing.T) {
	const count, per, oneWay = 3000, time.Second, 50 * time.Millisecond
	for _, c := range []struct {
		name  string
		hold  time.Duration
		local bool
	}{{"without prefetch", 0, false}, {"with prefetch", 500 * time.Millisecond, true}} {
		t.Run(c.name, func(t *testing.T) {
			server := testserver.Start(t)
			p := headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: count, Per: per}, Hold: c.hold}
			var b busy
			for range 3 {
				way := network.New(t, server.Addr)
				way.Latency(oneWay, oneWay, 0)
				store := ahead(t, way.Addr, nil)
				until(t, "a first decision", func() bool {
					_, err := take(store, prepare(t, store, forever(headgate.TokenBucket, 100)), "first", patience)
					return err == nil
				})
				b.start(t, store, p, 4)
			}
			b.until(t, 3*time.Second)
			if most := b.most(per); most > count {
				t.Errorf("%d units in one window, want at most %d", most, count)
			}
			local := b.local(oneWay)
			if c.local && local < 0.75 || !c.local && local > 0 {
				t.Errorf("%.3f of the decisions were local, want at least 0.75 with prefetch and 0 without", local)
			}
			if b.fails > len(b.durations)/20 {
				t.Errorf("%d of %d decisions failed, the last with: %v", b.fails, len(b.durations), b.fault)
			}
			t.Logf("%d decisions, %d units admitted, %d failures, %.4f local; p50 %v, p99 %v", len(b.durations), len(b.at), b.fails, local,
				quantile(b.durations, 0.5), quantile(b.durations, 0.99))
		})
	}
}

// quantile gives the p-quantile of all.
func quantile(all []time.Duration, p float64) time.Duration {
	slices.Sort(all)
	return all[min(int(p*float64(len(all))), len(all)-1)]
}
