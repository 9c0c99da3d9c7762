package redis_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/network"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/breaker"
	"github.com/headgate/headgate/store/redis"
)

// TestConnectsAgainOverALongWay: a decision over a long way takes one trip, and a new
// connection three. A budget that is enough for the first is enough for good: to lose
// the connection once is no outage without end.
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
	t.Errorf("5 s after its only connection was lost, the store does not decide: %v", err)
}

// TestNobodyWaitsForAnothersDial: while one caller with time to spare connects to a server
// that says nothing, another keeps to his own deadline.
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
		for link.Accepted() == before { // The first call meets the connection that was lost.
			_ = store.Return(context.Background(), []headgate.Receipt{d.Receipt})
		}
	}()
	defer func() { <-returned }()
	until(t, "another connection", func() bool { return link.Accepted() > before })
	const budget = 50 * time.Millisecond
	began := time.Now()
	if _, err := take(store, id, "k", budget); err == nil {
		t.Error("a silent server has answered")
	}
	if took := time.Since(began); took > 4*budget {
		t.Errorf("a decision with a budget of %v took %v", budget, took)
	}
}
