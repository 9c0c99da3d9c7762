//go:build soak

package config

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/store/memory"
)

// TestSoakManyCustomers: 100,000 customers with different texts and 10,000 different limits are read within 5 s. A change of one of
// them then takes at most 2 ms, until the guard decides by it.
func TestSoakManyCustomers(t *testing.T) {
	o := objects(t, sourcedFile)
	began := time.Now()
	o, faults := o.With(manyCustomers(100_000, 10_000))
	if faults != nil {
		t.Fatal(faults[:1])
	}
	if elapsed := time.Since(began); elapsed > 5*time.Second {
		t.Errorf("100,000 customers took %v, want at most 5s", elapsed)
	} else {
		t.Logf("100,000 customers took %v", elapsed)
	}
	store, err := memory.New(o.Config().StoreConfig())
	if err != nil {
		t.Fatal(err)
	}
	settings, err := o.Config().GuardConfig(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	var all []time.Duration
	for i := range 101 {
		began = time.Now()
		next, faults := o.With(source.Change{Objects: []source.Object{object(fmt.Sprintf("customers/customer-%d", 7*i), `{"plan": "free"}`)}})
		if faults != nil {
			t.Fatal(faults)
		}
		settings.Quotas = next.Quotas()
		if err := g.Reload(settings); err != nil {
			t.Fatal(err)
		}
		all, o = append(all, time.Since(began)), next
	}
	slices.Sort(all)
	t.Logf("one change took %v, and the slowest of 101 took %v", all[50], all[100])
	if all[50] > 2*time.Millisecond {
		t.Errorf("the median of a change is %v, want at most 2ms", all[50])
	}
}
