package memcached_test

import (
	"testing"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/store/memcached"
	"github.com/headgate/headgate/store/storetest"
)

// TestStore checks the contract against a real server. Memcached does not support the sliding
// log: its Prepare names an alternative.
func TestStore(t *testing.T) {
	server := testserver.Start(t)
	storetest.Run(t, func(t *testing.T, clock *storetest.Clock) headgate.Store {
		t.Helper()
		flush(t, server.Addr)
		return newStore(t, memcached.Config{Servers: []string{server.Addr}, Clock: clock.Now})
	}, storetest.Without(headgate.SlidingLog))
}

// TestStoreWithCounters checks the contract with fixed windows in counters. A counter belongs to
// one period, so the tests of a clock that steps back do not apply: see TestCountersInstead.
func TestStoreWithCounters(t *testing.T) {
	server := testserver.Start(t)
	storetest.Run(t, func(t *testing.T, clock *storetest.Clock) headgate.Store {
		t.Helper()
		flush(t, server.Addr)
		return newStore(t, memcached.Config{Servers: []string{server.Addr}, Clock: clock.Now, Counters: true})
	}, storetest.Without(headgate.SlidingLog),
		storetest.Lacks("ClockBack", headgate.FixedWindow), storetest.Lacks("ClockStories", headgate.FixedWindow),
		storetest.Lacks("RefundClockBack", headgate.FixedWindow), storetest.Lacks("CountAllVersions", headgate.FixedWindow))
}
