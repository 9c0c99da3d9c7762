package open

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/memcached"
	testredis "github.com/headgate/headgate/internal/testkit/redis"
)

// versionPair is two versions of a configuration. Its limits refill so slowly that a run is one moment.
type versionPair struct {
	what     string
	old, new string // the lines after the settings of the store
	most     int    // units that all versions together may admit in a run
	least    int    // units that they admit at least: the stricter version alone
	why      string // the document of the promise
	edges    []func(time.Time) time.Time
	costs    [2]int // of a request in each version; 0 counts as 1
	without  string // names of stores that cannot keep both versions
}

// one gives a configuration with one rule.
func one(rest string) string { return "rules: [{name: a, key: [all], " + rest + "}]\n" }

const (
	oneState  = "one algorithm and period count in one state (algorithms.md)"
	twoStates = "another algorithm or period: the sum (algorithms.md)"
	anotherID = "counts continue for a rule that keeps its name and key (operating.md)"
	twoHolds  = "sliding_log with two holds, or one of them with none: the sum (prefetch.md)"
	sameHold  = "one algorithm, period and hold count in one state (prefetch.md)"
	anotherW  = "units that were used in the windows of both settings count in both (algorithms.md)"
)

// limitPairs change a limit.
func limitPairs() []versionPair {
	var all []versionPair
	for _, a := range []headgate.Algorithm{headgate.TokenBucket, headgate.FixedWindow, headgate.SlidingLog, headgate.SlidingWindow} {
		head := fmt.Sprintf("algorithm: %s, ", a)
		pair := versionPair{
			what: a.String() + " raised", old: one(head + "limits: [40/300d]"), new: one(head + "limits: [60/300d]"), most: 60, least: 40, why: oneState,
		}
		if a == headgate.SlidingLog {
			pair.without = "memcached"
		}
		all = append(all, pair)
	}
	return append(all, []versionPair{
		{
			what: "burst of a bucket", old: one("limits: [9/300d], burst: 20"), new: one("limits: [9/300d], burst: 50"), most: 50, least: 20, why: oneState,
		},
		{
			what: "burst and rate of a bucket", old: one("limits: [10/300d], burst: 50"), new: one("limits: [40/300d], burst: 30"), most: 50, least: 30,
			why: oneState,
		},
		{
			what: "departures, which are evenly spaced", old: one("algorithm: leaky_bucket, limits: [40/300d]"),
			new: one("algorithm: leaky_bucket, limits: [60/300d]"), most: 1, least: 1, why: oneState,
		},
		{
			what: "sub-windows", old: one("algorithm: sliding_window, limits: [40/300d], sub_windows: 10"),
			new: one("algorithm: sliding_window, limits: [40/300d], sub_windows: 5"), most: 40, least: 40, why: oneState,
		},
		{
			what: "a bucket and a window", old: one("limits: [40/300d]"), new: one("algorithm: fixed_window, limits: [60/300d]"), most: 100, least: 40,
			why: twoStates,
		},
		{
			what: "a bucket and a log", old: one("limits: [40/300d]"), new: one("algorithm: sliding_log, limits: [60/300d]"), most: 100, least: 40,
			why: twoStates, without: "memcached",
		},
		{what: "period", old: one("limits: [40/300d]"), new: one("limits: [60/200d]"), most: 100, least: 40, why: twoStates},
		{
			what: "another limit added", old: one("limits: [40/300d]"), new: one("limits: [40/300d, 30/200d]"), most: 40, least: 30, why: oneState,
		},
		{
			what: "the first limit removed", old: one("limits: [30/200d, 40/300d]"), new: one("limits: [50/300d]"), most: 50, least: 30, why: oneState,
		},
		{
			what: "limits in another order", old: one("limits: [40/300d, 30/200d]"), new: one("limits: [30/200d, 40/300d]"), most: 30, least: 30,
			why: oneState,
		},
		{
			what: "one of two limits raised and one lowered", old: one("limits: [60/300d, 40/200d]"), new: one("limits: [50/300d, 45/200d]"), most: 45,
			least: 40, why: oneState,
		},
		{
			what: "a period with the number of another one", old: one("limits: [40/30d]"), new: one("limits: [40/30d, 30/28m]"), most: 80, least: 30,
			why: "the longer of two lengths with one number starts with no used units (configuration.md)",
		},
	}...)
}

