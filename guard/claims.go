package guard

import (
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/headgate/headgate"
)

// claims are the limits that one set has prepared in its stores. They are released when
// nothing refers to the set any more: it was replaced, and each Answer that was filled
// under it, those of requests that wait included, was dropped or filled again. The garbage
// collector finds that out, so that a request counts nothing. docs/decisions/0018-limits-are-released.md has more.
type claims struct{ all []claim }

type claim struct {
	store headgate.Store
	id    headgate.PolicyID
}

// prepare prepares a limit that is to be released with the set.
func (c *claims) prepare(store headgate.Store, policy headgate.Policy) (headgate.PolicyID, error) {
	id, err := store.Prepare(policy)
	if err == nil {
		c.all = append(c.all, claim{store, id})
	}
	return id, err
}

// release releases claims. It runs on a goroutine of the garbage collector, or for a set
// that no request has seen.
func release(all []claim) {
	for i := range all {
		all[i].store.Release(all[i].id)
	}
}

// releaseWhenDropped is called before requests refer to the set.
func (c *claims) releaseWhenDropped() { runtime.AddCleanup(c, release, c.all) }

// Bounds of the search for replaced sets. An Answer that waits in a pool is dropped by
// the second collection.
const (
	collections = 3
	yields      = 100_000 // 10 to 100 ms
)

// prepareSet is prepare, which looks for replaced sets when a store has no capacity for
// more limits.
func (g *Guard) prepareSet(c Config) (*set, error) {
	s, err := g.prepare(c)
	for i := 0; i < collections && errors.Is(err, headgate.ErrTooManyPolicies); i++ {
		collect()
		s, err = g.prepare(c)
	}
	return s, err
}

// collect has the garbage collector look for what nothing refers to, and waits until it
// has begun to release it.
func collect() {
	found := new(atomic.Bool)
	runtime.AddCleanup(&claims{all: make([]claim, 1)}, func(found *atomic.Bool) { found.Store(true) }, found)
	runtime.GC()
	for i := 0; i < yields && !found.Load(); i++ {
		runtime.Gosched()
	}
}
