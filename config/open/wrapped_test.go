package open

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config"
	testmemcached "github.com/headgate/headgate/internal/testkit/memcached"
	testredis "github.com/headgate/headgate/internal/testkit/redis"
)

// TestWhatStoresOffer: an Opened returns last departures and counts slots, if its store does.
func TestWhatStoresOffer(t *testing.T) {
	for address, slots := range map[string]bool{
		"redis://" + testredis.Start(t).Addr: true, "memcached://" + testmemcached.Start(t).Addr: false,
	} {
		c, err := config.Parse("f", []byte("version: 1\nstore: "+address+"\nstore_timeout: 10s\nrules: []\n"))
		if err != nil {
			t.Fatal(err)
		}
		s, g := opened(t, c, Options{})
		if _, ok := headgate.SlotsOf(g.Store()); ok != slots {
			t.Errorf("%s: offers slots: %v, want %v", address, ok, slots)
		}
		id, err := s.Prepare(headgate.Policy{Limit: headgate.Limit{Count: 1, Per: time.Hour}, MaxWait: 24 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		var decisions [1]headgate.Decision
		for range 2 {
			op := headgate.Op{Key: "k", Policy: id, Kind: headgate.Book, Cost: 1}
			if err := s.Apply(t.Context(), []headgate.Op{op}, decisions[:]); err != nil {
				t.Fatal(err)
			}
		}
		last, ok := g.Store().(headgate.LastReturner)
		if !ok {
			t.Fatalf("%s: no LastReturner", address)
		}
		if returned, err := last.ReturnLast(t.Context(), &decisions[0].Receipt); err != nil || !returned {
			t.Errorf("%s: the last departure was returned: %v, %v", address, returned, err)
		}
	}
}
