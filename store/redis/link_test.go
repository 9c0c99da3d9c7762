package redis_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/breaker"
	"github.com/headgate/headgate/internal/testkit/network"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// TestConnectsAgainOverALongWay: over a slow network, a decision takes one round trip and a new
// connection takes three. A timeout that is long enough for one decision must also survive the
// loss of a connection.
func TestConnectsAgainOverALongWay(t *testing.T) {
	link := network.New(t, testserver.Start(t).Addr)
	const trip = 60 * time.Millisecond
	link.Latency(trip/2, trip/2, 0)
	store := open(t, redis.Config{
		Client:  rueidis.ClientOption{InitAddress: []string{link.Addr}},
		Breaker: breaker.Config{Failures: 3, Probe: 50 * time.Millisecond, MaxProbe: 200 * time.Millisecond},
	})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Hour}})
	if _, err := take(store, id, "k", patience); err != nil {
		t.Fatal(err)
	}
	until(t, "a decision within two trips", func() bool { _, err := take(store, id, "k", 2*trip); return err == nil })
	link.Reset()
	var err error
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // sleep: it polls, and there is a deadline
		if _, err = take(store, id, "k", 2*trip); err == nil {
			return
		}
	}
	t.Errorf("5 s after its only connection was lost, the store still fails: %v", err)
}

// TestCloseIsNoFaultOfTheServer: Close cancels the first connection, and no change says that the server does not answer.
func TestCloseIsNoFaultOfTheServer(t *testing.T) {
	reported, dialed, ended := &changes{}, make(chan struct{}), make(chan struct{})
	store, err := redis.Open(redis.Config{Changed: reported.note, Client: rueidis.ClientOption{
		InitAddress: []string{"127.0.0.1:1"},
		Dialer:      net.Dialer{Timeout: patience},
		DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			close(dialed)
			<-ctx.Done()
			defer close(ended)
			return nil, ctx.Err()
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	<-dialed
	store.Close() // It waits until the attempt has ended.
	<-ended
	if got := reported.states(); len(got) != 0 {
		t.Errorf("got the changes %v", got)
	}
}

// lateOnBusyMachine is less than the time of a dial for which another caller waits.
const lateOnBusyMachine = 800 * time.Millisecond

// TestNobodyWaitsForAnothersDial: one caller with a late deadline connects to a silent server.
// Another caller still keeps its own deadline.
func TestNobodyWaitsForAnothersDial(t *testing.T) {
	link := network.New(t, testserver.Start(t).Addr)
	store := open(t, redis.Config{Client: rueidis.ClientOption{InitAddress: []string{link.Addr}}})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Hour}})
	d, err := take(store, id, "k", patience)
	if err != nil {
		t.Fatal(err)
	}
	link.HalfOpen()
	link.Reset()
	before := link.Accepted()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		for link.Accepted() == before { // The first call finds the lost connection.
			_ = store.Return(t.Context(), []headgate.Receipt{d.Receipt})
		}
	}()
	defer func() { <-returned }()
	until(t, "another connection", func() bool { return link.Accepted() > before })
	const budget = 50 * time.Millisecond
	began := time.Now()
	if _, err := take(store, id, "k", budget); err == nil {
		t.Error("a decision succeeded with a silent server")
	}
	if elapsed := time.Since(began); elapsed > lateOnBusyMachine {
		t.Errorf("a decision with a timeout of %v took %v", budget, elapsed)
	}
}

// TestNobodyWaitsForAnothersDialAfterACalm is the same test after an idle time, in which no call
// noticed the lost connection.
func TestNobodyWaitsForAnothersDialAfterACalm(t *testing.T) {
	link := network.New(t, testserver.Start(t).Addr)
	store := open(t, redis.Config{Client: rueidis.ClientOption{InitAddress: []string{link.Addr}}})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 100_000, Per: time.Hour}})
	var all sync.WaitGroup
	for range 20 { // Several concurrent calls make the client read from an idle connection.
		all.Go(func() {
			for range 20 {
				if _, err := take(store, id, "k", patience); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	link.HalfOpen()
	link.Reset()
	before := link.Accepted()
	const budget = 50 * time.Millisecond
	start := time.Now()
	until(t, "time for the client to notice the lost connection", func() bool { return time.Since(start) > budget })
	all.Go(func() { _, _ = take(store, id, "k", time.Second) })
	until(t, "another connection", func() bool { return link.Accepted() > before })
	began := time.Now()
	if _, err := take(store, id, "k", budget); err == nil {
		t.Error("a decision succeeded with a silent server")
	}
	if elapsed := time.Since(began); elapsed > lateOnBusyMachine {
		t.Errorf("a decision with a timeout of %v took %v", budget, elapsed)
	}
	all.Wait()
}

// TestNothingIsSentForThoseWhoLeft: callers leave while a connection is being made. Their
// calls are not sent or counted later, because none of their requests passed.
func TestNothingIsSentForThoseWhoLeft(t *testing.T) {
	link := network.New(t, testserver.Start(t).Addr)
	store := open(t, redis.Config{Client: rueidis.ClientOption{InitAddress: []string{link.Addr}}})
	const limit = 1000
	id := prepare(t, store, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: limit, Per: 300 * 24 * time.Hour}})
	if _, err := take(store, id, "other", patience); err != nil {
		t.Fatal(err)
	}
	link.Reset()
	link.HalfOpen()
	if _, err := take(store, id, "other", 20*time.Millisecond); err == nil {
		t.Fatal("a decision succeeded with a silent server")
	}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if _, err := take(store, id, "k", 20*time.Millisecond); err == nil {
				t.Error("a decision succeeded with a silent server")
			}
		})
	}
	all.Wait()
	link.Heal()
	var d headgate.Decision
	until(t, "a decision", func() bool {
		var err error
		d, err = take(store, id, "k", patience)
		return err == nil
	})
	start := time.Now()
	until(t, "time for delayed calls to arrive", func() bool { return time.Since(start) > 200*time.Millisecond })
	d, err := take(store, id, "k", patience)
	if err != nil {
		t.Fatal(err)
	}
	if leaked := limit - 2 - d.Remaining; leaked > 0 {
		t.Errorf("%d units were counted for callers that left before the connection was made", leaked)
	}
}
