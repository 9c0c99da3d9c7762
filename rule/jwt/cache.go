package jwt

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// cacheShards spread the tokens over as many locks.
const cacheShards = 16

// digest names a token: nobody finds two with the same.
type digest [sha256.Size]byte

// digestOf hashes a token piece by piece: as a whole it would be copied to the heap.
func digestOf(token string) (d digest) {
	h := sha256.New()
	var piece [1024]byte // most tokens are one
	for len(token) > 0 {
		n := copy(piece[:], token)
		h.Write(piece[:n])
		token = token[n:]
	}
	h.Sum(d[:0])
	return d
}

// cache remembers good tokens until they expire, up to a fixed number. Only good
// tokens come in, so that only who holds many of them can drive out others; those
// asked for since the hand last passed go last (the clock algorithm).
type cache struct{ shards [cacheShards]shard }

// shard is a part of a cache under a lock of its own, which is held shared for a
// look, and alone while a new token finds its place.
type shard struct {
	mu     sync.RWMutex
	room   int
	places []place
	of     map[digest]int
	hand   int
}

// place is where a token is remembered.
type place struct {
	token   digest
	claims  headgate.Values
	expires time.Time
	asked   atomic.Bool // for since the hand passed
}

// newCache makes a cache for up to room tokens. It takes memory as it fills.
func newCache(room int) *cache {
	c := &cache{}
	room = max(room, 0)
	for i := range c.shards {
		s := &c.shards[i]
		s.room = (room + i) / cacheShards // adds up to room
		s.of = make(map[digest]int)
	}
	return c
}

func (c *cache) shard(token digest) *shard { return &c.shards[token[0]%cacheShards] }

// get gives the claims of a remembered token that has not expired.
func (c *cache) get(token digest, now time.Time) (claims headgate.Values, ok bool) {
	s := c.shard(token)
	s.mu.RLock()
	defer s.mu.RUnlock()
	i, found := s.of[token]
	if !found {
		return nil, false
	}
	p := &s.places[i]
	if !now.Before(p.expires) {
		return nil, false
	}
	if !p.asked.Load() { // or all cores would write the same word
		p.asked.Store(true)
	}
	return p.claims, true
}

// put remembers a token until it expires. One that is there already and has not expired stays: a
// digest has one token, and a token one meaning.
func (c *cache) put(token digest, claims headgate.Values, expires, now time.Time) {
	s := c.shard(token)
	s.mu.Lock()
	defer s.mu.Unlock()
	i, found := s.of[token]
	switch {
	case s.room == 0 || found && now.Before(s.places[i].expires):
		return
	case found: // and expired
	case len(s.places) < s.room:
		i = len(s.places)
		s.places = append(s.places, place{})
	default:
		i = s.free(now)
		delete(s.of, s.places[i].token)
	}
	p := &s.places[i]
	p.token, p.claims, p.expires = token, claims, expires
	p.asked.Store(false)
	s.of[token] = i
}

// free finds the place to take when all are taken. It looks at a few: each that it
// passes costs a mark, which a hit has set. At worst it comes round to the first.
func (s *shard) free(now time.Time) int {
	for {
		s.hand = (s.hand + 1) % s.room
		p := &s.places[s.hand]
		if !p.asked.Load() || !now.Before(p.expires) {
			return s.hand
		}
		p.asked.Store(false)
	}
}
