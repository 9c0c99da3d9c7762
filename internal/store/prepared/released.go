package prepared

import (
	"container/heap"
	"time"

	"github.com/headgate/headgate"
)

// InFlight is how long after the last user of a policy has left a take may be counted that
// began before: a caller's deadline for a shared store. A take that is counted even later may
// outlive its policy. Its receipt then returns nothing, and its units stay counted.
const InFlight = time.Minute

// Expiry says when a released policy has no live state any more.
//
// A store either knows how long state lives (Now and Life), or looks (Now and Sweep), or
// keeps none that depends on the registry, when all are nil: a policy is then freed with
// its last user.
type Expiry[P any] struct {
	// Now reads the clock of Life and Sweep. It is safe for concurrent use with Life;
	// with Sweep only Prepare calls it.
	Now func() headgate.Instant
	// Life gives how long after the last user has left state may live; 0 is no state.
	Life func(*Policy[P]) time.Duration
	// Sweep calls Keep for those of the released policies that have live state, and removes
	// what is left of the others, so that nothing names their slots any more. It runs
	// under the lock of the registry.
	Sweep func(released []*Policy[P], now headgate.Instant)
	// Batch is how many policies must be released before a sweep. Rest is the time between
	// two sweeps of a full store that clients cause. Together they bound what sweeping costs.
	Batch int
	Rest  time.Duration
}

// Keep says that live state depends on the policy until the instant.
func (e *Policy[P]) Keep(until headgate.Instant) { e.until = max(e.until, until) }

// released is a heap of the policies without users. The until of each is when it may be
// freed; 0 is not known, and Sweep tells.
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

// remove takes a policy out that has a user again.
func (r *released[P]) remove(e *Policy[P]) { heap.Remove(r, e.at) }

// due takes the policies out that may be freed at now.
func (r *released[P]) due(now headgate.Instant) []*Policy[P] {
	var all []*Policy[P]
	for len(r.heap) > 0 && r.heap[0].until <= now {
		all = append(all, heap.Pop(r).(*Policy[P])) //nolint:errcheck,forcetypeassert // as in Push.
	}
	return all
}

// retire follows the last user; mu is held. It reads no clock unless Life is set: a
// garbage collector's goroutine may release.
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

// expire frees the released policies that have no live state; mu is held. full says that
// there is no capacity for the next one, and named that a client has named that one.
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
	// Further ahead the rest is that of a clock that has stepped back.
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
