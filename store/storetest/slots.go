package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// testSlots: a headgate.SlotStore gives each key and window as many slots as the caller's limit, and
// frees them. Stores without slots pass.
func (s *suite) testSlots(t *testing.T) {
	b := s.bench(t)
	store, ok := headgate.SlotsOf(b.store)
	if !ok {
		return
	}
	op := headgate.SlotOp{Key: "k", Window: 1, Limit: 2, TTL: time.Minute}
	other, second := op, op
	other.Key, second.Window = "other", 2
	b.peekSlots(store, op, 2)
	first := b.slot(store, op, 1)
	b.peekSlots(store, op, 1)
	last := b.slot(store, op, 0)
	b.peekSlots(store, op, 0)
	b.noSlot(store, op)
	b.slot(store, other, 1)
	b.slot(store, second, 1)
	store.FreeSlot(headgate.Receipt{})
	b.noSlot(store, op)
	op.Limit = 0
	b.noSlot(store, op)
	op.Limit = 3 // Another version of the rule counts the same slots.
	b.slot(store, op, 0)
	op.Limit = 2
	store.FreeSlot(first)
	b.noSlot(store, op)
	store.FreeSlot(last)
	b.untilSlot(store, op)
}

// peekSlots checks the number of free slots. A store that does not know Peek takes one, which the caller frees.
func (b *bench) peekSlots(store headgate.SlotStore, op headgate.SlotOp, free int64) {
	b.t.Helper()
	op.Peek = true
	d, err := store.TakeSlot(context.Background(), op)
	if d.Receipt.Cost != 0 {
		d.Remaining++
	}
	store.FreeSlot(d.Receipt)
	if wanted := d.Verdict == headgate.Allow; err != nil || d.Remaining != free || wanted != (free > 0) {
		b.t.Errorf("a peek at the slots of %+v: %+v, %v, want %d free ones", op, d, err, free)
	}
}

// slot takes a slot, and checks the number of free ones that remain.
func (b *bench) slot(store headgate.SlotStore, op headgate.SlotOp, remain int64) headgate.Receipt {
	b.t.Helper()
	d, err := store.TakeSlot(context.Background(), op)
	if err != nil || d.Verdict != headgate.Allow || d.Reason != headgate.WithinLimit || d.Limit != op.Limit || d.Remaining != remain ||
		d.Receipt.Empty() {
		b.t.Fatalf("a slot of %+v: %+v, %v; want one, with %d remaining", op, d, err, remain)
	}
	return d.Receipt
}

func (b *bench) noSlot(store headgate.SlotStore, op headgate.SlotOp) {
	b.t.Helper()
	d, err := store.TakeSlot(context.Background(), op)
	if err != nil || d.Verdict != headgate.Deny || d.Reason != headgate.InFlight || d.RetryAfter != 0 || d.Remaining != 0 ||
		!d.Receipt.Empty() {
		b.t.Errorf("a slot of %+v beyond the limit: %+v, %v", op, d, err)
	}
}

// untilSlot takes a slot that was freed. A shared store frees it soon after FreeSlot.
func (b *bench) untilSlot(store headgate.SlotStore, op headgate.SlotOp) {
	b.t.Helper()
	for range 1000 {
		if d, err := store.TakeSlot(context.Background(), op); err != nil || d.Verdict == headgate.Allow {
			if err != nil {
				b.t.Error(err)
			}
			return
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // It polls a server, and there is a bound.
	}
	b.t.Error("a freed slot stays taken")
}