// rulePairs change what is beside a limit.
func rulePairs() []versionPair {
	const fixed = "algorithm: fixed_window, limits: [40/300d]"
	return []versionPair{
		{what: "soft added", old: one(fixed), new: one(fixed + ", soft: 50%"), most: 40, least: 40, why: oneState},
		{
			what: "a ban added", old: one("limits: [40/300d]"), new: one("limits: [40/300d], ban: {after: 5/1h, for: 1h}"), most: 40, least: 5,
			why: oneState,
		},
		{
			what: "a longer ban", old: one("limits: [40/300d], ban: {after: 5/1h, for: 1h}"),
			new: one("limits: [60/300d], ban: {after: 9/1h, for: 2h}"), most: 60, least: 5, why: oneState,
		},
		{what: "refused attempts counted", old: one(fixed), new: one(fixed + ", count_rejected: true"), most: 40, least: 10, why: oneState},
		{what: "cost", old: one(fixed), new: one(fixed + ", cost: 3"), most: 40, least: 38, why: oneState, costs: [2]int{1, 3}},
		{
			what: "hard limit", old: one("algorithm: fixed_window, limits: [20/300d], on_exceed: {action: degrade, header: x-over, value: yes, hard: 40/300d}"),
			new:  one("algorithm: fixed_window, limits: [20/300d], on_exceed: {action: degrade, header: x-over, value: yes, hard: 60/300d}"),
			most: 60, least: 40, why: oneState,
		},
		{
			what: "the key", old: one(fixed), new: "rules: [{name: a, key: [header:X-A], " + fixed + "}]\n", most: 80, least: 40, why: anotherID,
		},
		{
			what: "an override of the value", old: "rules: [{name: a, key: [header:X-A], " + fixed + "}]\n",
			new: "rules: [{name: a, key: [header:X-A], " + fixed + ", overrides: {a: {limits: [60/300d]}}}]\n", most: 60, least: 40, why: oneState,
		},
		{
			what: "match with the same key", old: one(fixed), new: one("match: {path: /*}, " + fixed), most: 40, least: 40, why: oneState,
		},
		{what: "action", old: one(fixed), new: one(fixed + ", on_exceed: {action: redirect, location: /full}"), most: 40, least: 40, why: oneState},
		{
			what: "the name of the rule", old: one(fixed), new: "rules: [{name: b, key: [all], " + fixed + "}]\n", most: 80, least: 40, why: anotherID,
		},
		{
			what: "another rule added before it", old: one(fixed),
			new: "rules:\n- {name: b, key: [ip], limits: [60/300d]}\n- {name: a, key: [all], " + fixed + "}\n", most: 40, least: 40, why: oneState,
		},
		{what: "each rule for itself", old: one(fixed), new: "evaluate: independent\n" + one(fixed), most: 40, least: 40, why: oneState},
	}
}

