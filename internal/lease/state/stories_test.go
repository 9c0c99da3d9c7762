package state

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
)

// amounts advances the server and returns the amounts that it sends.
func amounts(s *Server, now headgate.Instant, out *Out) map[string]int64 {
	s.Advance(now, out)
	got := make(map[string]int64)
	for _, d := range out.Leases {
		got[d.Holder] = d.Lease.Amount
	}
	return got
}

// TestGrowthIsPaid follows one shift: the first holder shrinks at once, and the second grows when
// the first has acknowledged, or when the lease of the first has ended.
func TestGrowthIsPaid(t *testing.T) {
	for _, acknowledges := range []bool{true, false} {
		s := start(t, config(Resource{Algorithm: MaxMin, Capacity: 100}), 0)
		var out Out
		report(t, s, 0, "", "a", 1, 100, &out)
		if got := amounts(s, 20*ms, &out); got["a"] != 100 {
			t.Fatalf("the first holder has %d, want 100", got["a"])
		}
		out.Reset()
		report(t, s, sec, "", "b", 1, 100, &out)
		got := amounts(s, sec+20*ms, &out)
		if got["a"] != 50 || got["b"] != 0 {
			t.Fatalf("a is at %d and b at %d, want a push of 50 and 0", got["a"], got["b"])
		}
		var version Version
		for _, d := range out.Leases {
			if d.Holder == "a" {
				version = d.Lease.Version
				if d.Lease.Seq != 0 || d.Lease.Length != 0 {
					t.Errorf("the push is %+v, want no report and no length", d.Lease)
				}
			}
		}
		out.Reset()
		at, before := sec+60*ms, headgate.Instant(0)
		if acknowledges {
			err := s.Receive(at-20*ms, "", &Report{Holder: "a", Seq: 2, Acks: []Ack{{"db", version, 50}}}, &out)
			if err != nil {
				t.Fatal(err)
			}
		} else {
			at = headgate.Instant(counted(30*time.Second)) + 20*ms
			before = at - 21*ms
			report(t, s, 20*sec, "", "b", 2, 100, &out)
		}
		if got := amounts(s, before, &out)["b"]; got > 0 {
			t.Errorf("b has %d before a has shrunk, want 0", got)
		}
		for ; before < at; before += ms {
			s.Advance(before, &out)
		}
		want := map[bool]int64{true: 50, false: 100}[acknowledges]
		if got := amounts(s, at, &out)["b"]; got != want {
			t.Errorf("acknowledges %v: b has %d, want %d", acknowledges, got, want)
		}
	}
}

// TestNeverAcknowledges has a holder that reports, wants less or more each time, and acknowledges nothing, or only old versions.
// What it had counts until the lease ends that it had when it was to shrink. Later reports do not prolong that.
func TestNeverAcknowledges(t *testing.T) {
	for _, old := range []bool{false, true} {
		s := start(t, config(Resource{Algorithm: MaxMin, Capacity: 100}), 0)
		var out Out
		var former, newest Version
		report(t, s, 0, "", "a", 1, 100, &out)
		for at := headgate.Instant(0); at <= 40*sec; at += 500 * ms {
			seq := uint64(at/ms) + 2
			claim := Claim{Resource: "db", Wants: 100 + int64(seq)%7, Holds: 100}
			if old {
				claim.Version = former
			}
			if err := s.Receive(at, "", &Report{Holder: "a", Seq: seq, Claims: []Claim{claim}}, &out); err != nil {
				t.Fatal(err)
			}
			if at >= sec {
				report(t, s, at, "", "b", seq, 40+int64(seq)%7, &out)
			}
			for next, ok := s.Next(); ok && next < at+500*ms; next, ok = s.Next() {
				s.Advance(next, &out)
			}
			for _, d := range out.Leases {
				if d.Holder == "a" && newest.Less(d.Lease.Version) {
					former, newest = newest, d.Lease.Version
				}
			}
			out.Reset()
			u, _ := s.Usage(at, "db")
			if at == 29*sec && u.Granted > 60 {
				t.Errorf("old %v: %+v at 29 s: the amount of the first lease does not count", old, u)
			}
			if at == 32*sec && u.Granted < 95 {
				t.Errorf("old %v: %+v at 32 s: want all of 100", old, u)
			}
		}
	}
}

// TestLoweredCapacity is the exception: the sum falls as fast as shrinks are acknowledged.
func TestLoweredCapacity(t *testing.T) {
	w := newWorld(t, 1)
	c := config(Resource{Algorithm: MaxMin, Capacity: 100})
	n := w.node("root", nil, 0, c)
	for range 10 {
		w.join(n, 10*ms, 50)
	}
	w.run(sec)
	if out := w.out(); out != 100 {
		t.Fatalf("%d is out of 100", out)
	}
	c.Resources[0].Capacity = 40
	if err := n.server.Configure(w.now, c.Resources, c.Callers); err != nil {
		t.Fatal(err)
	}
	n.flush()
	w.run(sec + 31*ms) // One tick and one way: the holders know.
	if out := w.out(); out != 40 {
		t.Errorf("%d is out of 40 after a tick and one way", out)
	}
	w.run(sec + 41*ms)
	if usage, _ := n.server.Usage(w.now, "db"); usage.Ledger != 40 {
		t.Errorf("the ledger has %+v after two ways and a tick, want 40", usage)
	}
}

