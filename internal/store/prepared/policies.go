package prepared

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate"
)

const (
	// Most is the largest number of policies in a store. A place of the memory store names its
	// policy in 16 bits, and 0 means no policy.
	Most = math.MaxUint16
	// Reserve is the number of policies that only a configuration may use. Policies that clients
	// name leave it free, so that a reload has capacity.
	Reserve = 4096

	slotBits = 16
)

// Policies keeps a plan of type P for each policy. Open makes the zero value ready. Policies
// is safe for concurrent use.
type Policies[P any] struct {
	// table is indexed by slot; slot 0 belongs to no policy. Its elements change under mu.
	table  atomic.Pointer[[]atomic.Pointer[Policy[P]]]
	config Config[P]

	mu          sync.RWMutex // mu guards the fields below.
	known       map[headgate.Policy]*Policy[P]
	slots       int      // slots used so far, slot 0 included
	generations []uint16 // by slot: the number of earlier policies
	free        []uint16 // free slots, the slot that was freed first at the front
	released    released[P]
}

// Config is what a store adds to the registry.
type Config[P any] struct {
	// Expiry sets when and how released policies are freed.
	Expiry[P]

	// Compile makes the plan of a new policy. Compile and Drop run under the lock of the
	// registry. Prepare gives the error of Compile.
	Compile func(headgate.Policy) (*P, error)
	// Drop is called for each plan that is freed; nil is allowed.
	Drop func(*P)
}

// Policy is a prepared policy.
type Policy[P any] struct {
	// open is the id while the policy has users, else 0.
	open atomic.Uint32
	id   headgate.PolicyID
	// Plan is derived from the policy by Compile, and never changes.
	Plan P

	policy headgate.Policy
	users  int              // guarded by mu
	until  headgate.Instant // guarded by mu; see released
	at     int              // the position in released; guarded by mu
	used   atomic.Bool
}

// Names reports whether an Op may name the policy by the id: the id belongs to this policy,
// and the policy has users. Under a lock that Sweep takes, the answer stays true until that
// lock is released.
func (e *Policy[P]) Names(id headgate.PolicyID) bool { return e.open.Load() == uint32(id) }

// ID gives the policy's id.
func (e *Policy[P]) ID() headgate.PolicyID { return e.id }

// Use records that state may depend on the policy.
func (e *Policy[P]) Use() {
	if !e.used.Load() {
		e.used.Store(true)
	}
}

// Used reports whether Use was called.
func (e *Policy[P]) Used() bool { return e.used.Load() }

// Open makes the registry ready.
func (p *Policies[P]) Open(c Config[P]) {
	p.config = c
	p.known = make(map[headgate.Policy]*Policy[P])
	p.slots, p.generations = 1, make([]uint16, 1)
	table := make([]atomic.Pointer[Policy[P]], 2)
	none := new(Policy[P])
	none.id = math.MaxUint32 // The policy of slot 0 has an id that no Op can name.
	none.open.Store(uint32(none.id))
	table[0].Store(none)
	p.table.Store(&table)
}

// Made reports whether Open was called.
func (p *Policies[P]) Made() bool { return p.table.Load() != nil }

// At gives the policy of a slot, or nil. Slot 0 has the zero plan. The caller must call Names.
func (p *Policies[P]) At(slot uint16) *Policy[P] {
	table := p.table.Load()
	if table == nil || int(slot) >= len(*table) {
		return nil
	}
	return (*table)[slot].Load()
}

// Get gives the policy that an Op names, or nil.
func (p *Policies[P]) Get(id headgate.PolicyID) *Policy[P] {
	if e := p.At(uint16(id)); e != nil && e.Names(id) {
		return e
	}
	return nil
}

// GetToUse is Get for an Op that state may depend on. It records the use before it looks for
// users. A concurrent Release therefore sees the use, or GetToUse sees the Release.
func (p *Policies[P]) GetToUse(id headgate.PolicyID) *Policy[P] {
	e := p.At(uint16(id))
	if e == nil {
		return nil
	}
	if e.Use(); e.Names(id) {
		return e
	}
	return nil
}

// Issuer gives the policy of a receipt's id, released or not, or nil after it was freed.
func (p *Policies[P]) Issuer(id headgate.PolicyID) *Policy[P] {
	if e := p.At(uint16(id)); e != nil && e.id == id {
		return e
	}
	return nil
}

// Find gives the plan of a policy that is not freed, or nil.
func (p *Policies[P]) Find(policy headgate.Policy) *P {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if e := p.known[policy]; e != nil {
		return &e.Plan
	}
	return nil
}

// Each calls visit for every policy that is not freed, in the order of the slots, under the
// lock. Until slots are reused, this is the order of Prepare.
func (p *Policies[P]) Each(visit func(headgate.Policy)) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for slot := 1; slot < p.slots; slot++ {
		if e := p.At(uint16(slot)); e != nil {
			visit(e.policy)
		}
	}
}

// Prepare gives the id of a policy and adds a user. The error is that of Compile, or
// headgate.ErrTooManyPolicies.
func (p *Policies[P]) Prepare(policy headgate.Policy) (headgate.PolicyID, error) {
	named := policy.Named
	policy.Named = false
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.known[policy]; e != nil {
		if e.users++; e.users == 1 {
			p.released.remove(e)
			e.open.Store(uint32(e.id))
		}
		return e.id, nil
	}
	most := Most
	if named {
		most -= Reserve
	}
	p.expire(len(p.known) >= most, named)
	if len(p.known) >= most {
		return 0, headgate.ErrTooManyPolicies
	}
	compiled := policy
	compiled.Named = named // A store in front of another store passes Named on.
	plan, err := p.config.Compile(compiled)
	if err != nil {
		return 0, err
	}
	e := &Policy[P]{Plan: *plan, policy: policy, users: 1}
	p.place(e)
	p.known[policy] = e
	return e.id, nil
}

// place gives a policy a slot and an id. The caller holds mu. All slots are used in turn, so
// that an id comes back only after 2^32 others.
func (p *Policies[P]) place(e *Policy[P]) {
	slot := p.slots
	if slot <= Most {
		p.slots++
		p.generations = append(p.generations, 0)
	} else {
		slot = int(p.free[0])
		p.free = p.free[1:]
	}
	e.id = headgate.PolicyID(p.generations[slot])<<slotBits | headgate.PolicyID(slot)
	e.open.Store(uint32(e.id))
	table := *p.table.Load()
	if slot >= len(table) {
		table = make([]atomic.Pointer[Policy[P]], min(2*len(table), Most+1))
		for i, old := 0, *p.table.Load(); i < len(old); i++ {
			table[i].Store(old[i].Load())
		}
		table[slot].Store(e)
		p.table.Store(&table)
		return
	}
	table[slot].Store(e)
}

// Release removes a user. For an id without users, Release does nothing.
func (p *Policies[P]) Release(id headgate.PolicyID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.Get(id)
	if e == nil {
		return
	}
	if e.users--; e.users > 0 {
		return
	}
	e.open.Store(0)
	p.retire(e)
}

// drop frees a policy. The caller holds mu.
func (p *Policies[P]) drop(e *Policy[P]) {
	slot := uint16(e.id)
	(*p.table.Load())[slot].Store(nil)
	p.generations[slot]++
	p.free = append(p.free, slot)
	delete(p.known, e.policy)
	if p.config.Drop != nil {
		p.config.Drop(&e.Plan)
	}
}

// Counts gives the number of policies with users, and the number of released ones.
func (p *Policies[P]) Counts() (open, released int) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.known) - p.released.Len(), p.released.Len()
}
