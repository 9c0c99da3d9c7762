package state

import (
	"errors"
	"fmt"
	"testing"

	"github.com/headgate/headgate/internal/testkit/race"
)

// TestBounds fills a server. Further holders and resources are refused, and the others stay.
func TestBounds(t *testing.T) {
	if race.On {
		return // It has one goroutine and as many holders as a server takes.
	}
	c := config(Resource{Algorithm: MaxMin, Capacity: MaxAmount})
	c.Resources[0].Match = "*"
	s := start(t, c, 0)
	var out Out
	before := heapBytes()
	for i := range MaxHolders {
		r := Report{Holder: fmt.Sprintf("holder-%032d", i), Seq: 1, Claims: []Claim{{Resource: fmt.Sprint("db", i%20), Wants: 1}}}
		if err := s.Receive(0, "", &r, &out); err != nil {
			t.Fatal(err)
		}
	}
	if each := (heapBytes() - before) / MaxHolders; each > 1024 {
		t.Errorf("a holder with a claim needs %d bytes, want at most 1024", each)
	} else {
		t.Logf("a holder with a claim needs %d bytes", each)
	}
	err := s.Receive(0, "", &Report{Holder: "more", Seq: 1, Claims: []Claim{{Resource: "db1"}}}, &out)
	var full *Error
	if !errors.As(err, &full) || full.Code != Exhausted {
		t.Errorf("one more holder: %v, want Exhausted", err)
	}
	for seq := uint64(2); len(out.Refusals) == 0 && seq < 20; seq++ {
		r := Report{Holder: fmt.Sprintf("holder-%032d", 0), Seq: seq}
		for i := range MaxClaims {
			r.Claims = append(r.Claims, Claim{Resource: fmt.Sprint("db", seq, "/", i), Wants: 1})
		}
		if err := s.Receive(0, "", &r, &out); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.resources) != MaxResources || len(out.Refusals) == 0 || out.Refusals[0].Err.Code != Exhausted {
		t.Errorf("%d resources, refusals %d, want %d and Exhausted", len(s.resources), len(out.Refusals), MaxResources)
	}
	s.Advance(20*ms, &out)
	if len(out.Leases) < MaxHolders {
		t.Errorf("%d leases for %d holders", len(out.Leases), MaxHolders)
	}
}

// TestBoundsOfACaller: a caller gets half of the holders, resources and claims. Others still get some, and servers all of them.
// Nothing is counted when the leases have ended.
func TestBoundsOfACaller(t *testing.T) {
	c := config(Resource{Algorithm: MaxMin, Capacity: MaxAmount})
	c.Resources[0].Match = "*"
	s := start(t, c, 0)
	var out Out
	// refused claims n new resources, or n times one, for a new holder.
	refused := func(caller, holder string, n int) (claims int) {
		t.Helper()
		r := Report{Holder: caller + holder, Seq: 1}
		for i := range n {
			r.Claims = append(r.Claims, Claim{Resource: fmt.Sprint(holder, i), Wants: 1})
		}
		before := len(out.Refusals)
		err := s.Receive(0, caller, &r, &out)
		var full *Error
		switch {
		case errors.As(err, &full) && full.Code == Exhausted:
			return n
		case err != nil:
			t.Fatal(err)
		}
		return len(out.Refusals) - before
	}
	for _, caller := range []string{"w2", "server", ""} {
		if got := refused(caller, "db", 10); got != 0 {
			t.Fatalf("%q: %d claims are refused", caller, got)
		}
		by := s.callers[caller]
		for what, bound := range map[string]struct {
			used *int
			most int
		}{"holders": {&by.holders, MaxHolders}, "claims": {&by.claims, MaxTotalClaims}, "resources": {&by.resources, MaxResources}} {
			used := *bound.used
			*bound.used = bound.most/2 - 1
			first, second := refused(caller, what, 1), refused(caller, what+"more", 1)
			if want := map[string]int{"w2": 1}[caller]; first != 0 || second != want {
				t.Errorf("%q: at half of the %s, %d and %d claims are refused, want 0 and %d", caller, what, first, second, want)
			}
			if got := refused("w3", what, 1); got != 0 {
				t.Errorf("%d claims of another caller are refused", got)
			}
			*bound.used += used - (bound.most/2 - 1)
		}
	}
	s.Advance(20*ms, &out)
	s.Advance(31*sec, &out)
	s.Advance(62*sec, &out)
	if a, b, c := s.Counts(); a+b+c+len(s.callers) != 0 {
		t.Errorf("%d holders, %d resources, %d claims and %d callers stay", a, b, c, len(s.callers))
	}
}

