package state

import (
	"errors"
	"fmt"
	"testing"
)

// TestBounds fills a server. Further holders and resources are refused, and the others stay.
func TestBounds(t *testing.T) {
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

// TestBoundsOfACaller: a caller gets half of the holders, resources and claims. The others get the rest and keep their leases.
// Nothing of it stays when the leases end.
func TestBoundsOfACaller(t *testing.T) {
	c := config(Resource{Algorithm: MaxMin, Capacity: MaxAmount})
	c.Resources[0].Match = "*"
	c.Callers["greedy"] = Caller{}
	s := start(t, c, 0)
	var out Out
	exhausted := func(err error) bool {
		var full *Error
		return errors.As(err, &full) && full.Code == Exhausted
	}
	fill := func(caller, holder string, seq uint64, resource string, n int) (refused int) {
		t.Helper()
		r := Report{Holder: holder, Seq: seq}
		for i := range n {
			r.Claims = append(r.Claims, Claim{Resource: fmt.Sprint(resource, i), Wants: 1})
		}
		before := len(out.Refusals)
		if err := s.Receive(0, caller, &r, &out); err != nil && !exhausted(err) {
			t.Fatal(err)
		} else if err != nil {
			return n
		}
		return len(out.Refusals) - before
	}
	fill("", "other", 1, "db", 1)
	refused := 0
	for seq := range uint64(MaxResources / MaxClaims) {
		refused += fill("greedy", "first", seq+1, fmt.Sprint("r", seq, "/"), MaxClaims)
	}
	if len(s.resources) != 1+MaxResources/2 || refused != MaxResources/2 {
		t.Errorf("%d resources, and %d refused: want half of %d", len(s.resources), refused, MaxResources)
	}
	queued := len(s.queue)
	for i := range MaxTotalClaims/MaxClaims + 1 {
		refused = fill("greedy", fmt.Sprint("claims", i), 1, "r0/", MaxClaims)
	}
	if _, _, claims := s.Counts(); claims != 1+MaxTotalClaims/2 || refused != MaxClaims || len(s.queue) != queued {
		t.Errorf("%d claims, the last report has %d refused, want half of %d; %d of %d resources are due", claims, refused, MaxTotalClaims, len(s.queue), queued)
	}
	if got := fill("w2", "w2", 1, "w2/", 100) + fill("server", "server", 1, "s/", 100); got != 0 {
		t.Errorf("%d claims of other callers are refused", got)
	}
	s.Advance(20*ms, &out)
	out.Reset()
	s.Advance(31*sec, &out)
	for i := range MaxHolders/2 + 1 {
		if got := fill("greedy", fmt.Sprint("holder", i), 1, "db", 1); (got > 0) != (i == MaxHolders/2) {
			t.Fatalf("holder %d: refused %d", i, got)
		}
	}
	if err := s.Receive(0, "", &Report{Holder: "other", Seq: 9, Claims: []Claim{{Resource: "db0", Wants: 1}}}, &out); err != nil {
		t.Errorf("another caller: %v", err)
	}
	s.Advance(32*sec, &out)
	s.Advance(70*sec, &out)
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
