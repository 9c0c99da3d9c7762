package state_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/state"
)

// amounts divides 500 units a second among 400 holders of caller many and one of caller one, which each want all of it, and returns
// what the one holder has.
func amounts(t *testing.T, algorithm state.Algorithm, floors []int, callers map[string]state.Caller) (one int64) {
	t.Helper()
	const capacity = 500_000
	server, err := state.New(state.Config{
		Resources: []state.Resource{{Match: "db", Capacity: capacity, Algorithm: algorithm, Floors: floors}},
		Callers:   callers, Lease: 30 * time.Second, Refresh: 5 * time.Second,
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out state.Out
	report := func(caller, holder string) {
		t.Helper()
		r := state.Report{Holder: holder, Seq: 1, Claims: []state.Claim{{Resource: "db", Wants: capacity}}}
		if err := server.Receive(0, caller, &r, &out); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 400 {
		report("many", fmt.Sprintf("invented-holder-of-many-%d", n))
	}
	report("one", "the-holder-of-caller-one")
	server.Advance(headgate.Instant(20*time.Millisecond), &out)
	for _, d := range out.Leases {
		if d.Holder == "the-holder-of-caller-one" {
			one = d.Lease.Amount
		}
	}
	return one
}

// TestHoldersOfOneCaller measures what docs/leases.md says about a caller that invents holders: shares are divided among holders, so
// another caller has little. A band of its own with a floor bounds that.
func TestHoldersOfOneCaller(t *testing.T) {
	bands := map[string]state.Caller{"many": {Bands: []int{1}}, "one": {Bands: []int{2}}}
	for _, c := range []struct {
		name      string
		algorithm state.Algorithm
		floors    []int
		callers   map[string]state.Caller
		want      int64
	}{
		{"by holder, max_min", state.MaxMin, nil, nil, 500_000 / 401},
		{"by holder, proportional", state.Proportional, nil, nil, 500_000 / 401},
		{"weight 100 of the other caller", state.MaxMin, nil, map[string]state.Caller{"one": {Weight: 100}}, 500_000 * 100 / 500},
		{"a band for each caller", state.MaxMin, []int{50, 50}, bands, 250_000},
		{"a band for each caller, proportional", state.Proportional, []int{50, 50}, bands, 250_000},
	} {
		if got := amounts(t, c.algorithm, c.floors, c.callers); got < c.want || got > c.want+1000 {
			t.Errorf("%s: the one holder has %d of 500000, want %d", c.name, got, c.want)
		}
	}
}