// quotaPairs change quotas of plans and calendars.
func quotaPairs() []versionPair {
	quota := func(limit, more string) string {
		return "rules: [{name: a, key: [header:X-A], quota: calls}]\ndefault_plan: free\nplans: {free: {" + more +
			"quotas: {calls: [{limit: " + limit + "}]}}}\n"
	}
	month := func(day int) func(time.Time) time.Time {
		return func(now time.Time) time.Time {
			at := time.Date(now.Year(), now.Month(), day, 0, 0, 0, 0, time.UTC)
			if at.After(now) {
				at = at.AddDate(0, -1, 0)
			}
			return at
		}
	}
	week := func(day time.Weekday) func(time.Time) time.Time {
		return func(now time.Time) time.Time {
			at := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
			return at.AddDate(0, 0, -(int(at.Weekday()-day)+7)%7)
		}
	}
	zoned := func(now time.Time) time.Time {
		at := now.Add(9 * time.Hour) // Asia/Tokyo has no summer time.
		return time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC).Add(-9 * time.Hour)
	}
	return []versionPair{
		{what: "limit of a quota", old: quota("40/30d", ""), new: quota("60/30d", ""), most: 60, least: 40, why: "quotas.md"},
		{what: "hard limit of a quota", old: quota("20/30d, hard: 60", "after: meter, "), new: quota("30/30d, hard: 50", "after: meter, "), most: 60, least: 50, why: "quotas.md"},
		{what: "soft limit of a quota", old: quota("40/30d", ""), new: quota("40/30d, soft: 50%", ""), most: 40, least: 40, why: "quotas.md"},
		{
			what: "a quota of the calendar, and of a length", old: quota("40/month", ""), new: quota("60/30d", ""), most: 100, least: 40, why: twoStates,
		},
		{
			what: "the customer gets a plan", old: quota("40/30d", ""),
			new:  quota("40/30d", "") + "customers: {a: {limits: {calls: [{limit: 60/30d}]}}}\n",
			most: 60, least: 40, why: "quotas.md",
		},
		{
			what: "limit of a month", old: quota("40/month", ""), new: quota("60/month", ""), most: 60, least: 40, why: oneState,
		},
		{
			what: "start of the month", old: quota("40/month", ""), new: quota("40/month", "month_starts: 20, "), most: 40, least: 40, why: anotherW,
			edges: []func(time.Time) time.Time{month(1), month(20)},
		},
		{
			what: "start of the week", old: quota("40/week", ""), new: quota("40/week", "week_starts: thursday, "), most: 40, least: 40, why: anotherW,
			edges: []func(time.Time) time.Time{week(time.Monday), week(time.Thursday)},
		},
		{
			what: "time zone", old: quota("40/month", ""), new: quota("40/month", "time_zone: Asia/Tokyo, "), most: 40, least: 40, why: anotherW,
			edges: []func(time.Time) time.Time{month(1), zoned},
		},
	}
}

// prefetchPairs change what instances take ahead from a shared store. Units that an instance has taken and that expire are lost, so the least
// is low.
func prefetchPairs() []versionPair {
	value := func(algorithm, more string) string {
		return one("algorithm: " + algorithm + ", limits: [40/300d]" + more)
	}
	const small, large, longer = ", prefetch: {batch: 2, hold: 10s}", ", prefetch: {batch: 4, hold: 10s}", ", prefetch: {batch: 4, hold: 20s}"
	return []versionPair{
		{what: "prefetch of a log", old: value("sliding_log", ", prefetch: off"), new: value("sliding_log", large), most: 80, least: 20, why: twoHolds, without: "memory memcached"},
		{what: "hold of a log", old: value("sliding_log", large), new: value("sliding_log", longer), most: 80, least: 20, why: twoHolds, without: "memory memcached"},
		{what: "batch of a log", old: value("sliding_log", small), new: value("sliding_log", large), most: 40, least: 20, why: sameHold, without: "memory memcached"},
		{what: "prefetch of a bucket", old: value("token_bucket", ", prefetch: off"), new: value("token_bucket", large), most: 40, least: 20, why: sameHold, without: "memory"},
		{what: "prefetch of a window", old: value("fixed_window", ", prefetch: off"), new: value("fixed_window", large), most: 40, least: 20, why: sameHold, without: "memory"},
		{
			what: "prefetch of a sliding window", old: value("sliding_window", ", prefetch: off"), new: value("sliding_window", large), most: 40, least: 20,
			why: sameHold, without: "memory",
		},
	}
}

