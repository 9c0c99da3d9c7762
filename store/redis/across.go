package redis

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate/internal/store/script"
)

// After a call across slots fails, the affected slot gets separate calls for apartFor. A node that
// does not support such calls gets only calls for one slot during unableFor.
const (
	apartFor  = time.Second
	unableFor = time.Minute
)

// across is the state of a nodeQueue for calls that decide queries of many slots. The store sends
// such a call to the node directly, because no single key routes the call.
type across struct {
	// node is the client of this node; nil until the slots are known.
	node atomic.Pointer[rueidis.Client]
	// unable is the time until which the node gets no calls across slots, by the store's monotonic
	// time.
	unable atomic.Int64
}

// reach gives each nodeQueue the client of its node. nodeQueues calls reach after each read of the
// slots, because the client library replaces connections and closes the old ones seconds later.
func (l *nodeQueues) reach(nodes map[string]rueidis.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, queue := range l.all {
		if node, has := nodes[name]; has {
			queue.across.node.Store(&node)
		} else {
			queue.across.node.Store(nil)
		}
	}
}

// maxSplits bounds how often a batch is split because a slot is on another node.
const maxSplits = 2

// sendAcross decides the queries of a batch in one call for all slots, as far as possible. It leaves
// the other queries in w.queries, uncounted: the caller sends them in one call for each slot.
func (l *nodeQueue) sendAcross(ctx context.Context, w *work) {
	for range maxSplits {
		node := l.across.node.Load()
		now := l.store.since()
		if node == nil || int64(now) < l.across.unable.Load() || !w.gather(l, now) {
			return
		}
		p := &w.gathered
		l.counts.calls.Add(1)
		result := l.store.across.runOne(ctx, *node, &call{args: p.batch.ArgsAcross(l.store.now(), l.store.slack)})
		trip := l.store.since() - now
		l.lastTrip.Store(int64(trip))
		reply, err := result.ToString()
		if !l.refusedAcross(p, err) {
			l.finish(ctx, p, trip, reply, err)
			clear(p.queries)
			p.queries = p.queries[:0]
			return
		}
		w.queries = append(w.queries, p.queries...)
		clear(p.queries)
		p.queries = p.queries[:0]
	}
}

// refusedAcross reports whether the server refused a call because of its several slots, and so
// counted nothing. It records which slot or node cannot take part in such calls.
func (l *nodeQueue) refusedAcross(p *scriptCall, err error) bool {
	if unsent(err) { // The slots may have moved to another node. The client notices this before the store does.
		l.across.node.Store(nil)
		l.store.queues.noticed()
		return true
	}
	var fault *rueidis.RedisError
	if !errors.As(err, &fault) {
		return false
	}
	text := fault.Error()
	place, why, refused := p.batch.Apart(text)
	switch {
	case refused && place != nil && isElsewhere(why):
		l.store.queues.apart.note(l.store.names.Slot(*place), l.store.since())
		l.store.queues.noticed()
	case refused, isUnable(text):
		l.across.unable.Store(int64(l.store.since() + unableFor))
	case isDenied(text): // In calls for one slot, the server refuses only the queries that it must refuse.
		refused = true
	}
	return refused || isUnable(text)
}

// isElsewhere reports whether a script could not read a key because its slot is on another node.
func isElsewhere(why string) bool {
	return strings.Contains(why, "non local key") || strings.Contains(why, "cluster is down") || strings.Contains(why, "same slot")
}

// isUnable reports whether a server is older than Redis 7 and does not support such scripts.
func isUnable(text string) bool {
	return strings.Contains(text, "Error compiling script") || strings.Contains(text, "in script shebang")
}

// isDenied reports whether a server refused the script before its start. The same server runs a
// script without flags up to its first write.
func isDenied(text string) bool {
	return strings.Contains(text, "allow-oom flag is not set") || strings.Contains(text, "Can not run script with write flag")
}

// gather moves the queries that may share a call from w.queries to w.gathered. It reports whether
// w.gathered has queries of several slots.
func (w *work) gather(l *nodeQueue, now time.Duration) bool {
	p := &w.gathered
	if p.batch == nil {
		p.batch = new(script.Batch)
	}
	p.batch.Reset(l.store.names)
	kept, several := w.queries[:0], false
	for _, a := range w.queries {
		if !a.fitsAcross() || l.store.queues.apart.has(a.slot, now) {
			kept = append(kept, a)
			continue
		}
		p.queries = append(p.queries, a)
		several = several || a.slot != p.queries[0].slot
	}
	clear(w.queries[len(kept):])
	w.queries = kept
	if !several {
		w.queries = append(w.queries, p.queries...)
		clear(p.queries)
		p.queries = p.queries[:0]
		return false
	}
	encoded := p.queries[:0]
	for _, a := range p.queries {
		if err := a.encode(p.batch); err != nil {
			l.decline(a)
			a.finish(couldNotEncode(err), nil)
			continue
		}
		encoded = append(encoded, a)
	}
	clear(p.queries[len(encoded):])
	p.queries = encoded
	return len(p.queries) > 0
}

func (a *query) fitsAcross() bool {
	for _, p := range a.plans {
		if !script.FitsAcross(p) {
			return false
		}
	}
	return true
}

// separateSlots keeps the slots that need separate calls, with an expiry time for each. Its size is
// bounded by the number of slots of a cluster.
type separateSlots struct {
	count atomic.Int32
	mu    sync.Mutex
	until map[uint16]time.Duration // guarded by mu
}

func (a *separateSlots) note(slot uint16, now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.until == nil {
		a.until = make(map[uint16]time.Duration)
	}
	a.until[slot] = now + apartFor
	a.count.Store(int32(len(a.until)))
}

func (a *separateSlots) has(slot uint16, now time.Duration) bool {
	if a.count.Load() == 0 {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	until, has := a.until[slot]
	if has && now >= until {
		delete(a.until, slot)
		a.count.Store(int32(len(a.until)))
		has = false
	}
	return has
}
