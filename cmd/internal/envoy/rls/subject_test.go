package rls_test

import (
	"context"
	"errors"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/envoy/rls"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/memory"
)

// start is 10 s after the start of a minute, and in the middle of an hour and a day.
const start = headgate.Instant(1_699_999_990 * time.Second)

// subject is a service over a store in memory whose clock the test sets.
type subject struct {
	*rls.Service

	t     *testing.T
	now   headgate.Instant
	store *away
}

// away is a store that fails on command.
type away struct {
	*memory.Store

	down bool
}

// Apply implements headgate.Store.
func (s *away) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	if s.down {
		return errors.New("away")
	}
	return s.Store.Apply(ctx, ops, decisions)
}

// serve makes a service of the trees and the rules.
func serve(t *testing.T, o rls.Options, c guard.Config) *subject {
	t.Helper()
	s := &subject{t: t, now: start}
	store, err := memory.New(memory.Config{MaxMemory: 32 << 20, Clock: func() headgate.Instant { return s.now }})
	if err != nil {
		t.Fatal(err)
	}
	s.store = &away{Store: store}
	c.Store = s.store
	g, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Service = rls.New(g, o, 3)
	return s
}

// counted is a limit that counts as Envoy's service does.
func counted(count int64, per time.Duration) *guard.Leaf {
	return &guard.Leaf{Policies: []headgate.Policy{{
		Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: count, Per: per}, CountRejected: true, CountAll: true,
	}}}
}

// node is a descriptor of a tree with a limit.
func node(key, value string, l *guard.Leaf, below ...guard.Descriptor) guard.Descriptor {
	return guard.Descriptor{Key: key, Value: value, Leaf: l, Descriptors: below}
}

// asked is a descriptor of a request: keys and values in turns.
func asked(entries ...string) *commonv3.RateLimitDescriptor {
	d := &commonv3.RateLimitDescriptor{}
	for i := 0; i < len(entries); i += 2 {
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: entries[i], Value: entries[i+1]})
	}
	return d
}

// hits sets the hits of a descriptor.
func hits(n uint64, d *commonv3.RateLimitDescriptor) *commonv3.RateLimitDescriptor {
	d.HitsAddend = wrapperspb.UInt64(n)
	return d
}

// back makes a descriptor give its hits back.
func back(n uint64, d *commonv3.RateLimitDescriptor) *commonv3.RateLimitDescriptor {
	d.IsNegativeHits = true
	return hits(n, d)
}

// ask asks about descriptors, and returns the statuses as code and remaining.
func (s *subject) ask(domain string, descriptors ...*commonv3.RateLimitDescriptor) *ratelimitv3.RateLimitResponse {
	s.t.Helper()
	r, err := s.ShouldRateLimit(s.t.Context(), &ratelimitv3.RateLimitRequest{Domain: domain, Descriptors: descriptors})
	if err != nil {
		s.t.Fatalf("domain %s: %v", domain, err)
	}
	if len(r.GetStatuses()) != len(descriptors) {
		s.t.Fatalf("got %d statuses for %d descriptors", len(r.GetStatuses()), len(descriptors))
	}
	return r
}

// brief is the short form of an answer: the overall code, then each status.
func brief(r *ratelimitv3.RateLimitResponse) string {
	text := word(r.GetOverallCode())
	for _, s := range r.GetStatuses() {
		text += " " + briefStatus(s)
	}
	return text
}

func request(domain string, d ...*commonv3.RateLimitDescriptor) *ratelimitv3.RateLimitRequest {
	return &ratelimitv3.RateLimitRequest{Domain: domain, Descriptors: d}
}
