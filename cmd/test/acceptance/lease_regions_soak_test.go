//go:build soak

package acceptance

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/headgate/headgate/client/lease"
	"github.com/headgate/headgate/internal/testkit/network"
)

// leaseRegion is one region: a leaf, and holders with a demand.
type leaseRegion struct {
	spenders *spenders
	rate     atomic.Int64 // calls a second
}

// newLeaseRegions starts a root in the first region, and a leaf with three holders in each of three regions. A message needs 100 ms
// between two regions.
func newLeaseRegions(t *testing.T) (all [3]*leaseRegion) {
	t.Helper()
	const away = 100 * time.Millisecond
	rootAt, token := freeAddress(t), file(t, "server")
	node := func(at, length, rest string) {
		launchServer(t, file(t, fmt.Sprintf(treeNode, at, tokenDigest("server"), tokenDigest("web"), length, rest)+adminAnywhere))
	}
	node(rootAt, "6s", fmt.Sprintf("resources: [{match: \"db/*\", capacity: %d/s}]", treeCapacity))
	for i := range all {
		at, up := freeAddress(t), rootAt
		if i > 0 {
			link := network.New(t, rootAt)
			link.Latency(away, away, 0)
			up = link.Addr
		}
		node(at, "5s", fmt.Sprintf("servers: [%q], token_file: %q", up, token))
		region := &leaseRegion{spenders: newSpenders()}
		for range 3 {
			if err := region.spenders.add(at, client.Safe); err != nil {
				t.Fatal(err)
			}
		}
		region.spenders.ended.Go(func() { region.spenders.call(region.rate.Load) })
		t.Cleanup(region.spenders.close)
		all[i] = region
	}
	return all
}

// TestSoakRegions has three regions with 100 ms between them, which share 1,000/s. When the demand of 1,500/s moves to another region,
// the capacity follows within 2 s. The provider never sees more than the bound in any second.
func TestSoakRegions(t *testing.T) {
	const quiet, busy = 15, 1500
	all := newLeaseRegions(t)
	for _, region := range all {
		region.rate.Store(quiet)
	}
	eventually(t, "the first leases", func() bool { return all[1].spenders.lastSecond() > quiet/2 && all[2].spenders.lastSecond() > quiet/2 })
	<-time.After(10 * time.Second) // Longer than what a root that has started counts as given.
	began := time.Now()
	for round, to := range []int{1, 2, 0, 1, 0, 2} {
		for i, region := range all {
			region.rate.Store(quiet)
			if i == to {
				region.rate.Store(busy)
			}
		}
		shift := time.Now()
		<-time.After(10 * time.Second)
		units := all[to].spenders.bySecond(shift, time.Now())
		t.Logf("shift %d, to region %d: units by second %v, %d are fair", round, to, units, treeCapacity-2*quiet)
		for second := 2; second < 9; second++ {
			if units[second] < (treeCapacity-2*quiet)*9/10 {
				t.Errorf("shift %d: %d units in second %d, want at least 90 %% of %d", round, units[second], second+1, treeCapacity-2*quiet)
			}
		}
	}
	whole, now := tally{units: map[int64]int{}}, time.Now()
	for at := tenthOf(began); at < tenthOf(now); at++ {
		for _, region := range all {
			whole.add(at, region.spenders.sum(at, at+1))
		}
	}
	worst, most := whole.worst(began, now, time.Second), treeCapacity*11/10+9
	t.Logf("%d units in the worst second, at most %d", worst, most)
	if worst > most {
		t.Errorf("%d units in a second, want at most %d", worst, most)
	}
}
