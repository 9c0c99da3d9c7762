//go:build soak

package fleet

import (
	"testing"
	"time"

	"github.com/headgate/headgate/pace/etcd"
)

// TestSoakUnbalancedProcesses: by balance "demand" one busy process uses what nine others leave,
// which ask for 5 units a second each and get them.
func TestSoakUnbalancedProcesses(t *testing.T) {
	const limit, small, rate, counted = 500, 9, 5, 20
	f := newFleet(t, limit, orders{})
	byDemand := etcd.Limit{Count: limit, Per: time.Second, Balance: etcd.Demand}
	if _, err := f.limits.Set(t.Context(), provider, byDemand, etcd.AnyRevision); err != nil {
		t.Fatal(err)
	}
	f.start(small, func(o *orders) { o.Rate = rate })
	f.start(1, func(o *orders) { o.Depth = limit })
	from := now() + 40 // The first samples count the time before there was a plan.
	f.until(from + counted)
	f.never(limit, f.orders.First, from+counted)
	f.used(0.99, limit, from, from+counted)
	var least int64 = rate * counted
	for _, m := range f.all[:small] {
		var got int64
		for s := from; s < from+counted; s++ {
			got += m.in(f, s)
		}
		least = min(least, got)
	}
	t.Logf("the process with the fewest units has %d of %d in %d s", least, rate*counted, counted)
	if least < rate*(counted-1) {
		t.Errorf("a process has %d units of the %d that it asked for", least, rate*counted)
	}
}
