package redis

import (
	"time"

	"github.com/headgate/headgate/internal/store/script"
)

// work is the working memory of one batch.
type work struct {
	asks  []*query
	parts []scriptCall
	calls []call
	// gathered is the call for several slots.
	gathered scriptCall
}

// scriptCall is one script call of a batch: the queries of one slot.
type scriptCall struct {
	slot  uint16
	asks  []*query
	batch *script.Batch
}

// reset drops the queries, which belong to their callers again.
func (w *work) reset() {
	clear(w.asks)
	w.asks = w.asks[:0]
	for i := range w.parts {
		clear(w.parts[i].asks)
		w.parts[i].asks = w.parts[i].asks[:0]
	}
	clear(w.calls)
	w.calls = w.calls[:0]
	clear(w.gathered.asks)
	w.gathered.asks = w.gathered.asks[:0]
}

// dropLeft removes the queries whose callers have left: these were not sent.
func (w *work) dropLeft(l *nodeQueue) {
	kept := w.asks[:0]
	for _, a := range w.asks {
		if a.abandoned() {
			l.counts.unsent.Add(1)
			l.breaker.Unknown(a.began)
			continue
		}
		kept = append(kept, a)
	}
	clear(w.asks[len(kept):])
	w.asks = kept
	on := new(trip)
	for _, a := range w.asks {
		a.trip.Store(on)
	}
}

// encode renders the queries as script calls, one for each slot.
func (w *work) encode(l *nodeQueue) { w.render(l, false) }

// encodeApart renders each query as a separate script call.
func (w *work) encodeApart(l *nodeQueue) {
	for i := range w.parts {
		clear(w.parts[i].asks)
		w.parts[i].asks = w.parts[i].asks[:0]
	}
	clear(w.calls)
	w.calls = w.calls[:0]
	w.render(l, true)
}

func (w *work) render(l *nodeQueue, apart bool) {
	s := l.store
	used := 0
	for _, a := range w.asks {
		p := w.partOf(s, a.slot, apart, &used)
		if err := a.encode(p.batch); err != nil {
			l.decline(a)
			a.finish(couldNotEncode(err))
			continue
		}
		p.asks = append(p.asks, a)
	}
	asked := 0
	for i := range used { // Some calls may have no valid query.
		if len(w.parts[i].asks) > 0 {
			w.parts[asked], w.parts[i] = w.parts[i], w.parts[asked]
			asked++
		}
	}
	w.parts = w.parts[:asked]
	for i := range w.parts {
		b := w.parts[i].batch
		w.calls = append(w.calls, call{keys: b.Keys(), args: b.Args(s.now(), s.slack)})
	}
}

// partOf gives the call of a slot, and makes it if there is none. Batches are short, and mostly have
// one slot or only different slots.
func (w *work) partOf(s *Store, slot uint16, apart bool, used *int) *scriptCall {
	for i := range *used {
		if w.parts[i].slot == slot && !apart {
			return &w.parts[i]
		}
	}
	if *used == len(w.parts) {
		if *used < cap(w.parts) {
			w.parts = w.parts[:*used+1]
		} else {
			w.parts = append(w.parts, scriptCall{})
		}
	}
	p := &w.parts[*used]
	*used++
	p.slot = slot
	if p.batch == nil {
		p.batch = new(script.Batch)
	}
	p.batch.Reset(s.names)
	return p
}

// latest gives the latest deadline of a batch's callers. A caller without a deadline stays for most.
func (w *work) latest(most time.Duration) time.Time {
	latest := time.Time{}
	for _, a := range w.asks {
		if a.deadline.IsZero() {
			return time.Now().Add(most)
		}
		if a.deadline.After(latest) {
			latest = a.deadline
		}
	}
	return latest
}
