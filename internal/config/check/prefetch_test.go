package check

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// TestHoldsThatTheStoreCannotCount: Hold returns the policies without a hold, and the store's reason.
func TestHoldsThatTheStoreCannotCount(t *testing.T) {
	unheldOnly := func(p headgate.Policy) error {
		if p.Hold > 0 {
			return &limit.PolicyError{Field: "burst", Problem: "is odd", Fix: "use another"}
		}
		return nil
	}
	policies := []headgate.Policy{{Limit: headgate.Limit{Count: 100, Per: time.Second}}}
	held, problem, fix := Hold(policies, 0, 0, unheldOnly)
	if problem != "with a hold of 5ms the burst is odd" || fix != "use another, or write prefetch: off" || held[0].Hold != 0 {
		t.Errorf("got problem %q, fix %q and policies %+v", problem, fix, held)
	}
}
