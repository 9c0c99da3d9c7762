package memcached_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/store/memcached"
)

// TestLookup: decisions fail at once until a lookup gives valid servers. They then count on these servers, and no
// further lookup is made.
func TestLookup(t *testing.T) {
	server := testserver.Start(t)
	results := make(chan []string)
	var lookups atomic.Int64
	var logged bytes.Buffer // Read it only after Close.
	s, err := memcached.New(memcached.Config{
		Log: slog.New(slog.NewTextHandler(&logged, nil)),
		Lookup: func(ctx context.Context) ([]string, error) {
			lookups.Add(1)
			select {
			case servers := <-results:
				if servers == nil {
					return nil, errors.New("no such host")
				}
				return servers, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id, err := s.Prepare(headgate.Policy{Limit: headgate.Limit{Count: 5, Per: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	op, d := []headgate.Op{{Key: "k", Policy: id, Cost: 2}}, make([]headgate.Decision, 1)
	for _, bad := range [][]string{nil, {}, {"a:1", "a:1"}, {"without a port"}} {
		if err := s.Apply(t.Context(), op, d); !errors.Is(err, headgate.ErrUnavailable) || d[0] != headgate.Undecided() {
			t.Errorf("before %q: %v, %+v", bad, err, d[0])
		}
		if err := s.Return(t.Context(), []headgate.Receipt{{Nonce: 1, Policy: id}}); !errors.Is(err, headgate.ErrUnavailable) {
			t.Errorf("a return before %q: %v", bad, err)
		}
		results <- bad
	}
	results <- []string{server.Addr}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for err = headgate.ErrUnavailable; errors.Is(err, headgate.ErrUnavailable) && ctx.Err() == nil; {
		err = s.Apply(ctx, op, d)
	}
	if err != nil || d[0].Remaining != 3 || len(s.Stats()) != 1 || lookups.Load() != 5 {
		t.Errorf("%v, %+v after %d lookups, with %d servers", err, d[0], lookups.Load(), len(s.Stats()))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if text := logged.String(); strings.Count(text, "are not found") != 1 || strings.Count(text, "are found") != 1 {
		t.Errorf("the log is\n%s", text)
	}
}

// TestLookupEndsWithClose: Close ends a lookup in progress.
func TestLookupEndsWithClose(t *testing.T) {
	began := make(chan struct{})
	s, err := memcached.New(memcached.Config{Lookup: func(ctx context.Context) ([]string, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	<-began
	if err := s.Close(); err != nil || len(s.Stats()) != 0 {
		t.Errorf("%v, %d servers", err, len(s.Stats()))
	}
}
