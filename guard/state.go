package guard

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/fairshare"
	"github.com/headgate/headgate/guard/wheel"
)

// State is what outlives a reload: the requests that wait, the bans that were met, and
// the clients that share. Guards that follow each other share one. It is safe for
// concurrent use.
type State struct {
	timers *wheel.Timers
	seed   maphash.Seed
	bans   bans

	mu      sync.Mutex
	waiting map[string]*atomic.Int64 // by the name of the rule; under mu
	shares  *fairshare.Limiter       // nil without fair share; under mu
}

// NewState makes an empty State.
func NewState() *State {
	return &State{
		timers: wheel.NewTimers(), seed: maphash.MakeSeed(), waiting: map[string]*atomic.Int64{},
		bans: bans{met: map[uint64]*ban{}},
	}
}

// sharer gives who shares the capacity; nil is without fair share.
func (s *State) sharer() *fairshare.Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shares
}

func (s *State) setSharer(l *fairshare.Limiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shares = l
}

// waitersOf gives the count of those that wait for a rule.
func (s *State) waitersOf(name string) *atomic.Int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, known := s.waiting[name]
	if !known {
		n = new(atomic.Int64)
		s.waiting[name] = n
	}
	return n
}

// waitingFor gives how many wait for a rule, which need not be one.
func (s *State) waitingFor(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, known := s.waiting[name]; known {
		return n.Load()
	}
	return 0
}

// forgetRules forgets the rules that are gone and that nobody waits for. Requests
// that are being decided under them keep their counts to themselves.
func (s *State) forgetRules(rules []Rule) {
	kept := make(map[string]bool, len(rules))
	for i := range rules {
		kept[rules[i].Name] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, n := range s.waiting {
		if !kept[name] && n.Load() == 0 {
			delete(s.waiting, name)
		}
	}
}
