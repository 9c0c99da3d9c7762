package redis_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/testkit/instances"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/redis"
)

// aMonth is a limit of 5 a month.
func aMonth() headgate.Policy {
	return headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 5, Calendar: headgate.Month}}
}

// monthEnding gives edges around the present of a real server's clock. The present month ends at the
// given time.
func monthEnding(at time.Time) *headgate.Edges {
	const month = 30 * 24 * time.Hour
	end := headgate.Instant(at.Truncate(time.Second).UnixNano())
	return &headgate.Edges{end.Add(-2 * month), end.Add(-month), end, end.Add(month)}
}

func takeMonth(
	t *testing.T, store *redis.Store, id headgate.PolicyID, key string, cost int64, e *headgate.Edges,
) headgate.Decision {
	t.Helper()
	var d [1]headgate.Decision
	if err := store.Apply(t.Context(), []headgate.Op{{Key: key, Policy: id, Cost: cost, Edges: e}}, d[:]); err != nil {
		t.Fatal(err)
	}
	return d[0]
}

// TestMonthByTheServersClock: the clock of a real server picks the month, and the month ends at its
// edge. A caller with a wrong clock gets an error, and counts nothing.
func TestMonthByTheServersClock(t *testing.T) {
	store := newStore(t, testserver.Start(t).Addr, nil)
	id := prepare(t, store, aMonth())
	var e *headgate.Edges
	key := "customer"
	until(t, "a month that ends soon, and not before the first decision", func() bool {
		key += "+"
		e = monthEnding(time.Now().Add(1300 * time.Millisecond)) // Between 0.3 s and 1.3 s ahead, in whole seconds.
		d := takeMonth(t, store, id, key, 5, e)
		if d.Verdict != headgate.Allow {
			t.Fatalf("the first 5 of a month: %+v", d)
		}
		return d.At < e[2]
	})
	until(t, "the end of the month", func() bool {
		d := takeMonth(t, store, id, key, 1, e)
		if d.At >= e[2] != (d.Verdict == headgate.Allow) {
			t.Fatalf("at %s, and the month ends at %s: %s", d.At.Time(), e[2].Time(), d.Verdict)
		}
		return d.Verdict == headgate.Allow
	})
	late := monthEnding(time.Now().AddDate(0, 3, 0))
	err := store.Apply(t.Context(), []headgate.Op{{Key: key, Policy: id, Cost: 1, Edges: late}}, make([]headgate.Decision, 1))
	if _, found := errortype.As[*headgate.EdgeError](err); !found {
		t.Errorf("a caller whose clock is 3 months ahead: %v", err)
	}
	if d := takeMonth(t, store, id, key, 1, e); d.Remaining != 3 {
		t.Errorf("%d are left of the new month, want 3", d.Remaining)
	}
}

