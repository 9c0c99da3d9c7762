package decisions

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/testkit/guards"
	"github.com/headgate/headgate/guard"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
	"github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// returnOf gives back the first request of a message.
func returnOf(message uint64) []*headgatev1.Return {
	return []*headgatev1.Return{{Message: message, Indexes: []uint32{0}}}
}

// slowReturns is a shared store that gives units back slowly, and lets an Apply overtake.
type slowReturns struct {
	*memory.Store

	overtaken atomic.Int64
	applied   chan struct{}
}

func (s *slowReturns) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	select {
	case s.applied <- struct{}{}:
		s.overtaken.Add(1)
	default:
	}
	return s.Store.Apply(ctx, ops, decisions)
}

func (s *slowReturns) Return(ctx context.Context, receipts []headgate.Receipt) error {
	slow := time.NewTimer(20 * time.Millisecond)
	defer slow.Stop()
	select {
	case <-s.applied:
	case <-slow.C:
	}
	return s.Store.Return(ctx, receipts)
}

// TestReturnsComeFirst: no request overtakes the returns of the messages before it, although messages are decided together: neither one
// message later nor several.
func TestReturnsComeFirst(t *testing.T) {
	store, err := memory.New(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	slow := &slowReturns{Store: store, applied: make(chan struct{})}
	key, err := rule.ParsePart("all")
	if err != nil {
		t.Fatal(err)
	}
	limit := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 2, Per: 24 * time.Hour}}
	g, err := guard.New(guard.Config{Store: slow, Rules: []guard.Rule{{Rule: rule.Rule{Name: "two", Key: []rule.Part{key}}, Policies: []headgate.Policy{limit}}}})
	if err != nil {
		t.Fatal(err)
	}
	c := serve(t, g, Options{Shared: true}).open(t)
	c.send(&headgatev1.DecideRequest{Requests: requestsFor("/")})
	c.send(&headgatev1.DecideRequest{Requests: requestsFor("/")})
	if got := verdicts(c.receive()) + verdicts(c.receive()); got != "aa" {
		t.Fatalf("at the start: got %s", got)
	}
	for round := range uint64(5) {
		c.send(&headgatev1.DecideRequest{Returns: returnOf(2 * round)})
		c.send(&headgatev1.DecideRequest{Returns: returnOf(2*round + 1)})
		c.send(&headgatev1.DecideRequest{Requests: requestsFor("/")})
		c.send(&headgatev1.DecideRequest{Requests: requestsFor("/")})
		if got := verdicts(c.receive()) + verdicts(c.receive()); got != "aa" {
			t.Errorf("round %d: got %s, want both requests to pass: two units came back before", round, got)
		}
	}
	if n := slow.overtaken.Load(); n > 0 {
		t.Errorf("%d requests overtook returns", n)
	}
}

// TestReturnsComeFirstOnRedis: each request passes after the return of the unit that it needs, also if the key was refused before, and
// with the memory of refusals and prefetch.
func TestReturnsComeFirstOnRedis(t *testing.T) {
	for name, settings := range map[string]string{
		"plain": "deny_cache: 0s\n", "deny cache": "deny_cache: 1s\n", "prefetch": "deny_cache: 1s\nprefetch: {hold: 1s}\n",
	} {
		for _, refused := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				server := redis.Start(t)
				g := guards.New(t, "store: redis://"+server.Addr+"\nstore_timeout: 20s\n"+settings+
					"rules: [{name: one, key: [all], algorithm: fixed_window, limits: [1/1d]}]")
				c := serve(t, g, Options{Shared: true}).open(t)
				ask := func() string {
					c.send(&headgatev1.DecideRequest{Requests: requestsFor("/")})
					return verdicts(c.receive())
				}
				if got := ask(); got != "a" {
					t.Fatalf("at the start: got %s", got)
				}
				message, failed := uint64(0), 0
				for range 60 {
					number := message
					if refused {
						message++
						if got := ask(); got != "d" {
							t.Fatalf("above the limit: got %s", got)
						}
					}
					c.send(&headgatev1.DecideRequest{Returns: returnOf(number)})
					message++
					if got := ask(); got != "a" {
						failed++
						c.send(&headgatev1.DecideRequest{Requests: requestsFor("/")}) // The unit is free by now.
						message++
						if got := verdicts(c.receive()); got != "a" {
							t.Fatalf("much later: got %s", got)
						}
					}
				}
				if failed > 0 {
					t.Errorf("after a refusal %t: %d of 60 requests were refused, although a unit had come back", refused, failed)
				}
			})
		}
	}
}
