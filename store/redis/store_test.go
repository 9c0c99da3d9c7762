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
	}, storetest.Without(headgate.LeakyBucket, headgate.FixedWindow, headgate.SlidingWindow, headgate.Ban))
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

func newStore(tb testing.TB, c redis.Config) *redis.Store {
	tb.Helper()
	store, err := redis.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return store
}

// flush empties the server, so that each store of the suite is a new one.
func flush(tb testing.TB, client rueidis.Client) {
	tb.Helper()
	if err := client.Do(tb.Context(), client.B().Flushall().Build()).Error(); err != nil {
		tb.Fatal(err)
	}
}
