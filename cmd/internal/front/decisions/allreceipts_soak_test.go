//go:build soak

package decisions

import (
	"testing"
	"testing/synctest"

	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/allocs"
	"github.com/headgate/headgate/internal/testkit/alone"
	"github.com/headgate/headgate/internal/testkit/race"
)

// TestSoakReceiptsOfAllStreams: 1,000,000 receipts fit in the memory that is reserved for them, and no further ones are
// kept.
func TestSoakReceiptsOfAllStreams(t *testing.T) {
	if race.On || !alone.Here(t) {
		return
	}
	s := limited(t, 1, false)
	synctest.Test(t, func(t *testing.T) {
		first := &stream{service: s}
		first.ask(t, messageOf(1)) // Fills the pools.
		first.close()
		const messages, requests = 4090, 1
		all := make([]*stream, maxReceipts/messages+5)
		kept := allocs.Kept(func() {
			for i := range all {
				all[i] = &stream{service: s}
				for range messages {
					all[i].ask(t, messageOf(requests))
				}
			}
		})
		got := s.Stats()
		t.Logf("%d receipts take %d bytes, %d count", got.Receipts, kept, s.bytes.Load())
		if got.Receipts != maxReceipts || got.Dropped == 0 {
			t.Errorf("%d receipts are kept, and %d dropped, want %d kept", got.Receipts, got.Dropped, maxReceipts)
		}
		if kept > config.ReceiptBytes {
			t.Errorf("%d receipts take %d bytes, want at most %d", got.Receipts, kept, config.ReceiptBytes)
		}
		for _, x := range all {
			x.close()
		}
		all = nil
		if left := s.Stats().Receipts; left != 0 || s.bytes.Load() != 0 {
			t.Errorf("%d receipts in %d bytes are left", left, s.bytes.Load())
		}
	})
	synctest.Test(t, func(t *testing.T) { fillReceipts(t, s, 300, 4, 1000) })
}
