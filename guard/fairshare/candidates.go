package fairshare

import (
	"sync"

	"github.com/headgate/headgate/internal/keyhash"
)

const (
	// candidatePlaces bounds the remembered names without a share of their own. The
	// table takes 96 KiB. A name that is not in the table stays in Others.
	candidatePlaces = 1 << 12
	// neighbours is the number of table entries in which a name can be stored.
	neighbours = 4
	// cyclesSeen is the number of cycles in which a name must appear before it gets a
	// share of its own.
	cyclesSeen = 3
)

// candidates counts the cycles in which each name without a share of its own appeared.
// It is safe for concurrent use.
type candidates struct {
	mu     sync.Mutex // held for one name; only names without a share use the table
	names  keyhash.Hash
	seed   uint64 // Config.Seed of New
	places []candidate
}

// candidate is a name, identified by its hash. Two names with one hash count together.
type candidate struct {
	hash  uint64
	last  uint64 // the last cycle in which the name appeared
	count int
}

// seen records a name in a cycle, and reports whether the name has appeared in enough
// cycles. A name expires after forget idle cycles. A name that appeared only once can be
// evicted after one idle cycle.
func (s *candidates) seen(name string, number, forget uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places == nil {
		s.names, s.places = keyhash.New(s.seed), make([]candidate, candidatePlaces)
	}
	hash := s.names.String(name)
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

// free reports whether another name can take the entry.
func (p *candidate) free(number, forget uint64) bool {
	keeps := forget
	if p.count == 1 {
		keeps = min(keeps, 1)
	}
	return p.count == 0 || number > p.last+keeps
}

// again records that the name appeared, and reports whether it has appeared in enough
// cycles.
func (p *candidate) again(number uint64) bool {
	if p.last != number {
		p.last = number
		p.count++
	}
	return p.count >= cyclesSeen
}
