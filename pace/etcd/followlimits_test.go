package etcd

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/etcd"
	"github.com/headgate/headgate/internal/testkit/network"
)

// seenLimits is one call of Follow's function.
type seenLimits struct {
	AllLimits

	err error
}

// TestFollowLimits follows the limits of a real etcd: changes, invalid values, an outage, and lost data.
func TestFollowLimits(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	link := network.New(t, server.Addr)
	ctx, cancel := context.WithCancel(t.Context())
	seen, ended := make(chan seenLimits, 100), make(chan error, 1)
	followed := Limits{Client: newClient(t, link.Addr)}
	go func() { ended <- followed.Follow(ctx, func(a AllLimits, err error) { seen <- seenLimits{a, err} }) }()
	next := func(story string, ok func(seenLimits) bool) {
		t.Helper()
		for {
			select {
			case s := <-seen:
				if ok(s) {
					return
				}
			case <-time.After(long):
				t.Fatalf("%s: not seen", story)
			}
		}
	}
	l := Limits{Client: newClient(t, server.Addr)}
	set := func(provider string, count int64) {
		t.Helper()
		if _, err := l.Set(t.Context(), provider, Limit{Count: count, Per: time.Minute}, AnyRevision); err != nil {
			t.Fatal(err)
		}
	}
	is := func(provider string, count int64) func(seenLimits) bool {
		return func(s seenLimits) bool { return s.Limits[provider].Count == count && s.err == nil }
	}
	next("no limit", func(s seenLimits) bool { return len(s.Limits) == 0 && s.err == nil })
	set("mail", 60)
	next("a limit", is("mail", 60))
	server.CTL("put", DefaultPrefix+"mail/limit", "{}")
	next("an invalid value", func(s seenLimits) bool { return s.Limits["mail"].Count == 60 && errors.Is(s.Faults["mail"], errRecord) })
	server.CTL("put", DefaultPrefix+"mail/members/a", "{}")
	set("sms", 0)
	next("a limit of 0", func(s seenLimits) bool { sms, ok := s.Limits["sms"]; return ok && sms.Count == 0 && len(s.Limits) == 2 })
	link.Cut()
	next("an outage", func(s seenLimits) bool {
		return s.err != nil && s.Limits["mail"].Count == 60 && strings.Contains(s.err.Error(), "the last ones stay")
	})
	set("mail", 70)
	server.CTL("del", DefaultPrefix+"sms/limit")
	link.Heal()
	next("changes of the outage", func(s seenLimits) bool { return is("mail", 70)(s) && len(s.Limits) == 1 && len(s.Faults) == 0 })
	if all, err := l.All(t.Context()); err != nil || len(all.Limits) != 1 || all.Limits["mail"].Count != 70 {
		t.Errorf("All gives %+v, %v", all, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Follow gives %v", err)
	}
	if err := (Limits{}).Follow(t.Context(), nil); err == nil {
		t.Error("Follow without a client gives no error")
	}
}

// TestKeptLimits: a provider with an invalid value keeps its limit. When etcd has lost its data, missing
// limits stay.
func TestKeptLimits(t *testing.T) {
	known := AllLimits{Limits: map[string]Limit{"bad": {Count: 1}, "gone": {Count: 2}, "new": {Count: 3}}}
	for _, c := range []struct {
		lost bool
		want map[string]int64
	}{
		{false, map[string]int64{"bad": 1, "new": 30}},
		{true, map[string]int64{"bad": 1, "gone": 2, "new": 30}},
	} {
		found := AllLimits{Limits: map[string]Limit{}, Faults: map[string]error{}}
		found.set("bad", []byte("x"))
		found.set("new", []byte(`{"limit":30,"per":"1s"}`))
		k := &knownLimits{all: known}
		k.keep(found, c.lost)
		if len(k.all.Limits) != len(c.want) {
			t.Errorf("lost %v: got %v", c.lost, k.all.Limits)
		}
		for provider, count := range c.want {
			if k.all.Limits[provider].Count != count {
				t.Errorf("lost %v: %s has %v", c.lost, provider, k.all.Limits[provider])
			}
		}
	}
}
