package redis_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
	"github.com/headgate/headgate/store/storetest"
)

// TestStore checks the contract against a real server.
func TestStore(t *testing.T) {
	addr := testserver.Start(t).Addr
	client := newClient(t, addr)
	storetest.Run(t, func(t *testing.T, clock *storetest.Clock) headgate.Store {
		t.Helper()
		flush(t, client)
		return open(t, redis.Config{Client: rueidis.ClientOption{InitAddress: []string{addr}}, Timeout: patience, Clock: clock.Now})
	})
}

// TestStoreOnCluster checks the contract on a real cluster, with keys in all slots and in a few
// slots.
func TestStoreOnCluster(t *testing.T) {
	cluster := testserver.StartCluster(t, 3, 0)
	t.Run("wrong clocks", func(t *testing.T) {
		testWrongClocks(t, redis.Config{Kind: redis.Cluster, Client: rueidis.ClientOption{InitAddress: cluster.Addrs()}, Timeout: patience})
	})
	var clients []rueidis.Client
	for _, node := range cluster.Nodes {
		clients = append(clients, newClient(t, node.Addr))
	}
	for name, slots := range map[string]int{"16384 slots": 0, "16 slots": 16} {
		if slots == 0 && race.Fewer(2, 1) == 1 {
			continue // `make test` runs both.
		}
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T, clock *storetest.Clock) headgate.Store {
				t.Helper()
				for _, client := range clients {
					flush(t, client)
				}
				return open(t, redis.Config{
					Kind: redis.Cluster, Client: rueidis.ClientOption{InitAddress: cluster.Addrs()}, Slots: slots, Timeout: patience, Clock: clock.Now,
				})
			}, storetest.Apart())
		})
	}
}

func newClient(tb testing.TB, addr string) rueidis.Client {
	tb.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	return client
}

// newStore opens a store on one server. A nil clock is the server's clock.
func newStore(tb testing.TB, addr string, clock func() headgate.Instant) *redis.Store {
	tb.Helper()
	return open(tb, redis.Config{Client: rueidis.ClientOption{InitAddress: []string{addr}}, Clock: clock})
}

func open(tb testing.TB, c redis.Config) *redis.Store {
	tb.Helper()
	store, err := redis.Open(c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(store.Close)
	return store
}

// flush empties the server, so that each store of the suite starts without keys.
func flush(tb testing.TB, client rueidis.Client) {
	tb.Helper()
	if err := client.Do(tb.Context(), client.B().Flushall().Build()).Error(); err != nil {
		tb.Fatal(err)
	}
}

func prepare(tb testing.TB, s headgate.Store, p headgate.Policy) headgate.PolicyID {
	tb.Helper()
	id, err := s.Prepare(p)
	if err != nil {
		tb.Fatal(err)
	}
	return id
}

// patience is the time after which a test fails when an expected event does not happen.
const patience = 20 * time.Second

// until waits for ok, and fails the test after patience.
func until(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	end := time.After(patience)
	for !ok() {
		select {
		case <-end:
			tb.Fatalf("timed out waiting for %s after %v", what, patience)
		case <-time.After(time.Millisecond):
		}
	}
}

// take decides one Op of one unit within d.
func take(s headgate.Store, id headgate.PolicyID, key string, d time.Duration) (headgate.Decision, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var decisions [1]headgate.Decision
	err := s.Apply(ctx, []headgate.Op{{Key: key, Policy: id, Cost: 1}}, decisions[:])
	return decisions[0], err
}
