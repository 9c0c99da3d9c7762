package table_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/client/internal/leases"
	client "github.com/headgate/headgate/client/lease"
	"github.com/headgate/headgate/internal/lease/bucket"
	"github.com/headgate/headgate/internal/lease/state"
)

func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // In a bubble of synctest.
	synctest.Wait()
}

// group makes a group of servers with a resource of 100/s for each name db/*.
func group(t *testing.T) *leases.Group {
	t.Helper()
	g := leases.New(t, state.Config{
		Resources: []state.Resource{
			{Match: "slots", Capacity: 7, Slots: true, Algorithm: state.MaxMin, Safe: -1},
			{Match: "db/*", Capacity: 100_000, Algorithm: state.MaxMin, Safe: 3000},
		},
		Lease: 15 * time.Second, Refresh: 5 * time.Second,
	})
	t.Cleanup(g.Close)
	return g
}

// process makes the table of one process.
func process(t *testing.T, g *leases.Group, limit int, mode client.OnLoss, log *slog.Logger) (*bucket.Table, *client.Client) {
	t.Helper()
	k, err := client.New(client.Config{Servers: []string{"a"}, Dial: g.Dial, OnLoss: mode})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	table, err := bucket.New(bucket.Config{Source: k.Source(), Max: limit, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	return table, k
}

// ask takes one unit, and waits a second for a first lease.
func ask(t *testing.T, table *bucket.Table, resource string) (headgate.Decision, error) {
	t.Helper()
	var out bucket.Outcome
	err := table.Take(t.Context(), []byte(resource), &bucket.Ask{Cost: 1, Patience: time.Second, Group: "db/{1}"}, &out)
	return out.Decision, err
}

// load asks for a rate of units a second, and gives the rate that passes.
func load(t *testing.T, table *bucket.Table, resource string, rate int, span time.Duration) float64 {
	t.Helper()
	n := int(span.Seconds() * float64(rate))
	passed := 0
	for range n {
		d, err := ask(t, table, resource)
		if err == nil && d.Verdict == headgate.Allow {
			passed++
		}
		time.Sleep(time.Second / time.Duration(rate)) //nolint:forbidigo // In a bubble of synctest.
	}
	return float64(passed) / span.Seconds()
}

// TestTable is the story of a resource that two processes share.
func TestTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t)
		a := g.Start("a")
		one, _ := process(t, g, 0, client.Safe, nil)
		two, _ := process(t, g, 0, client.Safe, nil)
		began := time.Now()
		if d, err := ask(t, one, "db/x"); err != nil || d.Verdict != headgate.Allow || d.Limit != 1 || time.Since(began) > 100*time.Millisecond {
			t.Fatalf("the first request: %+v %v after %v", d, err, time.Since(began))
		}
		if d, err := ask(t, one, "db/x"); err != nil || d.Verdict != headgate.Deny || d.Reason != headgate.OverLimit || d.RetryAfter != 500*time.Millisecond {
			t.Errorf("the second one: %+v %v, want a refusal for 0.5 s at 2/s", d, err)
		}
		load(t, one, "db/x", 60, 3*time.Second)
		if rate := load(t, one, "db/x", 60, 5*time.Second); rate < 59.5 {
			t.Errorf("%.1f/s of 60/s pass, while nobody else wants units", rate)
		}
		var ended sync.WaitGroup
		rates := make([]float64, 2)
		for i, table := range []*bucket.Table{one, two} {
			ended.Go(func() {
				load(t, table, "db/x", []int{20, 200}[i], 4*time.Second)
				rates[i] = load(t, table, "db/x", []int{20, 200}[i], 10*time.Second)
			})
		}
		ended.Wait()
		if rates[0] < 19.5 || rates[1] < 70 || rates[0]+rates[1] > 101 {
			t.Errorf("%.1f of 20/s and %.1f of 200/s, want 20 and nearly 80", rates[0], rates[1])
		}
		pass(31 * time.Second)
		if n := one.Stats().Leases + two.Stats().Leases; n != 0 {
			t.Errorf("%d leases after 31 idle seconds", n)
		}
		pass(time.Second)
		if usage, _ := a.Usage("db/x"); usage.Claims != 0 {
			t.Errorf("%+v at the server", usage)
		}
	})
}