// TestMonthSurvivesRestarts: a month lasts longer than our process, and longer than the master of
// the servers. The replica that takes over has every count that was replicated, until the end of the month. So the month has
// at most the lost units above its limit.
func TestMonthSurvivesRestarts(t *testing.T) {
	s := testserver.StartSentinel(t, 1, 1)
	start := func() (*redis.Store, headgate.PolicyID) {
		store := open(t, redis.Config{Kind: redis.Sentinel, Timeout: patience, Client: rueidis.ClientOption{
			InitAddress: s.Addrs(), Sentinel: rueidis.SentinelOption{MasterSet: s.Name},
		}})
		return store, prepare(t, store, aMonth())
	}
	e := monthEnding(time.Now().AddDate(0, 0, 10))
	store, id := start()
	if d := takeMonth(t, store, id, "customer", 2, e); d.Remaining != 3 {
		t.Fatalf("the first 2 of 5: %+v", d)
	}
	store.Close()
	store, id = start()
	if d := takeMonth(t, store, id, "customer", 1, e); d.Remaining != 2 {
		t.Errorf("after a restart of this process, %d are left, want 2", d.Remaining)
	}
	s.WaitReplicated()
	old := s.Master()
	deafen(t, s, old)
	if d := takeMonth(t, store, id, "customer", 1, e); d.Remaining != 1 {
		t.Errorf("after a unit that no replica has, %d are left, want 1", d.Remaining)
	}
	failOver(t, s, old)
	var d [1]headgate.Decision
	until(t, "a decision by the new master", func() bool {
		return store.Apply(t.Context(), []headgate.Op{{Key: "customer", Policy: id, Kind: headgate.Peek, Edges: e}}, d[:]) == nil
	})
	if d[0].Remaining != 2 {
		t.Errorf("after the failover, %d are left, want 2: only the unit that no replica had is lost", d[0].Remaining)
	}
	keptUntil(t, s.Master(), e[2])
	for i, want := range []headgate.Verdict{headgate.Allow, headgate.Allow, headgate.Deny} {
		if d := takeMonth(t, store, id, "customer", 1, e); d.Verdict != want {
			t.Errorf("request %d to the new master: %s, want %s: a month of 5 has at most the lost unit more", i, d.Verdict, want)
		}
	}
}

// keptUntil checks that the only state of a server is kept at least until a time.
func keptUntil(t *testing.T, server *testserver.Server, end headgate.Instant) {
	t.Helper()
	ms, err := strconv.ParseInt(server.CLI("PTTL", server.CLI("RANDOMKEY")), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if expires := time.Now().Add(time.Duration(ms) * time.Millisecond); expires.Before(end.Time()) {
		t.Errorf("the state expires at %s, want the end of the month at %s or later", expires, end.Time())
	}
}

// TestMonthBesideALength: a reload adds 5 hours to a rule with a month, and another removes them. Units that were
// taken from the month stay used.
func TestMonthBesideALength(t *testing.T) {
	month := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 200, Calendar: headgate.Month}}
	hours := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 50, Per: 5 * time.Hour}}
	all, err := rule.ParsePart("all")
	if err != nil {
		t.Fatal(err)
	}
	far := (time.Now().UTC().Day()+14)%28 + 1 // No month begins while the test runs.
	r := guard.Rule{
		Rule: rule.Rule{Name: "quota", Key: []rule.Part{all}}, Policies: []headgate.Policy{month},
		Calendar: calendar.Settings{Zone: time.UTC, WeekStarts: time.Monday, MonthStarts: far},
	}
	c := guard.Config{Store: newStore(t, testserver.Start(t).Addr, nil), Rules: []guard.Rule{r}}
	g, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for n, policies := range [][]headgate.Policy{{month}, {month, hours}, {month}, {hours, month}} {
		c.Rules[0].Policies = policies
		if err := g.Reload(c); err != nil {
			t.Fatal(err)
		}
		var a guard.Answer
		if err := g.Decide(t.Context(), &headgate.Request{Method: "GET", Path: "/"}, &a); err != nil || a.StoreError != nil {
			t.Fatal(err, a.StoreError)
		}
		for i := range a.Results {
			if r := &a.Results[i]; r.Limit == month.Limit && r.Decision.Remaining != int64(199-n) {
				t.Errorf("request %d: %d left of the month, want %d", n+1, r.Decision.Remaining, 199-n)
			}
		}
	}
}

// TestWrongClocks: the clock of a real server ends a month for all instances, and refuses those that do not know the
// present month. TestStoreOnCluster has the same on a cluster.
func TestWrongClocks(t *testing.T) {
	testWrongClocks(t, redis.Config{Client: rueidis.ClientOption{InitAddress: []string{testserver.Start(t).Addr}}, Timeout: patience})
}

func testWrongClocks(t *testing.T, c redis.Config) {
	t.Helper()
	instances.DecideAlike(t, func() headgate.Store { return open(t, c) }, 0)
	instances.Outside(t, open(t, c))
}
