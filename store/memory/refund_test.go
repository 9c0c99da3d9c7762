package memory

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestRefundMakesNoPlace: a Refund of a new key changes nothing in the store.
func TestRefundMakesNoPlace(t *testing.T) {
	for _, p := range []headgate.Policy{
		{Limit: ten(time.Hour)},
		{Limit: headgate.Limit{Per: time.Hour}},
		{Algorithm: headgate.FixedWindow, Limit: ten(time.Hour)},
		{Algorithm: headgate.SlidingLog, Limit: ten(time.Hour)},
		{Algorithm: headgate.SlidingWindow, SubWindows: 2, Limit: ten(time.Hour)},
	} {
		t.Run(p.Algorithm.String(), func(t *testing.T) {
			s := newSteady(t, Config{MaxMemory: 64 << 10})
			id := s.prepare(p)
			before := s.Stats()
			if d := s.do("k", id, 3, headgate.Refund); d.Verdict != headgate.Allow || d.Remaining != p.Limit.Count {
				t.Errorf("a refund of a new key: %+v", d)
			}
			if after := s.Stats(); after != before {
				t.Errorf("after a refund of a new key: %+v, before %+v", after, before)
			}
		})
	}
}

// TestReceiptsOfManyRefunds: no number of refunds makes an old receipt valid again.
func TestReceiptsOfManyRefunds(t *testing.T) {
	for _, p := range []headgate.Policy{
		{Algorithm: headgate.SlidingLog, Limit: ten(time.Hour)},
		{Algorithm: headgate.SlidingWindow, SubWindows: 2, Limit: ten(time.Hour)},
	} {
		t.Run(p.Algorithm.String(), func(t *testing.T) {
			s := newSteady(t, Config{MaxMemory: 1 << 20})
			id := s.prepare(p)
			first := s.take("k", id, 3)
			for range 1 << 16 {
				s.now++
				s.take("k", id, 1)
				s.do("k", id, 1, headgate.Refund)
			}
			s.giveBack(first)
			if d := s.take("k", id, 8); d.Verdict == headgate.Allow {
				t.Error("a receipt returned units after 65,536 refunds")
			}
		})
	}
}