// TestLoss: when the lease ends, on_loss decides; when the server is back, the lease does.
func TestLoss(t *testing.T) {
	for mode, want := range map[client.OnLoss]float64{client.Safe: 3, client.Pessimistic: 0, client.Optimistic: 40} {
		synctest.Test(t, func(t *testing.T) {
			g := group(t)
			a := g.Start("a")
			table, k := process(t, g, 0, mode, nil)
			load(t, table, "db/x", 40, 5*time.Second)
			a.Kill()
			if rate := load(t, table, "db/x", 40, 5*time.Second); rate < 39 {
				t.Errorf("%v: %.1f/s while the lease is valid", mode, rate)
			}
			load(t, table, "db/x", 40, 12*time.Second)
			if rate := load(t, table, "db/x", 40, 10*time.Second); rate < want*0.9 || rate > want*1.05 {
				t.Errorf("%v: %.1f/s after the end, want %v", mode, rate, want)
			}
			if _, err := ask(t, table, "db/x"); (mode == client.Pessimistic) != errors.Is(err, bucket.ErrLost) {
				t.Errorf("%v: %v", mode, err)
			}
			g.Start("a") // It gives nothing until the leases of its predecessor have ended.
			load(t, table, "db/x", 40, 25*time.Second)
			if rate := load(t, table, "db/x", 40, 5*time.Second); rate < 39 {
				t.Errorf("%v: %.1f/s with a new server", mode, rate)
			}
			_ = k.Close()
			if _, err := ask(t, table, "db/x"); !errors.Is(err, bucket.ErrLost) {
				t.Errorf("%v after the client was closed", err)
			}
		})
	}
}

// TestFirstLease: requests wait for it, together, and only once.
func TestFirstLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t)
		table, _ := process(t, g, 0, client.Safe, nil)
		var waits sync.WaitGroup
		began := time.Now()
		for range 5 {
			waits.Go(func() {
				if _, err := ask(t, table, "db/x"); !errors.Is(err, bucket.ErrNoLease) || time.Since(began) != time.Second {
					t.Errorf("%v after %v, want no lease after a second", err, time.Since(began))
				}
			})
		}
		waits.Wait()
		if _, err := ask(t, table, "db/x"); !errors.Is(err, bucket.ErrNoLease) || time.Since(began) != time.Second {
			t.Errorf("a later request: %v after %v, want no further wait", err, time.Since(began))
		}
		g.Start("a")
		pass(10 * time.Second)
		if d, err := ask(t, table, "db/x"); err != nil || d.Verdict != headgate.Allow {
			t.Errorf("%+v %v when the lease is there", d, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var out bucket.Outcome
		if err := table.Take(ctx, []byte("db/y"), &bucket.Ask{Cost: 1, Patience: time.Second}, &out); !errors.Is(err, context.Canceled) {
			t.Errorf("%v for a caller that has left", err)
		}
		pass(time.Second)
		if _, err := ask(t, table, "other"); err == nil || !strings.Contains(err.Error(), "no pattern matches") {
			t.Errorf("%v for an unknown resource", err)
		}
		if _, err := ask(t, table, "slots"); !errors.Is(err, bucket.ErrSlots) {
			t.Errorf("%v for slots", err)
		}
	})
}

// TestSlotsAreLogged: a rule on a resource with slots always falls back, and the log says why, once.
func TestSlotsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t)
		g.Start("a")
		var log strings.Builder
		table, _ := process(t, g, 0, client.Safe, slog.New(slog.NewTextHandler(&log, nil)))
		for range 30 {
			_, _ = ask(t, table, "slots")
			pass(time.Second)
		}
		if n := strings.Count(log.String(), "resource=slots"); n != 1 {
			t.Errorf("%d lines, want 1: %s", n, log.String())
		}
	})
}