// TestRefusedClaimIsNotDivided: a server with all its claims refuses another one without a division of the resource.
func TestRefusedClaimIsNotDivided(t *testing.T) {
	s := start(t, config(Resource{Algorithm: MaxMin, Capacity: 100}), 0)
	var out Out
	report(t, s, 0, "", "a", 1, 100, &out)
	s.Advance(20*ms, &out)
	for i := range MaxTotalClaims {
		s.claimed[key{nil, &resource{heap: i}}] = nil
	}
	at, _ := s.Next()
	report(t, s, sec, "", "b", 1, 100, &out)
	if next, _ := s.Next(); next != at || len(out.Refusals) != 1 || out.Refusals[0].Err.Code != Exhausted {
		t.Errorf("%d refusals, and the resource is due at %v, want 1 and %v", len(out.Refusals), next.Sub(0), at.Sub(0))
	}
}

// TestReleaseAndClaim: a report releases the only claim of a holder and makes another one. The holder stays the same.
func TestReleaseAndClaim(t *testing.T) {
	c := config(Resource{Algorithm: MaxMin, Capacity: 100})
	c.Resources[0].Match = "*"
	s := start(t, c, 0)
	var out Out
	for seq, resource := range []string{"a", "b", ""} {
		r := Report{Holder: "h", Seq: uint64(seq) + 1}
		if seq > 0 {
			r.Claims = append(r.Claims, Claim{Resource: string(rune('a' + seq - 1)), Release: true})
		}
		if resource != "" {
			r.Claims = append(r.Claims, Claim{Resource: resource, Wants: 1})
		}
		if err := s.Receive(0, "", &r, &out); err != nil {
			t.Fatal(err)
		}
		want := min(len(r.Claims), 1)
		if resource == "" {
			want = 0
		}
		if holders, _, claims := s.Counts(); holders != want || claims != want {
			t.Errorf("%d holders with %d claims after report %d, want %d", holders, claims, seq+1, want)
		}
	}
}

// TestCurvesAreBounded: above the bound of all curves, a server has one bucket for each band, with the same sums. The memory is
// free when its claim ends.
func TestCurvesAreBounded(t *testing.T) {
	s := start(t, config(Resource{Algorithm: MaxMin, Capacity: 1000, Floors: []int{0, 10}}), 0)
	var out Out
	send := func(seq uint64, curve []Bucket, release bool) {
		t.Helper()
		claim := Claim{Resource: "db", Curve: curve, Holders: 9, Release: release}
		if err := s.Receive(0, "server", &Report{Holder: "leaf", Seq: seq, Claims: []Claim{claim}}, &out); err != nil {
			t.Fatal(err)
		}
	}
	var curve []Bucket
	for i := range int64(40) {
		curve = append(curve, Bucket{Band: 1 + int(i/20), Weight: i + 1, Wants: 2*i + 1})
	}
	others := MaxTotalBuckets - 39
	s.kept = others
	send(1, curve, false)
	c := s.resources["db"].claims[0]
	if fmt.Sprint(c.buckets) != "[{1 210 400} {2 610 1200}]" || s.kept != others+2 {
		t.Errorf("the curve is %v, and %d buckets are counted", c.buckets, s.kept-others)
	}
	send(2, curve[1:], false)
	if len(c.buckets) != 39 || s.kept != MaxTotalBuckets {
		t.Errorf("a curve within the bound has %d buckets, %d of all", len(c.buckets), s.kept)
	}
	send(3, curve[1:3], false)
	if cap(c.buckets) > 4 {
		t.Errorf("a short curve keeps the memory of %d buckets", cap(c.buckets))
	}
	if send(4, nil, true); s.kept != others {
		t.Errorf("%d buckets stay", s.kept-others)
	}
}
