package jwt

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// cacheShards is the number of shards. Each shard has its own lock.
const cacheShards = 16

// digest identifies a token. Finding two tokens with one digest is not feasible.
type digest [sha256.Size]byte

// digestOf hashes a token piece by piece. Hashing the token at once would copy it to the
// heap.
func digestOf(token string) (d digest) {
	h := sha256.New()
	var piece [1024]byte // most tokens fit into one piece
	for len(token) > 0 {
		n := copy(piece[:], token)
		h.Write(piece[:n])
		token = token[n:]
	}
	h.Sum(d[:0])
	return d
}

// cache keeps valid tokens until they expire, up to a fixed number. cache stores only valid
// tokens, so that only a client with many valid tokens can evict tokens of others. The
// clock algorithm evicts tokens without recent hits first.
type cache struct{ shards [cacheShards]shard }

// shard is a part of a cache with its own lock. get takes the read lock, and put takes
// the write lock.
type shard struct {
	mu     sync.RWMutex
	room   int
	places []place
	index  map[digest]int
	hand   int
}

// place is the entry of one token.
type place struct {
	token   digest
	claims  headgate.Values
	expires time.Time
	asked   atomic.Bool // has had a hit since the hand last passed
}

// newCache returns a cache for up to room tokens. Its memory grows as it fills.
func newCache(room int) *cache {
	c := &cache{}
	room = max(room, 0)
	for i := range c.shards {
		s := &c.shards[i]
		s.room = (room + i) / cacheShards // the sum over all shards is room
		s.index = make(map[digest]int)
	}
	return c
}

func (c *cache) shard(token digest) *shard { return &c.shards[token[0]%cacheShards] }

// get returns the claims of a cached token that has not expired.
func (c *cache) get(token digest, now time.Time) (claims headgate.Values, ok bool) {
	s := c.shard(token)
	s.mu.RLock()
	defer s.mu.RUnlock()
	i, found := s.index[token]
	if !found {
		return nil, false
	}
	p := &s.places[i]
	if !now.Before(p.expires) {
		return nil, false
	}
	if !p.asked.Load() { // avoid a write to the shared cache line on every hit
		p.asked.Store(true)
	}
	return p.claims, true
}

// put stores a token until it expires. put keeps an existing token that has not expired,
// because a digest always has the same claims.
func (c *cache) put(token digest, claims headgate.Values, expires, now time.Time) {
	s := c.shard(token)
	s.mu.Lock()
	defer s.mu.Unlock()
	i, found := s.index[token]
	switch {
	case s.room == 0 || found && now.Before(s.places[i].expires):
		return
	case found: // the token has expired
	case len(s.places) < s.room:
		i = len(s.places)
		s.places = append(s.places, place{})
	default:
		i = s.free(now)
		delete(s.index, s.places[i].token)
	}
	p := &s.places[i]
	p.token, p.claims, p.expires = token, claims, expires
	p.asked.Store(false)
	s.index[token] = i
}

// free returns the place to evict when all places are taken. Each place that the hand
// passes loses its mark, so the loop ends after at most one full round.
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