// TestBandsAndCallers has two bands with a floor for the second one. Weights and bands come from
// the configuration of the caller.
func TestBandsAndCallers(t *testing.T) {
	s := start(t, config(Resource{Algorithm: MaxMin, Capacity: 100, Floors: []int{0, 10}}), 0)
	var out Out
	report(t, s, 0, "", "high", 1, 60, &out)
	report(t, s, 0, "w2", "heavy", 1, 90, &out)
	report(t, s, 0, "low", "low", 1, 50, &out)
	got := amounts(s, 20*ms, &out)
	if fmt.Sprint(got) != "map[heavy:60 high:30 low:10]" {
		t.Errorf("got %v, want 60, 30 and the floor of 10", got)
	}
}

// TestRefused has the reports and claims that a server refuses. They change nothing.
func TestRefused(t *testing.T) {
	s := start(t, config(Resource{Algorithm: MaxMin, Capacity: 100}), 0)
	var out Out
	report(t, s, 0, "low", "owned", 1, 1, &out)
	claim := func(c Claim) Report { return Report{Holder: "h", Seq: 1, Claims: []Claim{c}} }
	for _, c := range []struct {
		caller string
		report Report
		code   Code
		field  string
	}{
		{"", Report{Seq: 1}, Invalid, "holder"},
		{"", Report{Holder: "h"}, Invalid, "seq"},
		{"", claim(Claim{Resource: "db", Wants: -1}), Invalid, "claims[0].wants"},
		{"", claim(Claim{Resource: "db", Wants: MaxAmount + 1}), Invalid, "claims[0].wants"},
		{"", claim(Claim{}), Invalid, "claims[0].resource"},
		{"", Report{Holder: "h", Seq: 1, Claims: []Claim{{Resource: "db"}, {Resource: "db"}}}, Invalid, "claims[1].resource"},
		{"", Report{Holder: "h", Seq: 1, Claims: make([]Claim, MaxClaims+1)}, Invalid, "claims"},
		{"", claim(Claim{Resource: "db", Band: 2}), Forbidden, "claims[0].band"},
		{"low", claim(Claim{Resource: "db", Band: 1}), Forbidden, "claims[0].band"},
		{"", claim(Claim{Resource: "db", Curve: []Bucket{{1, 1, 1}}}), Forbidden, "claims[0].curve"},
		{"server", claim(Claim{Resource: "db", Curve: []Bucket{{1, MaxBucketWeight + 1, 1}}}), Invalid, "claims[0].curve"},
		{"", Report{Holder: "h", Seq: 1, Acks: []Ack{{Holds: -1}}}, Invalid, "acks[0].holds"},
		{"", Report{Holder: "owned", Seq: 2, Claims: []Claim{{Resource: "db", Release: true}}}, Forbidden, "holder"},
	} {
		var got *Error
		if err := s.Receive(0, c.caller, &c.report, &out); !errors.As(err, &got) || got.Code != c.code || got.Field != c.field {
			t.Errorf("caller %q: %v, want code %d in field %s", c.caller, err, c.code, c.field)
		}
	}
	r := claim(Claim{Resource: "other", Wants: 1})
	if err := s.Receive(0, "", &r, &out); err != nil || len(out.Refusals) != 1 || out.Refusals[0].Err.Code != NotFound {
		t.Errorf("a resource without a pattern: %v, %+v, want a refusal", err, out.Refusals)
	}
	if len(s.holders) != 1 || len(s.resources) != 1 {
		t.Errorf("%d holders and %d resources, want 1 and 1", len(s.holders), len(s.resources))
	}
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestConverges has random demands on a bad network, which then is good for a while: every holder
// has exactly its part of one division, and no holder starves.
func TestConverges(t *testing.T) {
	for seed := range uint64(race.Fewer(60, 12)) {
		w := newWorld(t, seed)
		w.loss, w.repeat, w.late = 0.2, 0.2, 300*ms
		capacity := 1 + w.rand.Int64N(2000)
		n := w.node("root", nil, 0, config(Resource{Algorithm: MaxMin, Capacity: capacity}))
		for range 1 + w.rand.IntN(12) {
			w.join(n, headgate.Instant(w.rand.Int64N(int64(50*ms))), w.rand.Int64N(400))
		}
		every(w, 10*ms, func() {
			if out := w.out(); out > capacity {
				t.Fatalf("seed %d: %v: %d is out of %d", seed, w.now.Sub(0), out, capacity)
			}
			w.consistent()
		})
		for range 20 {
			w.run(w.now + headgate.Instant(w.rand.Int64N(int64(2*sec))))
			w.clients[w.rand.IntN(len(w.clients))].want(w.rand.Int64N(400))
		}
		w.loss, w.repeat, w.late = 0, 0, 0
		w.run(w.now + 12*sec)
		wanted, used, misplaced := w.compare(capacity)
		if used != wanted || misplaced > int64(len(w.clients)) {
			t.Errorf("seed %d: %d of %d is used, %d is misplaced", seed, used, wanted, misplaced)
		}
	}
}
