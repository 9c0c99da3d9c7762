package split_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/store/split"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
	"github.com/headgate/headgate/store/storetest"
)

// TestStoreOnRedis runs the contract on two Redis servers.
func TestStoreOnRedis(t *testing.T) {
	servers := [2]*testserver.Server{testserver.Start(t), testserver.Start(t)}
	storetest.Run(t, func(t *testing.T, clock *storetest.Clock) headgate.Store {
		t.Helper()
		var stores [2]prefetch.Source
		for i, server := range servers {
			if _, err := server.Do("FLUSHALL"); err != nil {
				t.Fatal(err)
			}
			own, err := redis.Open(redis.Config{
				Client: rueidis.ClientOption{InitAddress: []string{server.Addr}}, Clock: clock.Now, Timeout: 10 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(own.Close)
			stores[i] = own
		}
		return newSplit(t, stores[0], stores[1], clock.Now)
	}, storetest.Apart())
}

func newSplit(tb testing.TB, main, perSecond prefetch.Source, clock func() headgate.Instant) *split.Store {
	tb.Helper()
	s, err := split.New(split.Config{Main: main, PerSecond: perSecond, Clock: clock})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
