package guard

import (
	"context"
	"slices"
	"unsafe"

	"github.com/headgate/headgate"
)

// Taken is what the request of an Answer took, so that it can be given back after the Answer was used
// again. While it is kept, the limits of the Answer stay prepared in the store. The zero Taken is
// empty.
type Taken struct {
	from  *set
	local headgate.Store // the store of the receipts after a local fallback; nil means the guard's store
	one   headgate.Receipt
	more  []headgate.Receipt
	// rest is a request that also has a booked departure, or units of fair share.
	rest *Answer
	// usage is what Config.Meter then takes back.
	usage []headgate.Usage
}

// Empty reports whether there is nothing to give back.
func (t *Taken) Empty() bool { return t.one.Empty() && t.rest == nil && len(t.usage) == 0 }

// size is the memory that t points to, in bytes.
func (t *Taken) size() int64 {
	size := int64(cap(t.more))*receiptBytes + int64(cap(t.usage))*usageBytes
	if t.rest != nil {
		size += int64(unsafe.Sizeof(Answer{})) + int64(cap(t.rest.Results))*(int64(unsafe.Sizeof(Result{}))+memberBytes) +
			int64(1+cap(t.rest.shadows))*waiterBytes
	}
	return size
}

// Taken gives what the request took. Call it after Decide or DecideAll, and before the next decision of
// the Answer. It allocates if the request took units of several limits, waits, or used fair share.
func (a *Answer) Taken() Taken {
	t := Taken{from: a.from, local: a.local}
	if a.Verdict == headgate.Deny {
		return Taken{} // A refusal has given back what it took.
	}
	t.usage = a.corrections()
	if a.waiter != nil || len(a.shadows) > 0 || a.sharer != nil {
		t.rest = &Answer{
			Results: slices.Clone(a.Results), from: a.from, storeFacts: storeFacts{local: a.local},
			waitFacts: waitFacts{a.waiter, slices.Clone(a.shadows)}, shareFacts: shareFacts{share: a.share, sharer: a.sharer},
		}
		for i := range t.rest.Results {
			t.rest.Results[i].key = "" // It would keep the memory of all keys of the Answer.
		}
		return t
	}
	for i := range a.Results {
		switch receipt := a.Results[i].Decision.Receipt; {
		case receipt.Empty():
		case t.one.Empty():
			t.one = receipt
		default:
			t.more = append(t.more, receipt)
		}
	}
	if t.Empty() {
		return Taken{}
	}
	return t
}

// uncount has Config.Meter take back what it has counted. A second call does nothing.
func (t *Taken) uncount() {
	for i := range t.usage {
		t.from.takeBack(&t.usage[i])
	}
	t.usage = nil
}

// GiveBack returns what requests took that are not made, with one call of the store for most of them. That call comes last and has
// Config.StoreTimeout, and all calls before it, for requests that wait, have one together. A second return of one Taken does nothing.
// After an error, units stay counted.
func (g *Guard) GiveBack(ctx context.Context, all []Taken) error {
	s := g.now()
	if s == nil {
		return headgate.ErrNotMade
	}
	b := g.state.batch()
	defer g.state.batches.Put(b)
	bounded, end := s.bound(ctx)
	defer end()
	var first error
	note := func(err error) {
		if first == nil {
			first = notGivenBack(err)
		}
	}
	for i := range all {
		all[i].uncount()
		switch t := &all[i]; {
		case t.rest != nil && t.rest.local != nil:
			note(g.Cancel(ctx, t.rest))
			t.rest.Results = t.rest.Results[:0]
		case t.rest != nil:
			g.leaveQueues(t.rest)
			t.rest.uncount()
			var err error
			b.receipts, err = t.rest.release(bounded, b.receipts)
			note(err)
			t.rest.Results = t.rest.Results[:0]
		case t.one.Empty():
		case t.local != nil:
			note(t.local.Return(ctx, append([]headgate.Receipt{t.one}, t.more...)))
		default:
			b.receipts = append(append(b.receipts, t.one), t.more...)
		}
	}
	if len(b.receipts) > 0 {
		// The departures went first: a bucket gives nothing back while later bookings follow.
		last, end := s.bound(ctx)
		defer end()
		note(g.store.Return(last, b.receipts))
	}
	return first
}
