package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/etcd"
)

// TestLimits: a limit is created, changed after a read, and deleted. A writer with an outdated
// read gets an error.
func TestLimits(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	l := Limits{Client: newClient(t, server.Addr), Prefix: "/test/"}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	limit := Limit{Count: 50_000, Per: time.Second}
	if _, err := l.Get(ctx, "mail"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get of a missing limit gives %v", err)
	}
	if err := l.Delete(ctx, "mail", AnyRevision); !errors.Is(err, ErrNotFound) {
		t.Errorf("Delete of a missing limit gives %v", err)
	}
	if _, err := l.Set(ctx, "mail", limit, 7); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "read it again") {
		t.Errorf("Set of a deleted limit gives %v", err)
	}
	one, err := l.Set(ctx, "mail", limit, 0)
	if err != nil || one == 0 {
		t.Fatalf("%d, %v", one, err)
	}
	if got := server.CTL("get", "/test/mail/limit", "--print-value-only"); got != `{"limit":50000,"per":"1s","balance":"even"}` {
		t.Errorf("the limit is written as %s", got)
	}
	if _, err := l.Set(ctx, "mail", limit, 0); !errors.Is(err, ErrConflict) {
		t.Errorf("Set of an existing limit gives %v", err)
	}
	two, err := l.Set(ctx, "mail", Limit{7, time.Minute, Even}, one)
	if err != nil || two <= one {
		t.Fatalf("%d after %d, %v", two, one, err)
	}
	if _, err := l.Set(ctx, "mail", limit, one); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), fmt.Sprint(two)) {
		t.Errorf("Set of what has changed gives %v", err)
	}
	e, err := l.Get(ctx, "mail")
	if err != nil || e.Revision != two || e.Limit != (Limit{7, time.Minute, Even}) || e.Plan != nil || e.Members != nil || e.Faults != nil {
		t.Errorf("%+v, %v", e, err)
	}
	if err := l.Delete(ctx, "mail", one); !errors.Is(err, ErrConflict) {
		t.Errorf("Delete of what has changed gives %v", err)
	}
	if err := l.Delete(ctx, "mail", 0); !errors.Is(err, ErrConflict) {
		t.Errorf("Delete of revision 0 gives %v", err)
	}
	if err := l.Delete(ctx, "mail", two); err != nil {
		t.Error(err)
	}
	if _, err := l.Set(ctx, "mail", limit, AnyRevision); err != nil {
		t.Error(err)
	}
}

