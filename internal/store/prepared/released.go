package prepared

import (
	"container/heap"
	"time"

	"github.com/headgate/headgate"
)

// InFlight is how long a take may be in progress after the last user has released its policy:
// the largest deadline of a caller of a shared store. A take that is counted even later may
// outlive its policy. Its receipt then returns nothing, and its units stay counted.
const InFlight = time.Minute

// Expiry finds when a released policy has no live state.
//
// A store has one of three forms. With Now and Life, it knows how long state lives. With Now
// and Sweep, it searches for live state. With neither, no state depends on the registry,
// and a policy is freed with its last user.
type Expiry[P any] struct {
	// Now reads the clock of Life and Sweep. With Life, Now must be safe for concurrent use.
	// With Sweep, only Prepare calls it.
	Now func() headgate.Instant
	// Life gives how long state may live after the last user; 0 means that there is none.
	Life func(*Policy[P]) time.Duration
	// Sweep calls Keep for each released policy with live state. It removes expired state of the
	// others, so that nothing names their slots. Sweep runs under the lock of the registry.
	Sweep func(released []*Policy[P], now headgate.Instant)
	// Batch is the number of released policies that starts a sweep. Rest is the time between two
	// sweeps of a full store when clients cause them. Together they bound the cost of sweeps.
	Batch int
	Rest  time.Duration
}

// Keep records that live state depends on the policy until the instant.
func (e *Policy[P]) Keep(until headgate.Instant) { e.until = max(e.until, until) }

// released is a heap of the policies without users. until is when a policy may be freed; 0
// means that Sweep must find out.
type released[P any] struct {
	heap   []*Policy[P]
	fresh  int // since the last sweep
	rested headgate.Instant
}

func (r *released[P]) Len() int           { return len(r.heap) }
func (r *released[P]) Less(i, j int) bool { return r.heap[i].until < r.heap[j].until }

func (r *released[P]) Swap(i, j int) {
	r.heap[i], r.heap[j] = r.heap[j], r.heap[i]
	r.heap[i].at, r.heap[j].at = i, j
}

// Push implements heap.Interface.
func (r *released[P]) Push(e any) {
	policy := e.(*Policy[P]) //nolint:errcheck,forcetypeassert // because nothing else is pushed.
	policy.at = len(r.heap)
	r.heap = append(r.heap, policy)
}

// Pop implements heap.Interface.
func (r *released[P]) Pop() any {
	last := len(r.heap) - 1
	e := r.heap[last]
	r.heap[last] = nil
	r.heap = r.heap[:last]
	return e
}

// remove takes a policy with a new user out of the heap.
func (r *released[P]) remove(e *Policy[P]) { heap.Remove(r, e.at) }

// due removes and gives the policies that may be freed at now.
func (r *released[P]) due(now headgate.Instant) []*Policy[P] {
	var all []*Policy[P]
	for len(r.heap) > 0 && r.heap[0].until <= now {
		all = append(all, heap.Pop(r).(*Policy[P])) //nolint:errcheck,forcetypeassert // as in Push.
	}
	return all
}

// retire runs after the last Release. The caller holds mu. retire reads no clock unless Life
// is set: the garbage collector's goroutine may call Release.
func (p *Policies[P]) retire(e *Policy[P]) {
	e.until = 0
	if p.config.Life != nil {
		if life := p.config.Life(e); life > 0 {
			e.until = p.config.Now().Add(life)
		}
	}
	heap.Push(&p.released, e)
	p.released.fresh++
	if p.config.Sweep == nil {
		p.expire(false, false)
	}
}

// expire frees the released policies without live state. The caller holds mu. full: the next
// policy has no slot. named: a client has named the next policy.
func (p *Policies[P]) expire(full, named bool) {
	r := &p.released
	if r.Len() == 0 {
		return
	}
	now := headgate.Instant(0)
	if p.config.Now != nil {
		now = p.config.Now()
	}
	if p.config.Sweep == nil {
		for _, e := range r.due(now) {
			p.drop(e)
		}
		return
	}
	// A longer rest comes from a clock that has stepped back.
	resting := named && now < r.rested && r.rested.Sub(now) <= p.config.Rest
	if r.fresh < p.config.Batch && (!full || resting) {
		return
	}
	due := r.due(now)
	if len(due) == 0 {
		return
	}
	r.fresh, r.rested = 0, now.Add(p.config.Rest)
	p.config.Sweep(due, now)
	for _, e := range due {
		if e.until > now {
			heap.Push(r, e)
		} else {
			p.drop(e)
		}
	}
}
