package state

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

const (
	ms   = headgate.Instant(time.Millisecond)
	sec  = headgate.Instant(time.Second)
	unit = 1000 // thousandths
)

// config returns the configuration of a root with one resource. The caller "w3" has weight 3.
func config(resource Resource) Config {
	callers := map[string]Caller{"server": {Server: true}, "low": {Bands: []int{2}}, "both": {Bands: []int{1, 2}}}
	for w := int64(1); w <= 60; w++ {
		callers[fmt.Sprintf("w%d", w)] = Caller{Weight: w}
	}
	resource.Match = "db"
	return Config{Resources: []Resource{resource}, Callers: callers, Lease: 30 * time.Second, Refresh: 5 * time.Second}
}

func start(t *testing.T, c Config, now headgate.Instant) *Server {
	t.Helper()
	s, err := New(c, now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type row struct {
	wants, weight int64
}

// TestTables has the acceptance tables of Doorman. Subclients are weights. All claims arrive in
// one tick, one after the other, and get their settled values at once.
func TestTables(t *testing.T) {
	for _, c := range []struct {
		name      string
		algorithm Algorithm
		capacity  int64
		rows      []row
		want      []int64 // thousandths
	}{
		{"1", None, 0, []row{{10, 1}, {100, 1}}, []int64{10_000, 100_000}},
		{"2", Static, 100, []row{{100, 1}, {10, 1}, {120, 1}}, []int64{100_000, 10_000, 100_000}},
		{"3", MaxMin, 120, []row{{1000, 1}, {60, 1}, {10, 1}}, []int64{55_000, 55_000, 10_000}},
		{"4", MaxMin, 120, []row{{1000, 1}, {50, 1}, {10, 1}}, []int64{60_000, 50_000, 10_000}},
		{"5", MaxMin, 120, []row{{1000, 6}, {500, 4}, {200, 2}}, []int64{60_000, 40_000, 20_000}},
		{"6", MaxMin, 1000, []row{{2000, 10}, {500, 10}, {700, 30}}, []int64{200_000, 200_000, 600_000}},
		{"7", Proportional, 120, []row{{60, 1}, {60, 1}, {10, 1}}, []int64{55_000, 55_000, 10_000}},
		{"8, nobody is served first-come", Proportional, 120, []row{{60, 1}, {75, 1}, {10, 1}}, []int64{50_909, 59_091, 10_000}},
		{"9", Proportional, 120, []row{{65, 3}, {45, 2}, {20, 1}}, []int64{60_000, 40_000, 20_000}},
		{"10, nobody is served first-come", Proportional, 120, []row{{65, 3}, {45, 2}, {20, 1}}, []int64{60_000, 40_000, 20_000}},
		{"11", Proportional, 120, []row{{1000, 1}, {50, 1}, {10, 1}}, []int64{69_691, 40_309, 10_000}},
		{"12", MaxMin, 120, []row{{1000, 1}, {50, 1}, {10, 1}}, []int64{60_000, 50_000, 10_000}},
		{"13", Static, 120, []row{{50, 1}, {200, 1}, {300, 1}}, []int64{50_000, 120_000, 120_000}},
		{"Doorman gives more than wanted", MaxMin, 100, []row{{1000, 1}, {26, 1}, {30, 1}, {10, 1}, {1, 1}}, []int64{33_000, 26_000, 30_000, 10_000, 1_000}},
		{"Doorman leaves capacity unused", MaxMin, 120, []row{{1000, 1}, {70, 3}, {5, 2}}, []int64{45_000, 70_000, 5_000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, config(Resource{Algorithm: c.algorithm, Capacity: c.capacity * unit}), 0)
			var out Out
			for i, r := range c.rows {
				report(t, s, 0, fmt.Sprintf("w%d", r.weight), fmt.Sprint("h", i), 1, r.wants*unit, &out)
			}
			if len(out.Leases) > 0 {
				t.Fatalf("a newcomer was served before the tick: %+v", out.Leases)
			}
			s.Advance(20*ms, &out)
			got := make([]int64, len(c.rows))
			for _, d := range out.Leases {
				got[d.Holder[1]-'0'] = d.Lease.Amount
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if used, _ := s.Usage(20*ms, "db"); c.algorithm.divides() && used.Ledger > c.capacity*unit {
				t.Errorf("the ledger has %d of %d", used.Ledger, c.capacity*unit)
			}
		})
	}
}

// report sends one claim.
func report(t *testing.T, s *Server, now headgate.Instant, caller, holder string, seq uint64, wants int64, out *Out) {
	t.Helper()
	if err := s.Receive(now, caller, &Report{Holder: holder, Seq: seq, Claims: []Claim{{Resource: "db", Wants: wants}}}, out); err != nil {
		t.Fatal(err)
	}
}

// TestPatterns finds exact names first, then patterns in order.
func TestPatterns(t *testing.T) {
	resources := []Resource{{Match: "db/*", Capacity: 1}, {Match: "*", Capacity: 2}, {Match: "db/a", Capacity: 3}}
	for name, want := range map[string]int64{"db/a": 3, "db/b/c": 1, "db/": 1, "db": 2, "x/y": 2} {
		if got := find(resources, name).Capacity; got != want {
			t.Errorf("%q has the capacity of entry %d, want %d", name, got, want)
		}
	}
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*a*b", "xaxxab", true},
		{"*a*b", "xaxxa", false},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"**", "", true},
		{"", "", true},
		{"a", "", false},
	} {
		if got := matches(c.pattern, c.name); got != c.want {
			t.Errorf("%q matches %q: %v, want %v", c.pattern, c.name, got, c.want)
		}
	}
	if find(resources[:1], "other") != nil {
		t.Error("a name without a pattern has a resource")
	}
}

// TestFirstClaim: the first claim of a new resource has its lease at once, at a root and on its way to a parent. The second one waits
// for the tick, as every change does.
func TestFirstClaim(t *testing.T) {
	c := config(Resource{Algorithm: MaxMin, Capacity: 1000})
	c.Tick = 20 * time.Millisecond
	s := start(t, c, 0)
	var out Out
	claim := func(s *Server, holder string, at headgate.Instant) int {
		out.Reset()
		if err := s.Receive(at, "", &Report{Holder: holder, Seq: 1, Claims: []Claim{{Resource: "db", Wants: 100}}}, &out); err != nil {
			t.Fatal(err)
		}
		s.Advance(at, &out)
		return len(out.Leases)
	}
	if got := claim(s, "a", sec); got != 1 || out.Leases[0].Lease.Amount != 100 {
		t.Errorf("%d leases for the first claim: %+v", got, out.Leases)
	}
	if got := claim(s, "b", sec+ms); got != 0 {
		t.Errorf("%d leases for the second claim before the tick", got)
	}
	out.Reset()
	if s.Advance(sec+21*ms, &out); len(out.Leases) != 1 {
		t.Errorf("%+v after the tick", out.Leases)
	}
	c.Resources, c.Child = nil, true
	if claim(start(t, c, 0), "a", sec); len(out.Up.Claims) != 1 {
		t.Errorf("%+v to the parent", out.Up)
	}
}
