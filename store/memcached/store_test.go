package memcached_test

import (
	"testing"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/store/memcached"
	"github.com/headgate/headgate/store/storetest"
)

// TestStore is the contract, against a real server. What Memcached cannot do is the
// sliding log, whose Prepare names what can.
func TestStore(t *testing.T) {
	server := testserver.Start(t)
	storetest.Run(t, func(t *testing.T, clock *storetest.Clock) headgate.Store {
		t.Helper()
		flush(t, server.Addr)
		return newStore(t, memcached.Config{Servers: []string{server.Addr}, Clock: clock.Now})
	}, storetest.Without(headgate.SlidingLog))
}

// TestStoreWithCounters is the contract when fixed windows are counted in counters.
// A counter is named by which period it is, so the stories of a clock that steps back are
// not its own: see TestCountersInstead.
func TestStoreWithCounters(t *testing.T) {
	server := testserver.Start(t)
	storetest.Run(t, func(t *testing.T, clock *storetest.Clock) headgate.Store {
		t.Helper()
		flush(t, server.Addr)
		return newStore(t, memcached.Config{Servers: []string{server.Addr}, Clock: clock.Now, Counters: true})
	}, storetest.Without(headgate.SlidingLog),
		storetest.Lacks("ClockBack", headgate.FixedWindow), storetest.Lacks("ClockStories", headgate.FixedWindow))
}
