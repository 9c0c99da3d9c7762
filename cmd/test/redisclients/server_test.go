package redisclients_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/front/resp"
	"github.com/headgate/headgate/cmd/internal/listen"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// clock is set by tests.
type clock struct{ elapsed atomic.Int64 }

func (c *clock) set(elapsed time.Duration) { c.elapsed.Store(int64(elapsed)) }

func (c *clock) now() headgate.Instant {
	const epoch = headgate.Instant(1_700_000_000_000_000_000)
	return epoch + headgate.Instant(c.elapsed.Load())
}

// start serves until the test ends. The rules allow 2 a minute for each ip.
func start(t *testing.T, c *clock) string {
	t.Helper()
	store, err := memory.New(memory.Config{Clock: c.now})
	if err != nil {
		t.Fatal(err)
	}
	key, err := rule.ParsePart("ip")
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Store: store, MaxSentLimits: 100, Rules: []guard.Rule{{
		Rule:     rule.Rule{Name: "per-ip", Key: []rule.Part{key}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 2, Per: time.Minute}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := listen.Open(t.Context(), listen.Config{Address: "127.0.0.1:0", WriteTimeout: resp.WriteTimeout})
	if err != nil {
		t.Fatal(err)
	}
	s := resp.New(resp.Config{Guard: g, Version: "1.2.3", Log: slog.New(slog.DiscardHandler)})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = l.Close()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := s.Drain(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}
