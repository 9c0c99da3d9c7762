package guard

import (
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/headgate/headgate"
)

// claims are the limits that one set has prepared in its stores. They are released when nothing
// refers to the set: the set was replaced, and every Answer that it filled was dropped or filled
// again, also those of waiting requests. The garbage collector finds that out, so requests need
// no count. docs/decisions/0018-limits-are-released.md gives the reasons.
type claims struct {
	all []claim
	// parts were prepared with this set, and later sets may keep them. Each is released when no set has it.
	parts *[]*claims // nil without parts
}

// addPart adds claims that later sets may keep.
func (c *claims) addPart(part *claims) {
	if c.parts == nil {
		c.parts = new([]*claims)
	}
	*c.parts = append(*c.parts, part)
}

// eachPart calls f with each part.
func (c *claims) eachPart(f func(*claims)) {
	if c.parts != nil {
		for _, part := range *c.parts {
			f(part)
		}
	}
}

type claim struct {
	store headgate.Store
	id    headgate.PolicyID
}

// prepare prepares a limit that is released with the set.
func (c *claims) prepare(store headgate.Store, policy headgate.Policy) (headgate.PolicyID, error) {
	id, err := store.Prepare(policy)
	if err == nil {
		c.all = append(c.all, claim{store, id})
	}
	return id, err
}

// release releases claims. It runs on a goroutine of the garbage collector, or directly for a set
// that no request has used.
func release(all []claim) {
	for i := range all {
		all[i].store.Release(all[i].id)
	}
}

// releaseWhenDropped must be called before requests refer to the set.
func (c *claims) releaseWhenDropped() {
	runtime.AddCleanup(c, release, c.all)
	c.eachPart(func(part *claims) { runtime.AddCleanup(part, release, part.all) })
	c.parts = nil // Who uses a part refers to it.
}

// releaseNow releases what no request has used.
func (c *claims) releaseNow() {
	release(c.all)
	c.eachPart(func(part *claims) { release(part.all) })
}

// Bounds of the search for replaced sets. The second collection drops an Answer in a pool.
const (
	collections = 3
	yields      = 100_000 // 10 to 100 ms
)

// prepareSet is prepare. When a store has no capacity for more limits, it first releases replaced
// sets.
func (g *Guard) prepareSet(c Config) (*set, error) {
	s, err := g.prepare(c)
	for i := 0; i < collections && errors.Is(err, headgate.ErrTooManyPolicies); i++ {
		collect()
		s, err = g.prepare(c)
	}
	return s, err
}

// collect runs the garbage collector, and waits until the release of unreachable sets has begun.
func collect() {
	found := new(atomic.Bool)
	runtime.AddCleanup(&claims{all: make([]claim, 1)}, func(found *atomic.Bool) { found.Store(true) }, found)
	runtime.GC()
	for i := 0; i < yields && !found.Load(); i++ {
		runtime.Gosched()
	}
}
