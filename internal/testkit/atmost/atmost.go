// Package atmost has a guard.Stage for tests that bounds the requests in flight, with a queue.
package atmost

import (
	"slices"
	"sync"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// Stage admits up to most requests at once, and lets up to queue others wait.
type Stage struct {
	most, queue int
	mu          sync.Mutex // Guards the fields below.
	used        int
	waiting     []*entry
	peak        int
}

// entry is a request in the stage.
type entry struct {
	handle guard.Handle
	holds  bool
}

// New returns a Stage.
func New(most, queue int) *Stage { return &Stage{most: most, queue: queue} }

// Rule implements guard.Stage.
func (*Stage) Rule() guard.Rule { return guard.Rule{Rule: rule.Rule{Name: "at_most"}} }

// Facts implements guard.Stage.
func (*Stage) Facts() guard.Facts { return guard.Facts{} }

// Enter implements guard.Stage.
func (s *Stage) Enter(p *guard.Pass) headgate.Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &entry{handle: p.Handle(), holds: s.used < s.most}
	if p.Value = e; e.holds {
		s.used++
		s.peak = max(s.peak, s.used)
		return headgate.Decision{Reason: headgate.WithinLimit}
	}
	if len(s.waiting) == s.queue {
		return headgate.Decision{Verdict: headgate.Deny, Reason: headgate.QueueFull}
	}
	s.waiting = append(s.waiting, e)
	return headgate.Decision{Verdict: headgate.Wait, Reason: headgate.Scheduled}
}

// Leave implements guard.Stage.
func (s *Stage) Leave(p *guard.Pass, _ *guard.Outcome) {
	e, _ := p.Value.(*entry)
	s.mu.Lock()
	var next *entry
	switch {
	case !e.holds:
		i := slices.Index(s.waiting, e)
		s.waiting = slices.Delete(s.waiting, i, i+1)
	case len(s.waiting) > 0:
		next, s.waiting = s.waiting[0], s.waiting[1:]
		next.holds = true
	default:
		s.used--
	}
	s.mu.Unlock()
	if next != nil {
		next.handle.Resume(headgate.Decision{Reason: headgate.WithinLimit})
	}
}

// Slots returns the number of used slots, its maximum so far, and the number of waiters.
func (s *Stage) Slots() (used, peak, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.peak, len(s.waiting)
}
