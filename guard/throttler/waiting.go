package throttler

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// waiting lists the queued requests, for reloads that end all waits. The zero waiting is empty.
type waiting struct{ first *entry }

func (w *waiting) add(e *entry) {
	e.queued, e.later, e.earlier = true, w.first, nil
	if w.first != nil {
		w.first.earlier = e
	}
	w.first = e
}

func (w *waiting) remove(e *entry) {
	if e.earlier != nil {
		e.earlier.later = e.later
	} else {
		w.first = e.later
	}
	if e.later != nil {
		e.later.earlier = e.earlier
	}
	e.queued, e.later, e.earlier = false, nil, nil
}

// Apply implements guard.ReloadStage. The limits take effect for queued requests too. Outside of mode
// Enforce, queued requests go on.
func (s *Stage) Apply() {
	s.mu.Lock()
	now := s.now()
	var list []resumption
	if s.version > s.applied {
		s.applied = s.version
		_ = s.throttler.Configure(s.config.Limits) // Config.check has found the faults.
		list = s.next(now, list)
	}
	if s.version == s.applied && s.config.Mode != guard.Enforce {
		list = s.endWaits(list)
	}
	s.mu.Unlock()
	resume(list)
}

// Remove implements guard.ReloadStage: queued requests go on.
func (s *Stage) Remove() {
	s.mu.Lock()
	list := s.endWaits(nil)
	s.mu.Unlock()
	resume(list)
}

// endWaits lists all queued requests as allowed. They stay in the queue of the throttler, which models
// them until their ends. The caller holds mu.
func (s *service) endWaits(list []resumption) []resumption {
	for e := s.queue.first; e != nil; e = e.later {
		list = append(list, resumption{e.handle, headgate.Decision{Reason: headgate.WithinLimit}})
	}
	return list
}
