package redis

import (
	"time"

	"github.com/headgate/headgate/internal/store/script"
)

// work is the reusable memory of one batch.
type work struct {
	queries     []*query
	scriptCalls []scriptCall
	calls       []call
	// gathered is the call for queries of several slots.
	gathered scriptCall
}

// scriptCall is one script call of a batch. It has the queries of one slot, or of several slots in
// work.gathered.
type scriptCall struct {
	slot    uint16
	queries []*query
	batch   *script.Batch
}

// reset drops the references to queries, because their callers may reuse them.
func (w *work) reset() {
	clear(w.queries)
	w.queries = w.queries[:0]
	for i := range w.scriptCalls {
		clear(w.scriptCalls[i].queries)
		w.scriptCalls[i].queries = w.scriptCalls[i].queries[:0]
	}
	clear(w.calls)
	w.calls = w.calls[:0]
	clear(w.gathered.queries)
	w.gathered.queries = w.gathered.queries[:0]
}

// dropLeft removes the queries of callers that have left, and counts them as unsent. The remaining
// queries get a new trip.
func (w *work) dropLeft(l *nodeQueue) {
	kept := w.queries[:0]
	for _, a := range w.queries {
		if a.abandoned() {
			l.counts.unsent.Add(1)
			l.breaker.Unknown(a.began)
			continue
		}
		kept = append(kept, a)
	}
	clear(w.queries[len(kept):])
	w.queries = kept
	on := new(trip)
	for _, a := range w.queries {
		a.trip.Store(on)
	}
}

// encode renders the queries as script calls, one for each slot.
func (w *work) encode(l *nodeQueue) { w.render(l, false) }

// encodeApart renders each query as a separate script call.
func (w *work) encodeApart(l *nodeQueue) {
	for i := range w.scriptCalls {
		clear(w.scriptCalls[i].queries)
		w.scriptCalls[i].queries = w.scriptCalls[i].queries[:0]
	}
	clear(w.calls)
	w.calls = w.calls[:0]
	w.render(l, true)
}

func (w *work) render(l *nodeQueue, apart bool) {
	s := l.store
	used := 0
	for _, a := range w.queries {
		p := w.callOf(s, a.slot, apart, &used)
		if err := a.encode(p.batch); err != nil {
			l.decline(a)
			a.finish(couldNotEncode(err), nil)
			continue
		}
		p.queries = append(p.queries, a)
	}
	valid := 0
	for i := range used { // Some calls may have no valid query.
		if len(w.scriptCalls[i].queries) > 0 {
			w.scriptCalls[valid], w.scriptCalls[i] = w.scriptCalls[i], w.scriptCalls[valid]
			valid++
		}
	}
	w.scriptCalls = w.scriptCalls[:valid]
	for i := range w.scriptCalls {
		b := w.scriptCalls[i].batch
		w.calls = append(w.calls, call{keys: b.Keys(), args: b.Args(s.now(), s.slack)})
	}
}

// callOf gives the call for a slot, and adds the call if there is none. Its linear search suits
// batches, which are short and mostly have one slot or only different slots.
func (w *work) callOf(s *Store, slot uint16, apart bool, used *int) *scriptCall {
	for i := range *used {
		if w.scriptCalls[i].slot == slot && !apart {
			return &w.scriptCalls[i]
		}
	}
	if *used == len(w.scriptCalls) {
		if *used < cap(w.scriptCalls) {
			w.scriptCalls = w.scriptCalls[:*used+1]
		} else {
			w.scriptCalls = append(w.scriptCalls, scriptCall{})
		}
	}
	p := &w.scriptCalls[*used]
	*used++
	p.slot = slot
	if p.batch == nil {
		p.batch = new(script.Batch)
	}
	p.batch.Reset(s.names)
	return p
}

// latest gives the latest deadline of the callers of a batch. For a caller without a deadline, it
// counts most from now.
func (w *work) latest(most time.Duration) time.Time {
	latest := time.Time{}
	for _, a := range w.queries {
		if a.deadline.IsZero() {
			return time.Now().Add(most)
		}
		if a.deadline.After(latest) {
			latest = a.deadline
		}
	}
	return latest
}
