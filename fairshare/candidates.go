package fairshare

import (
	"hash/maphash"
	"sync"
)

const (
	// candidatePlaces bounds the names without a share of their own that are remembered
	// at all: 96 KiB. Names of which no trace is kept stay among the others.
	candidatePlaces = 1 << 12
	// neighbours is among how many places a name looks for its own.
	neighbours = 4
	// cyclesSeen is in how many cycles a name has to be seen for a share of its own.
	cyclesSeen = 3
)

// candidates counts in how many cycles names without a share of their own were
// seen. It is safe for concurrent use.
type candidates struct {
	mu     sync.Mutex // held for one name; only names without a share come here
	seed   maphash.Seed
	places []candidate
}

// candidate is a name, by its hash: two names of one hash would count together.
type candidate struct {
	hash  uint64
	last  uint64 // cycle
	count int
}

// seen notes a name in a cycle, and reports whether it has been seen in enough. It is
// forgotten when it does not come for so many cycles, or, when it came once only and
// others need its place, for one.
func (s *candidates) seen(name string, number, forget uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places == nil {
		s.seed, s.places = maphash.MakeSeed(), make([]candidate, candidatePlaces)
	}
	hash := maphash.String(s.seed, name)
	from := hash % (candidatePlaces / neighbours) * neighbours
	var free *candidate
	for i := range uint64(neighbours) {
		p := &s.places[from+i]
		switch {
		case p.count > 0 && p.hash == hash && number <= p.last+forget:
			return p.again(number)
		case p.free(number, forget) && (free == nil || p.last < free.last):
			free = p
		}
	}
	if free != nil {
		*free = candidate{hash: hash, last: number, count: 1}
	}
	return false
}

// free reports whether another name may have the place.
func (p *candidate) free(number, forget uint64) bool {
	keeps := forget
	if p.count == 1 {
		keeps = min(keeps, 1)
	}
	return p.count == 0 || number > p.last+keeps
}

// again notes the name of a place, and reports whether it has been seen in enough cycles.
func (p *candidate) again(number uint64) bool {
	if p.last != number {
		p.last = number
		p.count++
	}
	return p.count >= cyclesSeen
}
