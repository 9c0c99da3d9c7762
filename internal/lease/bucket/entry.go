package bucket

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/headgate/headgate"
)

// errMoved says that an entry has left the table.
var errMoved = errors.New("lease: the entry has left the table")

// never is the end of a rate without one.
const never = headgate.Instant(math.MaxInt64)

// entry is one resource with a lease.
type entry struct {
	table    *Table
	resource string
	group    string

	mu       sync.Mutex // Guards the fields below.
	lease    Lease
	bucket   Bucket
	rate     Rate
	leased   bool          // There is or was a lease, or on_loss gives something.
	ended    bool          // The entry has left the table.
	shared   bool          // A request of another group has come.
	ready    chan struct{} // closed at the next Rate; nil without waiting requests
	waiting  int64         // units of the requests that wait for a lease
	refused  [2]int64      // units that were refused in this turn, and in the one before
	reported int64         // the waiting units that were reported last
	quarter  int64         // demand that was not reported, in quarters of a unit
	empty    headgate.Instant
	used     headgate.Instant
}

// changed takes a Rate.
func (e *entry) changed(r Rate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, until := e.table.config.Clock(), never
	if r.Left > 0 {
		until = now.Add(r.Left)
	}
	if r.Slots && !e.rate.Slots {
		e.table.warnSlots(now, e.resource)
	}
	e.rate = r
	e.leased = e.leased || r.Left > 0 || r.Lost || r.Amount > 0
	if r.Slots {
		r.Amount = 0
	}
	e.bucket.Set(now, r.Amount, until)
	e.wake()
}

// wake lets the waiting requests look again.
func (e *entry) wake() {
	if e.ready != nil {
		close(e.ready)
		e.ready = nil
	}
}

// take decides an Ask. It waits for a lease if there is none.
func (e *entry) take(ctx context.Context, ask *Ask, out *Outcome) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.table.config.Clock()
	if e.ended {
		return errMoved
	}
	if ask.Kind == headgate.Take {
		e.demand(now, ask.Cost)
	}
	e.shared = e.shared || ask.Group != e.group
	e.bucket.Burst(now, ask.Burst)
	began := now
	for ask.Kind == headgate.Take && !e.spends(now, ask.Cost) && e.mayWait() {
		if e.empty == 0 {
			e.empty = now
		}
		left := ask.Patience - now.Sub(e.empty)
		if left <= 0 {
			break
		}
		late, err := e.wait(ctx, ask.Cost, left)
		if err != nil {
			return err
		}
		now = e.table.config.Clock()
		if out.Waited = now.Sub(began); late {
			break
		}
	}
	return e.decide(now, ask, out)
}

// spends reports whether the lease gives something: it has a rate, or it is valid and the bucket has enough.
func (e *entry) spends(now headgate.Instant, cost int64) bool {
	return e.bucket.Rate(now) > 0 || e.leased && !e.rate.Lost && e.bucket.Wait(now, cost) == 0
}

// mayWait reports whether a lease that gives something may come.
func (e *entry) mayWait() bool {
	return !e.ended && !e.rate.Lost && !e.rate.Slots && (e.leased || e.rate.Fault == "")
}

// wait waits for the next Rate. It reports whether the time has passed before. The caller holds mu, which is free
// meanwhile.
func (e *entry) wait(ctx context.Context, units int64, most time.Duration) (late bool, err error) {
	if e.ready == nil {
		e.ready = make(chan struct{})
	}
	ready := e.ready
	e.waiting = most53(e.waiting + units)
	e.tell()
	e.mu.Unlock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ready:
	case <-timer.C:
		late = true
	case <-ctx.Done():
		err = ctx.Err()
	}
	e.mu.Lock()
	e.waiting = max(e.waiting-units, 0)
	e.tell()
	return late, err
}

// decide decides an Ask by the bucket.
func (e *entry) decide(now headgate.Instant, ask *Ask, out *Outcome) error {
	rate := e.bucket.Rate(now)
	if rate > 0 {
		e.empty = 0
	}
	switch {
	case e.ended:
		return ErrClosed
	case e.rate.Slots:
		return ErrSlots
	case rate == 0 && e.rate.Lost:
		return ErrLost
	case rate == 0 && !e.leased && e.rate.Fault != "":
		return &FaultError{e.resource, e.rate.Fault}
	case rate == 0 && !e.leased:
		return ErrNoLease
	}
	out.Rate = rate
	d := &out.Decision
	*d = headgate.Decision{Verdict: headgate.Allow, Reason: headgate.WithinLimit, Limit: e.bucket.Size(), At: now}
	switch {
	case ask.Kind == headgate.Refund:
		e.bucket.Return(now, ask.Cost)
	case e.bucket.Wait(now, ask.Cost) > 0:
		e.refuse(rate, now, ask, d)
	case ask.Kind == headgate.Take:
		e.bucket.Take(now, ask.Cost)
		out.Taken = Taken{e, e.bucket.receipt(ask.Cost)}
	}
	d.Remaining = e.bucket.Has(now)
	if full := e.bucket.Full(now); full != forever {
		d.ResetAfter = full
	}
	return nil
}

// refuse makes a decision one over the limit.
func (e *entry) refuse(rate int64, now headgate.Instant, ask *Ask, d *headgate.Decision) {
	d.Verdict, d.Reason, d.RetryAfter = headgate.Deny, headgate.OverLimit, retry
	if rate > 0 {
		d.RetryAfter = e.bucket.Wait(now, ask.Cost)
	}
	if ask.Kind == headgate.Take {
		e.refused[0] = most53(e.refused[0] + ask.Cost)
		e.tell()
	}
}

// demand reports 1.25 times the units of a request.
func (e *entry) demand(now headgate.Instant, units int64) {
	e.used = now
	e.quarter += 5 * units
	if whole := e.quarter / 4; whole > 0 {
		e.quarter %= 4
		e.lease.Demand(whole)
	}
}

// tell reports the waiting units.
func (e *entry) tell() {
	sum := most53(e.waiting + most53(e.refused[0]+e.refused[1]))
	if !e.ended && sum != e.reported {
		e.reported = sum
		e.lease.Waiting(sum)
	}
}

// most53 clamps a sum of two numbers of units.
func most53(units int64) int64 { return min(units, headgate.MaxUnits) }

// turn begins a turn. It reports whether the entry is idle.
func (e *entry) turn(now headgate.Instant) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refused = [2]int64{0, e.refused[0]}
	e.tell()
	return e.isIdle(now)
}

func (e *entry) isIdle(now headgate.Instant) bool {
	since := now.Sub(e.used)
	return e.ready == nil && e.waiting == 0 && (since >= longest || since >= keepIdle && e.bucket.Full(now) == 0)
}

// endIfIdle ends an idle entry. The caller holds the lock of the table.
func (e *entry) endIfIdle(now headgate.Instant) bool {
	e.mu.Lock()
	still := e.isIdle(now)
	e.mu.Unlock()
	if still {
		e.end()
	}
	return still
}

// isOnlyOf reports whether all requests were of one group.
func (e *entry) isOnlyOf(group string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.group == group && !e.shared
}

// end releases the lease. The caller holds the lock of the table.
func (e *entry) end() {
	e.mu.Lock()
	lease := e.lease
	e.ended = true
	e.wake()
	e.mu.Unlock()
	lease.Close() // Without the lock of the entry: Close takes the one of the client, which calls changed.
}

// giveBack gives back the units of a request that is not made.
func (e *entry) giveBack(r receipt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bucket.giveBack(e.table.config.Clock(), r)
}
