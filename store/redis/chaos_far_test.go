package redis_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/network"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/prefetch"
)

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// ahead is a prefetch store before one on a server, with a monotonic clock of its own or, nil, the machine's.
func ahead(t *testing.T, addr string, clock func() time.Duration) *prefetch.Store {
	t.Helper()
	store, err := prefetch.New(prefetch.Config{Source: newStore(t, addr, nil), Clock: clock, DenyFor: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// shifted are the monotonic clocks of instances: they were started at other times, and two of them
// on machines that are said to be 30 s and hours apart.
func shifted() []func() time.Duration {
	born := time.Now()
	var clocks []func() time.Duration
	for _, off := range []time.Duration{time.Second, 30 * time.Second, 7 * time.Hour, 9000 * time.Hour} {
		clocks = append(clocks, func() time.Duration { return off + time.Since(born) })
	}
	return clocks
}

// TestClocksApart: instances whose clocks are 30 s and hours apart, and that ask by turns, are
// told what one instance is told that asks alone.
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
					t.Errorf("request %d: %v (%v, %d left), want %v (%v, %d)", n, got.Verdict, got.Reason, got.Remaining,
						want.Verdict, want.Reason, want.Remaining)
				}
				if d := got.At.Sub(want.At).Abs(); d > patience {
					t.Errorf("request %d was decided %v away from the other", n, d)
				}
			}
		})
	}
}

// TestClocksApartAhead: the same instances take units ahead of need, as fast as they can. By the
// server's clock no window holds more than its limit.
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
		t.Errorf("%d units in one window of %d", most, count)
	}
	if len(b.at) < 2*count {
		t.Errorf("%d units were admitted in four windows of %d", len(b.at), count)
	}
	t.Logf("%d decisions, %d admitted, at most %d in one window of %d", len(b.took), len(b.at), b.most(per), count)
}

// busy is a number of instances that ask for one key as fast as they are answered.
type busy struct {
	stop sync.Once
	end  chan struct{}
	all  sync.WaitGroup

	mu    sync.Mutex
	at    []headgate.Instant // of what was admitted; under mu
	took  []time.Duration    // of all decisions; under mu
	fails int                // under mu
	fault error              // under mu
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
		took := time.Since(began)
		b.mu.Lock()
		b.took = append(b.took, took)
		switch {
		case err != nil:
			b.fails, b.fault = b.fails+1, err
		case d.Verdict == headgate.Allow:
			b.at = append(b.at, d.At)
		}
		b.mu.Unlock()
	}
}

// until lets them work for a time, and ends them.
func (b *busy) until(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
	b.stop.Do(func() { close(b.end) })
	b.all.Wait()
}

// most gives the most units within any window of per.
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

// local is the part of the decisions that took less than d.
func (b *busy) local(d time.Duration) float64 {
	n := 0
	for _, took := range b.took {
		if took < d {
			n++
		}
	}
	return float64(n) / float64(len(b.took))
}

// TestLongDistance: three data centres share one server that is 100 ms away, there and back. To ask
// it for each decision costs as much each time; with units taken ahead most decisions are
// made where they are asked for. By the server's clock no window holds more than the limit.
func TestLongDistance(t *testing.T) {
	const count, per, oneWay = 3000, time.Second, 50 * time.Millisecond
	for _, c := range []struct {
		name  string
		hold  time.Duration
		local bool
	}{{"asked", 0, false}, {"ahead", 500 * time.Millisecond, true}} {
		t.Run(c.name, func(t *testing.T) {
			server := testserver.Start(t)
			p := headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: count, Per: per}, Hold: c.hold}
			var b busy
			for range 3 {
				way := network.New(t, server.Addr)
				way.Latency(oneWay, oneWay, 0)
				store := ahead(t, way.Addr, nil)
				until(t, "a first answer", func() bool {
					_, err := take(store, prepare(t, store, forever(headgate.TokenBucket, 100)), "first", patience)
					return err == nil
				})
				b.start(t, store, p, 4)
			}
			b.until(t, 3*time.Second)
			if most := b.most(per); most > count {
				t.Errorf("%d units in one window of %d", most, count)
			}
			local := b.local(oneWay)
			if c.local && local < 0.75 || !c.local && local > 0 {
				t.Errorf("%.3f of the decisions took less than one way", local)
			}
			if b.fails > len(b.took)/20 {
				t.Errorf("%d of %d decisions failed, one with %v", b.fails, len(b.took), b.fault)
			}
			t.Logf("%d decisions, %d admitted, %d failed; %.4f of them local; p50 %v, p99 %v", len(b.took), len(b.at), b.fails, local,
				part(b.took, 0.5), part(b.took, 0.99))
		})
	}
}

// part gives the value that a part of all does not exceed.
func part(all []time.Duration, p float64) time.Duration {
	slices.Sort(all)
	return all[min(int(p*float64(len(all))), len(all)-1)]
}
