package redis_test

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/redis"
)

// TestCallersThatLeftAreCountedOnce: callers leave while the first connection is not there. Each is counted once.
func TestCallersThatLeftAreCountedOnce(t *testing.T) {
	dials := make(chan struct{})
	store := open(t, redis.Config{Client: rueidis.ClientOption{
		InitAddress: []string{"127.0.0.1:1"},
		DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			select {
			case <-dials:
			case <-ctx.Done():
			}
			return nil, net.ErrClosed
		},
	}, Breaker: patient})
	defer close(dials)
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Hour}})
	const calls = 40
	done := make(chan error, calls)
	for range calls {
		go func() { _, err := take(store, id, "k", time.Second); done <- err }()
	}
	for range calls {
		if err := <-done; err == nil {
			t.Error("a decision without a connection")
		}
	}
	until(t, "the end of all calls", func() bool {
		n := store.Stats().Nodes
		return len(n) == 1 && n[0].Refused > 0
	})
	if n := store.Stats().Nodes[0].Undecided; n != calls {
		t.Errorf("%d are counted, want %d", n, calls)
	}
}
