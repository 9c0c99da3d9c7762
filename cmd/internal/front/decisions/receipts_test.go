package decisions

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/cmd/internal/testkit/guards"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
	"github.com/headgate/headgate/internal/testkit/allocs"
	"github.com/headgate/headgate/internal/testkit/alone"
	"github.com/headgate/headgate/internal/testkit/race"
)

// ask decides a message of a stream that has no client.
func (x *stream) ask(t *testing.T, message *headgatev1.DecideRequest) {
	t.Helper()
	encoded, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	c := x.service.call(t.Context(), nil, nil)
	if err := c.Decode(encoded); err != nil || c.fault != nil {
		t.Fatal(err, c.fault)
	}
	if err := x.service.pending.Acquire(c.ctx, int64(c.n)); err != nil {
		t.Fatal(err)
	}
	x.takeReceipts(c)
	x.giveBack(c)
	x.decide(c)
}

// limited makes a service whose requests for /a take units of some limits, in a request that is allowed, or delayed.
func limited(t *testing.T, limits int, delay bool) *Service {
	t.Helper()
	var rules strings.Builder
	for i := range limits {
		fmt.Fprintf(&rules, "{name: r%d, match: {path: /a}, key: [\"header:h%d\"], limits: [1000000000/1d]},", i, i)
	}
	if delay {
		rules.WriteString("{name: slow, match: {path: /a}, key: [all], limits: [1000/1s], on_exceed: {action: delay, max_wait: 1m, max_waiters: 100000}},")
	}
	return New(guards.New(t, "rules: ["+rules.String()+"]"), Options{})
}

// TestMemoryOfReceipts: receipts take at most the memory that is counted for them.
func TestMemoryOfReceipts(t *testing.T) {
	if race.On { // The race detector takes memory of its own.
		return
	}
	if !alone.Here(t) {
		return
	}
	for _, shape := range []struct {
		requests, limits int
		delay            bool
	}{{1, 1, false}, {1, 4, false}, {1, 32, false}, {16, 1, false}, {1000, 1, false}, {1000, 4, false}, {1, 1, true}, {50, 3, true}} {
		s := limited(t, shape.limits, shape.delay)
		message := &headgatev1.DecideRequest{Requests: requestsFor(strings.Fields(strings.Repeat("/a ", shape.requests))...)}
		first := &stream{service: s}
		first.ask(t, message) // Fills the pools.
		first.close()
		all := make([]*stream, 4)
		got := allocs.Kept(func() {
			for i := range all {
				all[i] = &stream{service: s}
				for range maxStreamReceipts / shape.requests {
					all[i].ask(t, message)
				}
			}
		})
		const uncounted = 2 * (4 << 10) // The stream, its timer and the first ring.
		kept, counted := s.Stats().Receipts, s.bytes.Load()
		t.Logf("%+v: %d requests take %d bytes, %d count", shape, kept, got, counted)
		if got > counted+int64(len(all))*uncounted {
			t.Errorf("%+v: %d requests take %d bytes, and only %d count", shape, kept, got, counted)
		}
		if shape.requests == 1 && shape.limits == 1 && !shape.delay && kept > 0 && counted/kept*maxReceipts > config.ReceiptBytes {
			t.Errorf("%d requests with one limit do not fit in %d bytes: one has %d", maxReceipts, config.ReceiptBytes, counted/kept)
		}
		for _, x := range all {
			x.close()
		}
		if s.bytes.Load() != 0 {
			t.Errorf("%+v: %d bytes count after the end of all streams", shape, s.bytes.Load())
		}
	}
}

// TestReceiptsAreBoundedByMemory: without memory, the oldest receipts of a stream are dropped, or new ones are not
// kept. The memory comes back. The requests are few, because receipts are kept for a second only.
func TestReceiptsAreBoundedByMemory(t *testing.T) {
	s := limited(t, 1, false)
	s.most = 64 << 10
	one := &headgatev1.DecideRequest{Requests: requestsFor("/a")}
	long := &headgatev1.DecideRequest{Requests: requestsFor(strings.Fields(strings.Repeat("/a ", 1000))...)}
	first, second, third := &stream{service: s}, &stream{service: s}, &stream{service: s}
	for range 600 {
		first.ask(t, one)
	}
	if n := s.bytes.Load(); n > s.most || n < s.most/2 {
		t.Errorf("600 messages take %d bytes of %d", n, s.most)
	}
	kept, dropped := s.Stats().Receipts, s.Stats().Dropped
	if kept < 100 || kept+int64(dropped) != 600 {
		t.Errorf("%d receipts are kept, and %d dropped, want 600 in all", kept, dropped)
	}
	first.ask(t, &headgatev1.DecideRequest{Returns: []*headgatev1.Return{{Message: 599, Indexes: []uint32{0}}}})
	if s.Stats().Returned != 1 {
		t.Error("the last message of a full stream cannot be given back")
	}
	second.ask(t, long)
	if got := s.Stats(); got.Receipts > kept || got.Dropped != dropped+1000 || s.bytes.Load() > s.most {
		t.Errorf("after a message without memory: %+v and %d bytes", got, s.bytes.Load())
	}
	first.close()
	third.ask(t, one)
	if got := s.Stats(); got.Receipts != 1 || got.Dropped != dropped+1000 {
		t.Errorf("after the end of the first stream: %+v", got)
	}
	second.close()
	third.close()
	if n := s.bytes.Load(); n != 0 {
		t.Errorf("%d bytes count at the end", n)
	}
}

// TestRingShrinks: a stream that was busy for a moment does not keep a long ring.
func TestRingShrinks(t *testing.T) {
	var r receipts
	now := time.Now()
	for n := range uint64(4000) {
		if r.full() {
			r.resize(2 * len(r.ring))
		}
		r.fill(r.begin(), now.Add(time.Duration(n)), guard.TakenAll{}, 0)
	}
	for range 20 {
		r.expire(now.Add(3999 - 1)) // All but the last one.
	}
	if r.next-r.first != 1 || len(r.ring) != leastRing || !r.at(3999).until.Equal(now.Add(3999)) {
		t.Errorf("%d segments in a ring of %d", r.next-r.first, len(r.ring))
	}
}
