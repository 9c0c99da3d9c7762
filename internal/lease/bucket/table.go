package bucket

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// Table has the leases of a process and their buckets. It is safe for concurrent use.
type Table struct {
	config Config
	stop   chan struct{} // closed by Close
	ended  sync.WaitGroup
	full   atomic.Uint64
	slots  atomic.Int64 // the time of the last line about slots

	mu       sync.RWMutex // Guards the fields below. The lock of an entry is taken after it.
	entries  map[string]*entry
	started  bool
	closed   bool
	loggedAt headgate.Instant
}

// Ask is one request to a resource.
type Ask struct {
	// Cost is in units, from 0 to headgate.MaxUnits.
	Cost int64
	// Burst is the least size of the bucket, in units; 0 means 1.
	Burst int64
	// Kind is Take, Peek or Refund. Peek and Refund claim no resource.
	Kind headgate.OpKind
	// Patience is how long requests wait for a lease that gives something. It counts from the first request that has
	// found none.
	Patience time.Duration
	// Group is a name for Release.
	Group string
}

// Outcome is the decision on an Ask.
type Outcome struct {
	Decision headgate.Decision
	// Rate is that of the lease, in thousandths of a unit a second.
	Rate int64
	// Waited is how long the request has waited for the lease.
	Waited time.Duration
	// Taken are the units that Take has taken.
	Taken Taken
}

// Taken are units that were taken. The zero Taken has none.
type Taken struct {
	entry   *entry
	receipt receipt
}

// Return gives units back, once, because their request is not made. Units that have refilled meanwhile do not come back. It does not
// block.
func (t *Taken) Return() {
	if t.entry != nil {
		t.entry.giveBack(t.receipt)
		*t = Taken{}
	}
}

// Take decides an Ask into out. It allocates nothing for a known resource with a lease. With an error, nothing was
// decided, and nothing taken.
func (t *Table) Take(ctx context.Context, resource []byte, ask *Ask, out *Outcome) error {
	*out = Outcome{}
	for {
		e, err := t.find(resource, ask)
		if err != nil {
			return err
		}
		if e == nil {
			return unknown(ask, out)
		}
		if err := e.take(ctx, ask, out); err != errMoved { //nolint:errorlint // It is never wrapped.
			return err
		}
	}
}

// unknown decides on a resource without a lease, which Ask does not claim.
func unknown(ask *Ask, out *Outcome) error {
	if ask.Kind != headgate.Refund {
		return ErrNoLease
	}
	out.Decision = headgate.Decision{Verdict: headgate.Allow, Reason: headgate.WithinLimit}
	return nil
}

// find returns the entry of a resource, and claims a new one. It is nil if there is none, and the Ask claims none.
func (t *Table) find(resource []byte, ask *Ask) (*entry, error) {
	t.mu.RLock()
	e, closed := t.entries[string(resource)], t.closed
	t.mu.RUnlock()
	switch {
	case closed:
		return nil, ErrClosed
	case e != nil || ask.Kind != headgate.Take:
		return e, nil
	}
	return t.claim(string(resource), ask)
}

// claim claims a resource.
func (t *Table) claim(resource string, ask *Ask) (*entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := t.entries[resource]; {
	case t.closed:
		return nil, ErrClosed
	case e != nil:
		return e, nil
	case len(t.entries) >= t.config.Max:
		t.refuse(resource)
		return nil, ErrFull
	}
	now := t.config.Clock()
	e := &entry{table: t, resource: resource, group: strings.Clone(ask.Group), used: now}
	e.bucket.Burst(now, ask.Burst)
	waiting := max(ask.Cost, 1)
	lease, err := t.config.Source.Lease(resource, waiting, e.changed)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.lease, e.reported = lease, waiting
	e.mu.Unlock()
	t.entries[resource] = e
	if !t.started {
		t.started = true
		t.ended.Go(t.run)
	}
	return e, nil
}

// refuse counts a resource without a place. The caller holds mu.
func (t *Table) refuse(resource string) {
	n := t.full.Add(1)
	now := t.config.Clock()
	if t.loggedAt != 0 && now.Sub(t.loggedAt) < logEvery {
		return
	}
	t.loggedAt = now
	t.config.Log.Warn("lease: the process holds max_leases leases: the fallback decides requests of further resources",
		"max_leases", t.config.Max, "resource", resource, "refused", n)
}

// warnSlots says that a resource has slots: its rule always falls back. The caller may hold the lock of an entry.
func (t *Table) warnSlots(now headgate.Instant, resource string) {
	last := t.slots.Load()
	if last != 0 && now.Sub(headgate.Instant(last)) < logEvery || !t.slots.CompareAndSwap(last, int64(now)) {
		return
	}
	t.config.Log.Warn("lease: the resource has slots, so the fallback decides: a rule needs a resource with a rate, like 500/s",
		"resource", resource)
}

// run looks at all leases each turn, until Close.
func (t *Table) run() {
	ticks := time.NewTicker(turn)
	defer ticks.Stop()
	for {
		select {
		case <-t.stop:
			return
		case <-ticks.C:
			t.look()
		}
	}
}

// look reports waiting units, and releases idle leases.
func (t *Table) look() {
	now := t.config.Clock()
	var idle []*entry
	t.mu.RLock()
	for _, e := range t.entries {
		if e.turn(now) {
			idle = append(idle, e)
		}
	}
	t.mu.RUnlock()
	if len(idle) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range idle {
		if t.entries[e.resource] == e && e.endIfIdle(now) {
			delete(t.entries, e.resource)
		}
	}
}

// Release releases the leases of a group, which no rule uses any more. A later request claims its resource again. A resource
// that another group has used, too, keeps its lease until it is idle.
func (t *Table) Release(group string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for resource, e := range t.entries {
		if e.isOnlyOf(group) {
			e.end()
			delete(t.entries, resource)
		}
	}
}

// Close releases all leases. It does not close the Source.
func (t *Table) Close() {
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		close(t.stop)
	}
	for _, e := range t.entries {
		e.end()
	}
	clear(t.entries)
	t.mu.Unlock()
	t.ended.Wait()
}

// Stats are the counters of a Table.
type Stats struct {
	// Leases are held now.
	Leases int
	// Full counts requests to a resource for which there was no place.
	Full uint64
}

// Stats reads the counters.
func (t *Table) Stats() Stats {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return Stats{Leases: len(t.entries), Full: t.full.Load()}
}
