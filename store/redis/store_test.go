package redis_test

import (
	"testing"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
	"github.com/headgate/headgate/store/storetest"
)

// TestStore is the contract, against a real server.
func TestStore(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	storetest.Run(t, func(t *testing.T, clock *storetest.Clock) headgate.Store {
		t.Helper()
		flush(t, client)
		return newStore(t, redis.Config{Client: client, Clock: clock.Now})
	}, storetest.Without(headgate.LeakyBucket, headgate.FixedWindow, headgate.SlidingWindow))
}

func newClient(t testing.TB, addr string) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func newStore(t testing.TB, c redis.Config) *redis.Store {
	t.Helper()
	store, err := redis.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// flush empties the server, so that each store of the suite is a new one.
func flush(t testing.TB, client rueidis.Client) {
	t.Helper()
	if err := client.Do(t.Context(), client.B().Flushall().Build()).Error(); err != nil {
		t.Fatal(err)
	}
}
