package guard

import (
	"hash/maphash"
	"sync"

	"github.com/headgate/headgate/fairshare"
	"github.com/headgate/headgate/guard/wheel"
)

// State is what outlives a reload: the requests that wait, the bans that were met, and
// the clients that share. Guards that follow each other share one. It is safe for
// concurrent use.
type State struct {
	queues *waitQueues
	seed   maphash.Seed
	bans   bans

	returns     returns
	resumptions resumptions
	batches     sync.Pool // of *batch

	mu     sync.Mutex
	places map[string]*places // by the name of the rule; under mu
	shares *fairshare.Limiter // nil without fair share; under mu
}

// NewState makes an empty State whose waits go by the machine's monotonic clock.
func NewState() *State { return NewStateAt(wheel.Machine()) }

// NewStateAt makes an empty State whose waits go by a clock, that of a simulation for
// example.
func NewStateAt(c wheel.Clock) *State {
	return &State{
		queues: newWaitQueues(c), seed: maphash.MakeSeed(), places: map[string]*places{},
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

// placesOf gives the counts of what waits for a rule.
func (s *State) placesOf(name string) *places {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.places[name]
	if !known {
		p = new(places)
		s.places[name] = p
	}
	return p
}

// waitingFor gives how many wait for a rule, which need not be one.
func (s *State) waitingFor(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, known := s.places[name]; known {
		return p.waiting.Load()
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
	for name, p := range s.places {
		if !kept[name] && p.waiting.Load() == 0 {
			delete(s.places, name)
		}
	}
}