// TestTwoConfigurations: two versions of a configuration at work on one state, as in a rolling deploy, admit no more than the larger
// limit, or what the documents say. Versions of a store in memory are in one process, and others in two instances.
func TestTwoConfigurations(t *testing.T) {
	t.Parallel()
	for _, store := range []struct{ name, head string }{
		{"memory", "store: memory\nmax_memory: 16MiB\n"},
		{"redis", "store_timeout: 10s\nstore: redis://" + testredis.Start(t).Addr + "\n"},
		{"memcached", "store_timeout: 10s\nstore: memcached://" + memcached.Start(t).Addr + "\n"},
	} {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			v := versions{head: "version: 1\n" + store.head}
			log := "" // Reserves memory for logs.
			if store.name == "memory" {
				log = one("algorithm: sliding_log, limits: [1/d]")
			}
			v.stores[0], _ = opened(t, parsed(t, v.head+cmp.Or(log, "rules: []\n")), Options{})
			if v.stores[1] = v.stores[0]; store.name != "memory" {
				v.stores[1], _ = opened(t, parsed(t, v.head+"rules: []\n"), Options{})
			}
			for _, pair := range slices.Concat(limitPairs(), rulePairs(), quotaPairs(), prefetchPairs()) {
				if strings.Contains(pair.without, store.name) {
					continue
				}
				for _, first := range []int{0, 1} {
					for _, turn := range []int{1, 7, 60} {
						v.compare(t, &pair, first, turn)
					}
				}
			}
		})
	}
}

// versions runs pairs on a store.
type versions struct {
	head   string
	stores [2]*Opened
	runs   int
}

// compare decides requests in turns of the versions, beginning with the first one, and compares the units with the bounds.
func (v *versions) compare(t *testing.T, p *versionPair, first, turn int) {
	t.Helper()
	v.runs++
	began := time.Now()
	guards := [2]*guard.Guard{v.guard(t, p, 0), v.guard(t, p, 1)}
	units, sent := 0, [2]int{}
	for n, at := 0, first; min(sent[0], sent[1]) < 120; n++ {
		if n > 0 && n%turn == 0 {
			at = 1 - at
		}
		sent[at]++
		if decidedOnce(t, guards[at]) {
			units += max(1, p.costs[at])
		}
	}
	if most := p.bound(began); units > most || units < p.least {
		t.Errorf("%s, version %d first, turns of %d: %d units are admitted, want %d to %d: %s", p.what, first, turn, units, p.least, most, p.why)
	}
	for _, g := range guards {
		if err := g.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// guard makes a guard for a version. Each run has a namespace.
func (v *versions) guard(t *testing.T, p *versionPair, version int) *guard.Guard {
	t.Helper()
	c := parsed(t, fmt.Sprintf("%snamespace: run%d\n%s", v.head, v.runs, [2]string{p.old, p.new}[version]))
	described, err := GuardConfig(c, v.stores[version])
	if err != nil {
		t.Fatalf("%s: %v", p.what, err)
	}
	g, err := guard.New(described)
	if err != nil {
		t.Fatalf("%s: %v", p.what, err)
	}
	return g
}

// values are the header of a request.
type values map[string]string

func (v values) Lookup(name string) (string, bool) { text, ok := v[name]; return text, ok }

func decidedOnce(t *testing.T, g *guard.Guard) bool {
	t.Helper()
	r := &headgate.Request{
		Method: "GET", Path: "/a", IP: netip.MustParseAddr("192.0.2.1"), Header: values{"X-A": "a"},
	}
	a := &guard.Answer{}
	if err := g.Decide(t.Context(), r, a); err != nil {
		t.Fatal(err)
	}
	if a.StoreError != nil {
		t.Fatal(a.StoreError)
	}
	return a.Verdict == headgate.Allow
}

// bound is most, or twice as much if a window of a version has begun during the run.
func (p *versionPair) bound(began time.Time) int {
	now := time.Now()
	for _, edge := range p.edges {
		if !edge(began.UTC()).Equal(edge(now.UTC())) {
			return 2 * p.most
		}
	}
	return p.most
}
