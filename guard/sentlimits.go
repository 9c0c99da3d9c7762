package guard

import (
	"container/list"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// DefaultMaxSentLimits bounds the different limits that clients send to one domain, and those of all
// SentBatches. Each is a policy of the store while it is kept.
const DefaultMaxSentLimits = 1000

// sentIdle is the time after which a new limit makes unused ones leave.
const sentIdle = 10 * time.Minute

// sentLimits are the limits that clients sent with descriptors of one domain, or to buckets, each
// prepared in the store. The least recently used limit leaves when there are too many. Its counts
// stay in the store until they expire.
type sentLimits struct {
	guard  *Guard
	config *Config
	rule   prepared // the rule that all sent limits belong to
	shown  prepared // the rule of buckets for observers, whose keys are without prefix
	prefix []byte   // what keys of buckets begin with
	policy func(headgate.Limit) (headgate.Policy, error)
	most   int
	table  *sentTable
}

// sentTable holds the limits. It does not refer to sentLimits, so that the garbage collector can find
// out that no request uses them.
type sentTable struct {
	mu      sync.Mutex
	entries map[headgate.Limit]*list.Element // of *sentLimit; guarded by mu
	used    list.List                        // the most recently used first; guarded by mu
	swept   time.Time                        // when unused limits left last; guarded by mu
}

// sentLimit is a limit that clients sent. Guarded by the table's mu, except windows.
type sentLimit struct {
	limit   headgate.Limit
	windows []window // one
	claims  claims
	users   int
	dropped bool
	recent  bool // used since the last sweep
}

// newSentLimits makes the table of a domain.
func (g *Guard) newSentLimits(c *Config, t *tree) *sentLimits {
	return g.sentLimitsOf(c, &Rule{Rule: rule.Rule{Name: t.Name}, Fallback: t.Fallback}, func(l headgate.Limit) (headgate.Policy, error) {
		policy := LeafPolicy(headgate.FixedWindow, l)
		policy.Named = true
		return policy, nil
	})
}

// newSentBuckets makes the table of sent buckets. Without a store there is none.
func (g *Guard) newSentBuckets(c *Config) *sentLimits {
	if g.store == nil {
		return nil
	}
	s := g.sentLimitsOf(c, &Rule{}, bucketPolicy)
	shown := SentRule()
	s.shown = prepared{Rule: &shown, state: g.state}
	s.prefix = append(slices.Clone(s.rule.space), sentKeys...)
	return s
}

func (g *Guard) sentLimitsOf(c *Config, r *Rule, policy func(headgate.Limit) (headgate.Policy, error)) *sentLimits {
	most := c.MaxSentLimits
	if most <= 0 {
		most = DefaultMaxSentLimits
	}
	config := *c
	s := &sentLimits{
		guard: g, config: &config, most: most, rule: prepared{Rule: r, state: g.state, space: namespaced(c.Namespace), number: -1},
		policy: policy, table: &sentTable{entries: map[headgate.Limit]*list.Element{}, swept: machineTime()},
	}
	runtime.AddCleanup(s, (*sentTable).releaseAll, s.table)
	return s
}

// acquire gives the window of a sent limit. The caller must release it after the decision. The
// error is headgate.ErrTooManyPolicies, or names what is invalid in the limit.
func (s *sentLimits) acquire(limit headgate.Limit) (*sentLimit, error) {
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, known := t.entries[limit]; known {
		t.used.MoveToFront(e)
		kept := sentLimitOf(e)
		kept.users++
		kept.recent = true
		return kept, nil
	}
	if now := machineTime(); now.Sub(t.swept) >= sentIdle {
		t.swept = now
		t.sweep()
	}
	kept, err := s.prepare(limit)
	if errors.Is(err, headgate.ErrTooManyPolicies) && t.used.Len() > 0 {
		t.drop(t.used.Back()) // So that the store can free it, for a later attempt.
	}
	if err != nil {
		return nil, err
	}
	for t.used.Len() >= s.most {
		t.drop(t.used.Back())
	}
	t.entries[limit] = t.used.PushFront(kept)
	return kept, nil
}

// prepare prepares a limit in the store, and in Local if the domain falls back to it.
func (s *sentLimits) prepare(limit headgate.Limit) (*sentLimit, error) {
	policy, err := s.policy(limit)
	if err != nil {
		return nil, err
	}
	kept := &sentLimit{limit: limit, users: 1, recent: true}
	c := counters{guard: s.guard, config: s.config, rule: s.rule.Rule, claims: &kept.claims}
	numbers := windowsByPeriod([]headgate.Policy{policy})
	if err := c.add(window{policy: s.rule.Name, number: numbers[0]}, policy); err != nil {
		release(kept.claims.all)
		return nil, fmt.Errorf("guard: the limit %s that was sent%s: %w", limit, toDomain(s.rule.Name), err)
	}
	kept.windows = c.all
	return kept, nil
}

// toDomain names the domain that a limit was sent to, if there is one.
func toDomain(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" to domain %q", name)
}

// sweep drops the limits that nothing has used since the last sweep. mu is locked.
func (t *sentTable) sweep() {
	for e := t.used.Back(); e != nil; {
		before := e.Prev()
		if kept := sentLimitOf(e); kept.recent || kept.users > 0 {
			kept.recent = false
		} else {
			t.drop(e)
		}
		e = before
	}
}

// sentLimitOf gives the limit of an element of used.
func sentLimitOf(e *list.Element) *sentLimit {
	kept, _ := e.Value.(*sentLimit) // used has nothing else.
	return kept
}

// drop removes an entry. Its limit is released when no decision uses it. mu is locked.
func (t *sentTable) drop(e *list.Element) {
	kept := sentLimitOf(e)
	t.used.Remove(e)
	delete(t.entries, kept.limit)
	if kept.dropped = true; kept.users == 0 {
		release(kept.claims.all)
	}
}

// release ends one use of a sent limit.
func (t *sentTable) release(kept *sentLimit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kept.users--; kept.dropped && kept.users == 0 {
		release(kept.claims.all)
	}
}

// releaseAll releases every limit, when no request can use the tree any more.
func (t *sentTable) releaseAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.used.Len() > 0 {
		t.drop(t.used.Back())
	}
}