// TestFull has more resources than Max, as a client does that invents names: the first ones keep their leases.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t)
		g.Start("a")
		var log strings.Builder
		table, _ := process(t, g, 3, client.Safe, slog.New(slog.NewTextHandler(&log, nil)))
		for i := range 10_001 {
			_, err := ask(t, table, fmt.Sprintf("db/%d", i))
			if (i < 3) != (err == nil) || i >= 3 && !errors.Is(err, bucket.ErrFull) {
				t.Fatalf("resource %d: %v", i, err)
			}
		}
		if s := table.Stats(); s != (bucket.Stats{Leases: 3, Full: 9998}) {
			t.Errorf("%+v", s)
		}
		if n := strings.Count(log.String(), "max_leases"); n == 0 || n > 4 {
			t.Errorf("%d lines in the log, want one: %s", n, log.String())
		}
		for range 35 {
			pass(time.Second)
			_, _ = ask(t, table, "db/1")
		}
		if d, err := ask(t, table, "db/5"); err != nil || d.Verdict != headgate.Allow || table.Stats().Leases != 2 {
			t.Errorf("%+v %v %+v: the idle ones were not released", d, err, table.Stats())
		}
		table.Release("db/{1}")
		if table.Stats().Leases != 0 {
			t.Errorf("%+v after Release", table.Stats())
		}
		if _, err := ask(t, table, "db/1"); err != nil {
			t.Errorf("%v: a request after Release claims it again", err)
		}
		table.Close()
		if _, err := ask(t, table, "db/1"); !errors.Is(err, bucket.ErrClosed) {
			t.Errorf("%v after Close", err)
		}
	})
}

// TestReleaseOfASharedResource: db/{1} and db/x are one resource, and the end of one rule does not end the lease of the other.
func TestReleaseOfASharedResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t)
		g.Start("a")
		table, _ := process(t, g, 0, client.Safe, nil)
		_, _ = ask(t, table, "db/x")
		_, _ = ask(t, table, "db/y")
		var out bucket.Outcome
		if err := table.Take(t.Context(), []byte("db/x"), &bucket.Ask{Cost: 1, Patience: time.Second, Group: "db/x"}, &out); err != nil {
			t.Error(err)
		}
		table.Release("db/{1}")
		if s := table.Stats(); s.Leases != 1 {
			t.Errorf("%d leases, want the one that both have used", s.Leases)
		}
		pass(31 * time.Second)
		if s := table.Stats(); s.Leases != 0 {
			t.Errorf("%d leases that are idle", s.Leases)
		}
	})
}

// TestReturn gives units back, peeks and refunds. Known resources cost no allocation.
func TestReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t)
		g.Start("a")
		table, _ := process(t, g, 0, client.Safe, nil)
		name, out := []byte("db/x"), bucket.Outcome{}
		do := func(kind headgate.OpKind, cost int64) *headgate.Decision {
			if err := table.Take(t.Context(), name, &bucket.Ask{Cost: cost, Burst: 10, Kind: kind, Patience: time.Second}, &out); err != nil {
				t.Error(kind, err)
			}
			return &out.Decision
		}
		if do(headgate.Refund, 3); table.Stats().Leases != 0 {
			t.Error("a refund claims a resource")
		}
		if d := do(headgate.Take, 4); d.Limit != 10 || d.Remaining != 6 {
			t.Errorf("%+v, want 6 of 10", d)
		}
		if d := do(headgate.Peek, 6); d.Verdict != headgate.Allow || d.Remaining != 6 {
			t.Errorf("%+v after a peek", d)
		}
		if d := do(headgate.Refund, 2); d.Remaining != 8 {
			t.Errorf("%+v after a refund", d)
		}
		do(headgate.Take, 8)
		out.Taken.Return()
		out.Taken.Return()
		if d := do(headgate.Peek, 1); d.Remaining != 8 {
			t.Errorf("%+v after a return", d)
		}
		if n := testing.AllocsPerRun(1000, func() { do(headgate.Take, 1) }); n != 0 {
			t.Errorf("Take allocates %v times", n)
		}
	})
}
