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

// How long a slot is kept out of calls for several slots, after its states could not be reached in
// one; and how long a node that does not accept such calls gets none.
const (
	apartFor  = time.Second
	unableFor = time.Minute
)

// across is the part of a cluster's nodeQueue that decides queries of many slots in one call. Such a
// call goes to the node directly: no key says where it belongs.
type across struct {
	// node is the client of this node; nil until the slots are known.
	node atomic.Pointer[rueidis.Client]
	// unable is the time until which the node gets no such call, by the store's monotonic time.
	unable atomic.Int64
}

// reach gives each nodeQueue the client of its node. It runs each time the slots are read, because
// the client library replaces connections and closes the old ones some seconds later.
func (l *nodeQueues) reach(nodes map[string]rueidis.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, lane := range l.all {
		if node, has := nodes[name]; has {
			lane.across.node.Store(&node)
		} else {
			lane.across.node.Store(nil)
		}
	}
}

// maxSplits bounds how often a batch is split because a slot is on another node.
const maxSplits = 2

// sendAcross decides the queries of a batch in one call for all slots, as far as possible. The
// remaining queries have not been counted, and go in one call for each slot.
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
		l.lastTrip.Store(int64(l.store.since() - now))
		reply, err := result.ToString()
		if !l.refusedAcross(p, err) {
			l.finish(ctx, p, reply, err)
			clear(p.asks)
			p.asks = p.asks[:0]
			return
		}
		w.asks = append(w.asks, p.asks...)
		clear(p.asks)
		p.asks = p.asks[:0]
	}
}

// refusedAcross reports whether a call was refused, with nothing counted, because it named several
// slots. It records which slots or nodes cannot take part.
func (l *nodeQueue) refusedAcross(p *scriptCall, err error) bool {
	if unsent(err) { // The slots may have moved to another node, and the client learns that first.
		l.across.node.Store(nil)
		l.store.lanes.noticed()
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
		l.store.lanes.apart.note(l.store.names.Slot(*place), l.store.since())
		l.store.lanes.noticed()
	case refused, isUnable(text):
		l.across.unable.Store(int64(l.store.since() + unableFor))
	case isDenied(text): // In calls for one slot, the server refuses only the denied queries.
		refused = true
	}
	return refused || isUnable(text)
}

// isElsewhere reports whether a script could not read a key because its slot is on another node.
func isElsewhere(why string) bool {
	return strings.Contains(why, "non local key") || strings.Contains(why, "cluster is down") || strings.Contains(why, "same slot")
}

// isUnable reports whether a server does not support scripts of this kind: before Redis 7.
func isUnable(text string) bool {
	return strings.Contains(text, "Error compiling script") || strings.Contains(text, "in script shebang")
}

// isDenied reports whether a server has refused the script before its start. The same server runs
// a script without flags up to its first write.
func isDenied(text string) bool {
	return strings.Contains(text, "allow-oom flag is not set") || strings.Contains(text, "Can not run script with write flag")
}

// gather moves the queries that may share a call into one scriptCall. It reports whether they have
// several slots.
func (w *work) gather(l *nodeQueue, now time.Duration) bool {
	p := &w.gathered
	if p.batch == nil {
		p.batch = new(script.Batch)
	}
	p.batch.Reset(l.store.names)
	kept, several := w.asks[:0], false
	for _, a := range w.asks {
		if !a.fitsAcross() || l.store.lanes.apart.has(a.slot, now) {
			kept = append(kept, a)
			continue
		}
		p.asks = append(p.asks, a)
		several = several || a.slot != p.asks[0].slot
	}
	clear(w.asks[len(kept):])
	w.asks = kept
	if !several {
		w.asks = append(w.asks, p.asks...)
		clear(p.asks)
		p.asks = p.asks[:0]
		return false
	}
	encoded := p.asks[:0]
	for _, a := range p.asks {
		if err := a.encode(p.batch); err != nil {
			l.decline(a)
			a.finish(couldNotEncode(err))
			continue
		}
		encoded = append(encoded, a)
	}
	clear(p.asks[len(encoded):])
	p.asks = encoded
	return len(p.asks) > 0
}

func (a *query) fitsAcross() bool {
	for _, p := range a.plans {
		if !script.FitsAcross(p) {
			return false
		}
	}
	return true
}

// separateSlots remembers slots for a while. A cluster has a fixed number of slots.
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
