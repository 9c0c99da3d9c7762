package redis_test

import (
	"sync"
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
			_ = store.Return(t.Context(), []headgate.Receipt{d.Receipt})
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

// TestNobodyWaitsForAnothersDialAfterACalm is the same after a time in which nobody asked: that
// the connection is lost, no call has told.
func TestNobodyWaitsForAnothersDialAfterACalm(t *testing.T) {
	link := network.New(t, testserver.Start(t).Addr)
	store := open(t, redis.Config{Client: rueidis.ClientOption{InitAddress: []string{link.Addr}}})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 100_000, Per: time.Hour}})
	var all sync.WaitGroup
	for range 20 { // Several at once make the client listen even when it has asked nothing.
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
	calm := time.Now()
	until(t, "the client to hear of it", func() bool { return time.Since(calm) > budget })
	all.Go(func() { _, _ = take(store, id, "k", time.Second) })
	until(t, "another connection", func() bool { return link.Accepted() > before })
	began := time.Now()
	if _, err := take(store, id, "k", budget); err == nil {
		t.Error("a silent server has answered")
	}
	if took := time.Since(began); took > 4*budget {
		t.Errorf("a decision with a budget of %v took %v", budget, took)
	}
	all.Wait()
}

// TestNothingIsSentForThoseWhoLeft: callers who left while a connection was being made are
// counted nowhere once it is there: nothing of theirs had been sent, and nobody was let pass.
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
		t.Fatal("a silent server has answered")
	}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if _, err := take(store, id, "k", 20*time.Millisecond); err == nil {
				t.Error("a silent server has answered")
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
	calm := time.Now()
	until(t, "what may still be on its way", func() bool { return time.Since(calm) > 200*time.Millisecond })
	d, err := take(store, id, "k", patience)
	if err != nil {
		t.Fatal(err)
	}
	if ghosts := limit - 2 - d.Remaining; ghosts > 0 {
		t.Errorf("%d units were counted for callers who had left before there was a connection", ghosts)
	}
}
