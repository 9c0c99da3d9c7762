package decisions

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// serveShut serves as with a shared store, which is shut. Each path counts under its own key.
func serveShut(t *testing.T) (*shut, *running) {
	t.Helper()
	behind, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	path, err := rule.ParsePart("path")
	if err != nil {
		t.Fatal(err)
	}
	store := &shut{Store: behind, open: make(chan struct{})}
	g, err := guard.New(guard.Config{Store: store, StoreTimeout: patience, Rules: []guard.Rule{{
		Rule: rule.Rule{Name: "many", Key: []rule.Part{path}}, Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 1 << 30, Per: time.Hour}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return store, serveWithin(t, g, Options{Shared: true}, 4<<30) // The memory of the calls is no bound here.
}

// paths makes n requests whose paths begin with a prefix. Requests with one key would be one Op.
func paths(prefix string, n int) []*headgatev1.Request {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("/", prefix, "/", i)
	}
	return requestsFor(all...)
}

// TestMessageIsOneApply: with a shared store, a message is one query, whose Ops are in the order of the requests.
func TestMessageIsOneApply(t *testing.T) {
	store, r := serveShut(t)
	close(store.open)
	c := r.open(t)
	for n, ask := range []func(all []*headgatev1.Request){
		func(all []*headgatev1.Request) {
			if _, err := r.decide(t, all...); err != nil {
				t.Error(err)
			}
		},
		func(all []*headgatev1.Request) {
			c.send(&headgatev1.DecideRequest{Requests: all})
			c.receive()
		},
	} {
		ask(paths(fmt.Sprint(n), maxRequests))
		all := store.take()
		if len(all) != 1 || len(all[0]) != maxRequests {
			t.Fatalf("way %d: %d queries, want one with %d Ops", n, len(all), maxRequests)
		}
		first := all[0]
		for _, request := range paths(fmt.Sprint(n), maxRequests)[:50] {
			ask([]*headgatev1.Request{request})
		}
		if got := slices.Concat(store.take()...); !slices.Equal(got, first[:50]) {
			t.Errorf("way %d: the Ops of a message are in the order %q, want %q", n, first[:50], got)
		}
	}
}

// TestUnansweredMessages: a stream has at most 64 messages that are not answered. The others wait until an answer goes.
func TestUnansweredMessages(t *testing.T) {
	store, r := serveShut(t)
	c := r.open(t)
	const messages = 300
	for n := range messages {
		c.send(&headgatev1.DecideRequest{Requests: paths(fmt.Sprint(n), 1)})
	}
	until(t, "64 messages at the store", func() bool { return store.waiting.Load() == 64 })
	close(store.open)
	for n := range messages {
		if got := verdicts(c.receive()); got != "a" {
			t.Fatalf("message %d gets %q", n, got)
		}
	}
	if most := store.most.Load(); most != 64 {
		t.Errorf("%d messages were not answered at once, want 64", most)
	}
}
