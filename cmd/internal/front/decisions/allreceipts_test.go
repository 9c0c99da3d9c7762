package decisions

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
)

// messageOf is a message of n requests that take units.
func messageOf(n int) *headgatev1.DecideRequest {
	return &headgatev1.DecideRequest{Requests: requestsFor(strings.Fields(strings.Repeat("/a ", n))...)}
}

// TestReceiptsOfOneSecond: a receipt can be returned until one second has passed, also while older and newer receipts
// keep the timer of the stream busy. A later return does nothing.
func TestReceiptsOfOneSecond(t *testing.T) {
	s := limited(t, 1, false)
	synctest.Test(t, func(t *testing.T) {
		x := &stream{service: s}
		defer x.close()
		returned := func(message uint64) bool {
			before := s.Stats()
			x.ask(t, &headgatev1.DecideRequest{Returns: []*headgatev1.Return{{Message: message, Indexes: []uint32{0}}}})
			after := s.Stats()
			if after.Returned-before.Returned+after.Unknown-before.Unknown != 1 {
				t.Errorf("one return counts as %+v after %+v", after, before)
			}
			return after.Returned > before.Returned
		}
		x.ask(t, messageOf(1))
		// The timer of the stream is late for what follows.
		time.Sleep(receiptTime / 10) //nolint:forbidigo // the time of the bubble
		x.ask(t, messageOf(1))
		x.ask(t, messageOf(1))
		time.Sleep(receiptTime - 1) //nolint:forbidigo // the time of the bubble
		if !returned(1) {
			t.Error("a receipt is lost before its second has passed")
		}
		time.Sleep(time.Nanosecond) //nolint:forbidigo // the time of the bubble
		if returned(2) {
			t.Error("a receipt can be returned after its second has passed")
		}
		time.Sleep(receiptTime) //nolint:forbidigo // the time of the bubble
		if got := s.Stats().Receipts; got != 0 {
			t.Errorf("%d receipts are kept by an idle stream", got)
		}
	})
}

// TestReceiptsOfAStream: a stream keeps the receipts of its last 4,096 requests at most, in messages of any size.
func TestReceiptsOfAStream(t *testing.T) {
	s := limited(t, 1, false)
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct{ requests, messages, kept, oldest int }{
			{1000, 6, 4000, 2}, {1, 5000, 4096, 904}, {64, 65, 4096, 1}, {1000, 4, 4000, 0},
		} {
			x := &stream{service: s}
			for range row.messages {
				x.ask(t, messageOf(row.requests))
			}
			if got := s.Stats().Receipts; got != int64(row.kept) {
				t.Errorf("%+v: %d receipts are kept", row, got)
			}
			before := s.Stats()
			returns := []*headgatev1.Return{{Message: uint64(row.oldest), Indexes: []uint32{0}}}
			if row.oldest > 0 {
				returns = append(returns, &headgatev1.Return{Message: uint64(row.oldest - 1), Indexes: []uint32{0}})
			}
			x.ask(t, &headgatev1.DecideRequest{Returns: returns})
			if after := s.Stats(); after.Returned != before.Returned+1 || after.Unknown != before.Unknown+uint64(len(returns)-1) {
				t.Errorf("%+v: the returns of the oldest receipt and of the one before it count as %+v after %+v", row, after, before)
			}
			x.close()
			if got := s.Stats().Receipts; got != 0 {
				t.Errorf("%+v: %d receipts are left of a stream that has ended", row, got)
			}
		}
	})
}

// TestReceiptsOfAllStreams: streams at once never have more receipts than the bound of all streams, not even for a
// moment. The end of a stream makes room for others.
func TestReceiptsOfAllStreams(t *testing.T) {
	s := limited(t, 1, false)
	if s.mostReceipts != 1_000_000 {
		t.Fatalf("the bound is %d, and docs/server.md says 1,000,000", s.mostReceipts)
	}
	s.mostReceipts = 10_500 // The test with all of them is TestSoakReceiptsOfAllStreams.
	synctest.Test(t, func(t *testing.T) { fillReceipts(t, s, 8, 2, 900) })
}

// fillReceipts fills all receipts of a service: some streams at once send messages, more than the bound admits. Then the
// streams end.
func fillReceipts(t *testing.T, s *Service, streams, messages, requests int) {
	t.Helper()
	all, before := make([]*stream, streams), s.Stats().Dropped
	var mu sync.Mutex
	var most int64
	var sending sync.WaitGroup
	for i := range all {
		all[i] = &stream{service: s}
		sending.Go(func() {
			for range messages {
				all[i].ask(t, messageOf(requests))
				mu.Lock()
				most = max(most, s.Stats().Receipts)
				mu.Unlock()
			}
		})
	}
	sending.Wait()
	asked, got := int64(streams*messages*requests), s.Stats()
	if most > s.mostReceipts || got.Receipts > s.mostReceipts || got.Receipts+int64(requests) <= s.mostReceipts {
		t.Errorf("%d receipts are kept, and at most %d: the bound is %d", got.Receipts, most, s.mostReceipts)
	}
	if got.Receipts+int64(got.Dropped-before) != asked {
		t.Errorf("%d receipts are kept and %d dropped of %d", got.Receipts, got.Dropped-before, asked)
	}
	all[0].close()
	freed := got.Receipts - s.Stats().Receipts
	next := &stream{service: s}
	for range freed / int64(requests) {
		next.ask(t, messageOf(requests))
	}
	if now := s.Stats().Receipts; now != got.Receipts {
		t.Errorf("%d receipts after the end of a stream with %d, and as many new ones: want %d", now, freed, got.Receipts)
	}
	for _, x := range append(all[1:], next) {
		x.close()
	}
	if now := s.Stats().Receipts; now != 0 || s.bytes.Load() != 0 {
		t.Errorf("%d receipts in %d bytes are left of streams that have ended", now, s.bytes.Load())
	}
}
