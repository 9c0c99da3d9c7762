//go:build soak

package fleet

import (
	"testing"
	"time"

	"github.com/headgate/headgate/pace/etcd"
)

// TestSoakUnbalancedProcesses has one busy process and nine others that request 5 units a
// second each. With balance "demand", the nine get their units, and the busy process uses the
// rest of the limit.
func TestSoakUnbalancedProcesses(t *testing.T) {
	const limit, small, rate, counted = 500, 9, 5, 20
	f := newFleet(t, limit, settings{})
	byDemand := etcd.Limit{Count: limit, Per: time.Second, Balance: etcd.Demand}
	if _, err := f.limits.Set(t.Context(), provider, byDemand, etcd.AnyRevision); err != nil {
		t.Fatal(err)
	}
	f.start(small, func(o *settings) { o.Rate = rate })
	f.start(1, func(o *settings) { o.Depth = limit })
	from := now() + 40 // The first demand reports include the time before the first plan.
	f.until(from + counted)
	f.never(limit, f.settings.First, from+counted)
	f.used(0.99, limit, from, from+counted)
	var least int64 = rate * counted
	for _, m := range f.all[:small] {
		var got int64
		for s := from; s < from+counted; s++ {
			got += m.in(f, s)
		}
		least = min(least, got)
	}
	t.Logf("the small process with the fewest units has %d of %d in %d s", least, rate*counted, counted)
	if least < rate*(counted-1) {
		t.Errorf("a small process has %d of the %d requested units, want at least %d", least, rate*counted, rate*(counted-1))
	}
}
