package report

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

type customer string

// Lookup implements headgate.Values.
func (c customer) Lookup(string) (string, bool) { return string(c), true }

// softGuard has a quota of 10 units a minute, with a soft limit of 5 units and a hard one of 12.
func softGuard(t *testing.T, r *Report, clock func() headgate.Instant) *guard.Guard {
	t.Helper()
	part, err := rule.ParsePart("header:X-Customer")
	if err != nil {
		t.Fatal(err)
	}
	minute := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 10, Per: time.Minute}}
	quotas, err := guard.NewQuotas([]guard.Plan{{Name: "p", After: guard.AfterMeter, Quotas: []guard.QuotaLimits{
		{Quota: "calls", Limits: []guard.QuotaLimit{{Policy: minute, Soft: 50, Hard: 12}}},
	}}}, "p", nil)
	if err != nil {
		t.Fatal(err)
	}
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	c := guard.Config{Store: store, Quotas: quotas, Rules: []guard.Rule{{Rule: rule.Rule{Name: "api", Quota: "calls", Key: []rule.Part{part}}}}}
	c.Observer = r.FollowConfig(&c)
	g, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestSoftEvents: one event for each customer and window, however many requests are above the soft limit. The counters
// count each of them, and the metered units.
func TestSoftEvents(t *testing.T) {
	var log bytes.Buffer
	r := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Keys: KeysPlain})
	now := headgate.Instant(0)
	g := softGuard(t, r, func() headgate.Instant { return now })
	var a guard.Answer
	for range 2 {
		for _, name := range []customer{"a", "b"} {
			for range 12 {
				if err := g.Decide(t.Context(), &headgate.Request{Header: name}, &a); err != nil {
					t.Fatal(err)
				}
			}
		}
		now += headgate.Instant(time.Minute)
	}
	r.Close()
	for _, name := range []string{"a", "b"} {
		want := fmt.Sprintf(`key="customer=\"%s\""`, name)
		n := 0
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "soft limit exceeded") && strings.Contains(line, want) {
				n++
			}
		}
		if n != 2 {
			t.Errorf("customer %s: got %d events in two windows, want 2\n%s", name, n, log.String())
		}
	}
	counts := r.Rules()[0]
	if counts.AboveSoft != 2*2*7 || counts.Metered != 2*2*2 || r.Unwarned() != 0 {
		t.Errorf("got %d above the soft limit, %d metered units and %d dropped events, want 28, 8 and 0", counts.AboveSoft, counts.Metered, r.Unwarned())
	}
}

// TestWarnedIsBounded: more customers than the bound get no event, until windows end.
func TestWarnedIsBounded(t *testing.T) {
	r := New(Config{})
	now := headgate.Instant(time.Second)
	g := softGuard(t, r, func() headgate.Instant { return now })
	var a guard.Answer
	if err := g.Decide(t.Context(), &headgate.Request{Header: customer("a"), Cost: 6}, &a); err != nil {
		t.Fatal(err)
	}
	w := warned{until: map[uint64]headgate.Instant{}}
	for i := range uint64(maxWarned) {
		w.until[i] = headgate.Instant(time.Minute)
	}
	result := &a.Results[0]
	if w.first(result) || len(w.until) != maxWarned || w.dropped != 1 {
		t.Errorf("at the bound: got %d customers and %d dropped events, want %d and 1", len(w.until), w.dropped, maxWarned)
	}
	result.Decision.At = headgate.Instant(2 * time.Minute)
	if !w.first(result) || len(w.until) != 1 {
		t.Errorf("after the windows: got %d customers, want 1", len(w.until))
	}
	if w.first(result) {
		t.Error("a second request of the window gets an event")
	}
	w.forget(result)
	if !w.first(result) {
		t.Error("an event that the log has no capacity for is not sent again")
	}
}
