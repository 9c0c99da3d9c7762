package client

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/bucket"
	"github.com/headgate/headgate/internal/lease/holder"
)

var errClosed = errors.New("lease: the client is closed")

// Lease is a program's part of one resource. It is safe for concurrent use.
type Lease struct {
	client   *Client
	resource string
	changed  chan struct{}

	demand, waiting, spent, refused atomic.Int64 // waiting is the present number, the others count since the last look
	stated                          atomic.Int64 // the argument of Want + 1, or 0
	awake                           atomic.Bool  // watch looks at the demand

	// The lock of the client guards the fields below.
	estimate holder.Demand
	state    State
	notify   func(bucket.Rate) // gets changes of the state; nil without a table of buckets
}

// State is what a program may use of a resource.
type State struct {
	// Amount is in thousandths of a unit per second, or in slots if Slots is set.
	Amount int64
	Slots  bool
	// Until is the time until which Amount is valid. It is zero if there is no lease: before the first
	// one, and after the end of a lease that was not renewed. Then OnLoss has decided the amount.
	Until time.Time
	// Lost says that a lease has ended without renewal. When a server answers again, Lost is false. Amount may still be the safe
	// amount, until the server knows all leases.
	Lost bool
	// Limited says that the program has got less than it wants for 2 s: waiting callers will not be
	// served earlier than Amount says.
	Limited bool
	// Closed says that the lease was released, by Lease.Close or Client.Close.
	Closed bool
	// Fault is what the server said against the claim, for example that no resource has the name, or why no server answers.
	// The lease may still be valid.
	Fault string
	// Refused says that Fault is that of a server, which refuses the claim.
	Refused bool
}

// Resource returns the name of the resource.
func (l *Lease) Resource() string { return l.resource }

// State returns what the program may use now.
func (l *Lease) State() State {
	k := l.client
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.leases[l.resource] != l {
		return State{Closed: true}
	}
	now := k.now()
	return l.stateOf(k.holder.Status(now, l.resource), k.base.Add(now.Sub(0)))
}

// Amount returns what the program may use now: thousandths of a unit per second, or slots.
func (l *Lease) Amount() int64 { return l.State().Amount }

// Rate returns what the program may use now, in units per second.
func (l *Lease) Rate() float64 { return float64(l.State().Amount) / 1000 }

// Changed has a value after each change of the State, its renewals included. Changes between two
// reads are one value. One goroutine at a time should read it.
func (l *Lease) Changed() <-chan struct{} { return l.changed }

// Demand counts units that were requested now, whether they may be spent or not. It allocates nothing.
func (l *Lease) Demand(units int64) {
	if units > 0 {
		add(&l.demand, units)
		l.rouse()
	}
}

// Waiting sets the number of units that wait at present.
func (l *Lease) Waiting(units int64) {
	if l.waiting.Swap(max(units, 0)) == 0 && units > 0 {
		l.rouse()
	}
}

// rouse wakes watch if it does not look at the demand.
func (l *Lease) rouse() {
	if !l.awake.Load() && !l.awake.Swap(true) {
		poke(l.client.alarm)
	}
}

// Want states what the program wants, in place of the estimate: thousandths of a unit per second, or
// slots. A negative amount goes back to the estimate.
func (l *Lease) Want(amount int64) {
	l.stated.Store(min(max(amount, -1), math.MaxInt64-1) + 1)
	poke(l.client.alarm)
}

// Spent counts units of calls to the resource.
func (l *Lease) Spent(units int64) { add(&l.spent, max(units, 0)) }

// Refused counts units of calls that the resource itself refused because of overload, with 429 or 503.
// Count them as spent, too. The servers reduce the capacity if the refused part is large.
func (l *Lease) Refused(units int64) { add(&l.refused, max(units, 0)) }

// add adds units to a counter that does not overflow.
func add(to *atomic.Int64, units int64) {
	const most = 1 << 40
	if to.Add(min(units, most)) > 2*most {
		to.Store(most)
	}
}

// Close releases the lease. The capacity is free for other programs at once if a server is connected.
func (l *Lease) Close() {
	k := l.client
	k.mu.Lock()
	if k.leases[l.resource] == l {
		k.holder.Release(l.resource)
		delete(k.leases, l.resource)
		poke(l.changed)
	}
	k.mu.Unlock()
	k.wake()
}

// measure moves the counters to the estimate. It reports whether watch must look again soon. The
// caller holds the lock of the client.
func (l *Lease) measure(now headgate.Instant) (again bool) {
	l.estimate.Add(now, l.demand.Swap(0))
	if spent, refused := l.spent.Swap(0), l.refused.Swap(0); spent > 0 {
		l.client.holder.Spent(l.resource, 1000*spent, 1000*min(refused, spent))
	}
	if l.waiting.Load() > 0 || !l.estimate.Idle(now) {
		l.awake.Store(true)
		return true
	}
	l.awake.Store(false)
	return l.demand.Load() > 0 || l.waiting.Load() > 0 // A caller may have come before the store.
}

// wants returns what the program wants. The caller holds the lock of the client.
func (l *Lease) wants(now headgate.Instant) int64 {
	if stated := l.stated.Load(); stated > 0 {
		return stated - 1
	}
	return l.estimate.Wants(now, l.waiting.Load())
}

// stateOf converts a status at the time at. The caller holds the lock of the client.
func (l *Lease) stateOf(s holder.Status, at time.Time) State {
	state := State{Amount: s.Amount, Slots: s.Slots, Lost: s.Lost, Limited: s.Limited}
	if s.Left > 0 {
		state.Until = at.Add(s.Left)
	}
	if state.Fault = l.client.fault; s.Refused != nil {
		state.Fault, state.Refused = fmt.Sprintf("%.512s", s.Refused.Text), true
	}
	return state
}
