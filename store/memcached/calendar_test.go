package memcached_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/testkit/instances"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/store/memcached"
)

// TestMonthOnARealServer: a state is kept for longer than the 30 days of the protocol, and outlives our
// process. A caller whose clock is wrong by months counts nothing.
func TestMonthOnARealServer(t *testing.T) {
	server := testserver.Start(t)
	policy := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 5, Calendar: headgate.Month}}
	around := func(now time.Time) *headgate.Edges {
		const month = 30 * 24 * time.Hour
		start := headgate.Instant(now.Truncate(time.Hour).UnixNano())
		return &headgate.Edges{start.Add(-month), start, start.Add(month), start.Add(2 * month)}
	}
	e := around(time.Now())
	for i, left := range []int64{3, 1} {
		store := newStore(t, memcached.Config{Servers: []string{server.Addr}})
		id := prepare(t, store, policy)
		d := apply(t, store, headgate.Op{Key: "customer", Policy: id, Cost: 2, Edges: e})[0]
		if ends := d.At.Add(d.ResetAfter); d.Verdict != headgate.Allow || d.Remaining != left || ends.Sub(e[2]).Abs() > time.Second {
			t.Errorf("process %d: %s with %d left until %s, want %d left until %s", i, d.Verdict, d.Remaining, ends.Time(), left, e[2].Time())
		}
		wrong := []headgate.Op{{Key: "customer", Policy: id, Cost: 1, Edges: around(time.Now().AddDate(0, 4, 0))}}
		err := store.Apply(t.Context(), wrong, make([]headgate.Decision, 1))
		if _, found := errortype.As[*headgate.EdgeError](err); !found {
			t.Errorf("a clock that is 4 months ahead: %v", err)
		}
	}
}

// TestWrongClocks: the clock of a real server ends a month for all instances, and refuses those that do not know the
// present month.
func TestWrongClocks(t *testing.T) {
	server := testserver.Start(t)
	open := func() headgate.Store { return newStore(t, memcached.Config{Servers: []string{server.Addr}}) }
	instances.DecideAlike(t, open, time.Second)
	instances.Outside(t, open())
}

// TestNoteOutlivesReceipt: after a step back of the clock, a take counts in the window that the step has left. The note that its
// receipt was returned is kept until the receipt is worthless, or else a second return would return the units of other takes.
func TestNoteOutlivesReceipt(t *testing.T) {
	server := testserver.Start(t)
	now := headgate.Instant(1_704_067_260_000_000_000) // 2024-01-01 00:01
	store := newStore(t, memcached.Config{Servers: []string{server.Addr}, Clock: func() headgate.Instant { return now }})
	id := prepare(t, store, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 5, Calendar: headgate.Day}})
	take := func() headgate.Receipt {
		e := calendar.Default().Edges(headgate.Day, now.Time())
		return apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 1, Edges: &e})[0].Receipt
	}
	take()
	now = now.Add(-23 * time.Hour)
	r := take()
	giveBack(t, store, r)
	valid := r.From.Add(limit.LongestWindow(headgate.Day)).Sub(now)
	for _, line := range say(t, server.Addr, "lru_crawler metadump all") {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "key="), " ")
		if name = strings.ReplaceAll(name, "%3A", ":"); !strings.Contains(name, ":r") {
			continue
		}
		got := say(t, server.Addr, "mg "+name+" t")[0]
		seconds, err := strconv.Atoi(strings.TrimPrefix(got, "HD t"))
		if kept := time.Duration(seconds) * time.Second; err != nil || kept < valid {
			t.Errorf("the note is kept for %s (%q), and the receipt is valid for %s", kept, got, valid)
		}
		return
	}
	t.Error("the server has no note")
}