// TestLimitsRefuse: invalid limits are not written, and invalid names reach no key.
func TestLimitsRefuse(t *testing.T) {
	t.Parallel()
	l := Limits{Client: newClient(t, etcd.Start(t).Addr)}
	for _, limit := range []Limit{{}, {-1, time.Second, Even}, {1, time.Nanosecond, Even}, {1, time.Second, "most"}, {1 << 50, time.Second, ""}} {
		if _, err := l.Set(t.Context(), "mail", limit, 0); !errors.Is(err, errRecord) {
			t.Errorf("%+v: %v", limit, err)
		}
	}
	good := Limit{1, time.Second, Even}
	for _, name := range []string{"", "a/b", "a b", "ü", strings.Repeat("x", 129)} {
		if _, err := l.Set(t.Context(), name, good, 0); err == nil || errors.Is(err, ErrConflict) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := (Limits{Client: l.Client, Prefix: "x"}).List(t.Context()); err == nil || !strings.Contains(err.Error(), "ends with /") {
		t.Errorf("a prefix without an end: %v", err)
	}
	if _, err := (Limits{}).Get(t.Context(), "mail"); err == nil || !strings.Contains(err.Error(), "clientv3.New") {
		t.Errorf("no client: %v", err)
	}
	k := keysOf(DefaultPrefix, "mail")
	present := plan{limit: 5, per: 7 * time.Second, members: []string{"a"}}
	if _, err := l.Client.Put(t.Context(), k.plan(), present.encode()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Set(t.Context(), "mail", Limit{5, 24 * time.Hour, Even}, 0); err == nil || !strings.Contains(err.Error(), "choose a length") {
		t.Errorf("windows that never meet: %v", err)
	}
	e, err := l.Get(t.Context(), "mail")
	if err != nil || e.Revision != 0 || e.Plan == nil || e.Plan.Per != 7*time.Second {
		t.Errorf("%+v, %v: want nothing written", e, err)
	}
}

// TestList gives all providers by name, over several pages, and reports invalid values.
func TestList(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	l := Limits{Client: newClient(t, server.Addr)}
	if all, err := l.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v: want none", all, err)
	}
	lease, err := l.Client.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	const many = pageKeys + 20
	for i := range many {
		if _, err := l.Set(t.Context(), fmt.Sprintf("p%04d", i), Limit{int64(i), time.Second, Even}, 0); err != nil {
			t.Fatal(err)
		}
	}
	server.CTL("put", "/headgate/pace/bad/limit", "5")
	server.CTL("put", "/headgate/pace/other", "5")
	server.CTL("put", "/headgate/pace/a b/limit", `{"limit":5,"per":"1s"}`)
	server.CTL("put", fmt.Sprintf("--lease=%x", int64(lease.ID)), "/headgate/pace/few/members/x", `{"at_us":1000000,"demand":5,"bound_us":0}`)
	all, err := l.List(t.Context())
	if err != nil || len(all) != many+2 {
		t.Fatalf("%d, %v: want %d", len(all), err, many+2)
	}
	if e := all[0]; e.Provider != "bad" || e.Revision == 0 || len(e.Faults) != 1 || !strings.Contains(e.Faults[0], "/bad/limit") {
		t.Errorf("%+v", e)
	}
	few := Member{ID: "x", Index: -1, Demand: 5, Seen: time.Unix(1, 0).UTC()}
	if e := all[1]; e.Provider != "few" || e.Revision != 0 || len(e.Members) != 1 || e.Members[0] != few {
		t.Errorf("%+v", e)
	}
	for i, e := range all[2:] {
		if e.Provider != fmt.Sprintf("p%04d", i) || e.Limit.Count != int64(i) {
			t.Errorf("%+v: want p%04d", e, i)
		}
	}
}

// TestWatchLimits: Watch gives the present data of a provider, and its changes.
func TestWatchLimits(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	ctx, cancel := context.WithCancel(t.Context())
	entries, done := make(chan Entry, 1000), make(chan error, 1)
	go func() { done <- f.limits.Watch(ctx, provider, func(e Entry) { entries <- e }) }()
	next := func(what string, is func(Entry) bool) {
		t.Helper()
		for deadline := time.After(long); ; {
			select {
			case e := <-entries:
				if e.Provider != provider {
					t.Fatalf("%+v", e)
				}
				if is(e) {
					return
				}
			case <-deadline:
				t.Fatalf("not told: %s", what)
			}
		}
	}
	next("nothing", func(e Entry) bool { return e.Revision == 0 && e.Members == nil })
	f.set(100, window, Even)
	next("the limit", func(e Entry) bool { return e.Limit.Count == 100 && e.Plan == nil })
	a := f.join("a")
	next("the plan", func(e Entry) bool {
		return e.Plan != nil && e.Plan.Limit == 100 && e.Plan.Instances == 1 && e.Plan.Per == window &&
			time.Until(e.Plan.From).Abs() < time.Minute && e.Plan.Revision > e.Revision &&
			len(e.Members) == 1 && e.Members[0].ID == "a" && e.Members[0].Index == 0 && time.Since(e.Members[0].Seen).Abs() < time.Minute
	})
	a.wants(17)
	next("its demand", func(e Entry) bool { return len(e.Members) == 1 && e.Members[0].Demand == 17 })
	f.server.Restart()
	f.set(70, window, Even)
	next("another limit", func(e Entry) bool { return e.Limit.Count == 70 })
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Watch ends with %v", err)
	}
	gone, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	<-gone.Done()
	if err := f.limits.Watch(gone, provider, func(Entry) {}); err != nil {
		t.Errorf("a Watch without time gives %v", err)
	}
	if err := f.limits.Watch(t.Context(), "a/b", func(Entry) {}); err == nil {
		t.Error("a Watch of no provider gives no error")
	}
}

// TestClockOffset: an instance with a clock ahead of all others detects that, and the others see
// no offset.
func TestClockOffset(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	f.set(100, window, Even)
	const ahead = 700 * time.Millisecond
	f.join("a")
	b := f.join("b")
	c := f.join("c", func(c *Config) { c.Wall = func() headgate.Instant { return wall().Add(ahead) } })
	near := func(i *instance, want time.Duration) func() bool {
		return func() bool {
			i.mu.Lock()
			defer i.mu.Unlock()
			n := len(i.offsets)
			return n > 0 && (i.offsets[n-1]-want).Abs() < 200*time.Millisecond
		}
	}
	f.until("c knows that it is ahead", near(c, ahead))
	f.until("b stands between a and c", near(b, -ahead/2))
	f.join("d")
	f.until("b is as most are", near(b, 0))
}

// TestWithoutEtcd: an instance starts before etcd, reports that it waits for etcd, and gets its
// part when etcd starts.
func TestWithoutEtcd(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	f.server.Kill()
	a := f.join("a")
	f.until("it is said", func() bool { return a.faulty("cannot be read") })
	if !a.lost() || len(a.plans) > 0 {
		t.Errorf("it goes on: %v", a.plans)
	}
	f.server.Restart()
	f.until("it is said what to do", func() bool { return a.faulty("headgate ctl limit set mail") })
	f.set(10, window, Even)
	f.share(10, a)
	if err := a.source.Follow(t.Context(), a); !errors.Is(err, errFollowed) {
		t.Errorf("a second Follow gives %v", err)
	}
}
