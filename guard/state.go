package guard

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/guard/internal/refusals"
	"github.com/headgate/headgate/guard/internal/wheel"
)

// State is the data that outlives a reload: waiting requests, known bans, and the clients of
// fair share. Consecutive Guards share one State. A State is safe for concurrent use.
type State struct {
	queues *waitQueues
	seed   maphash.Seed
	bans   bans

	returns     returns
	resets      resets
	resumptions resumptions
	batches     sync.Pool // of *batch
	endings     sync.Pool // of *ending
	scans       sync.Pool // of *Scan
	bodies      bodyCounts
	refusals    apiRefusals

	mu      sync.Mutex
	places  map[string]*places // by the name of the rule; guarded by mu
	watches map[string]*watch  // by their markers; guarded by mu
	shares  *fairshare.Limiter // nil without fair share; guarded by mu

	refused      *refusals.Table // nil without Config.RefusalsMemory; guarded by mu
	refusedBytes int64           // its Config.RefusalsMemory; guarded by mu
}

// NewState makes an empty State. Its waits use the machine's monotonic clock.
func NewState() *State { return NewStateAt(wheel.Machine()) }

// NewStateAt makes an empty State. Its waits use the clock c, for example of a simulation.
func NewStateAt(c Clock) *State {
	return &State{
		queues: newWaitQueues(c), seed: maphash.MakeSeed(), places: map[string]*places{}, watches: map[string]*watch{},
		bans: bans{met: map[uint64]*ban{}}, refusals: newAPIRefusals(),
	}
}

// sharer gives the limiter of fair share; nil without fair share.
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

// placesOf gives the counts of the waiters of a rule.
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

// waitingFor gives the number of waiters of a rule; 0 for an unknown rule.
func (s *State) waitingFor(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, known := s.places[name]; known {
		return p.waiting.Load()
	}
	return 0
}

// ending gives an empty ending.
func (s *State) ending() *ending {
	if e, ok := s.endings.Get().(*ending); ok {
		return e
	}
	return new(ending)
}

// holdingFor gives the number of slots that requests hold under a rule; 0 for an unknown rule.
func (s *State) holdingFor(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, known := s.places[name]; known {
		return p.holding.Load()
	}
	return 0
}

// forgetRules drops removed rules without waiters and slots. Requests that are being decided under such a
// rule keep its counts.
func (s *State) forgetRules(rules []Rule) {
	kept := make(map[string]bool, len(rules))
	for i := range rules {
		kept[rules[i].Name] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range s.places {
		if !kept[name] && p.waiting.Load() == 0 && p.holding.Load() == 0 {
			delete(s.places, name)
		}
	}
	for marker, w := range s.watches {
		if name, of := strings.CutPrefix(marker, markerOfRule); of && !kept[name] {
			delete(s.watches, w.marker)
		}
	}
}
