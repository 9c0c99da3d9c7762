package jwt

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/race"
)

// fill counts the used places and checks that each place is found by its token.
func (c *cache) fill(t *testing.T) int {
	t.Helper()
	n := 0
	for i := range c.shards {
		s := &c.shards[i]
		if len(s.places) != len(s.index) || len(s.places) > s.room {
			t.Fatalf("shard %d: %d places and %d tokens, capacity %d", i, len(s.places), len(s.index), s.room)
		}
		for at := range s.places {
			if s.index[s.places[at].token] != at {
				t.Fatalf("shard %d: the token of place %d is not found there", i, at)
			}
		}
		n += len(s.places)
	}
	return n
}

// TestCacheAgainstMap compares a cache with a map without limits. The cache returns the
// same claims as the map or none, and never exceeds its size.
func TestCacheAgainstMap(t *testing.T) {
	type item struct {
		claims  *claimSet
		expires time.Time
	}
	steps := race.Fewer(20_000, 2_000)
	for _, room := range []int{-1, 0, 1, 5, 16, 100, 1000} {
		r := rand.New(rand.NewPCG(1, uint64(room+1)))
		c, all := newCache(room), map[int]item{}
		start := time.Unix(1_800_000_000, 0)
		hits := 0
		for step := range steps {
			now := start.Add(time.Duration(step) * time.Second)
			n := r.IntN(2 * max(room, 1))
			token := digestOf(fmt.Sprint(n))
			known, there := all[n]
			there = there && now.Before(known.expires)
			if claims, ok := c.get(token, now); ok {
				hits++
				if !there || claims != known.claims {
					t.Fatalf("size %d, step %d: got claims %v of token %d, want %v", room, step, claims, n, known.claims)
				}
				continue
			}
			if !there {
				known = item{&claimSet{{"n", fmt.Sprint(step)}}, now.Add(time.Duration(1+r.IntN(3*max(room, 1))) * time.Second)}
				all[n] = known
			}
			c.put(token, known.claims, known.expires, now)
		}
		if got := c.fill(t); got > max(room, 0) {
			t.Errorf("size %d: got %d tokens", room, got)
		}
		if room >= 100 && hits*10 < steps {
			t.Errorf("size %d: only %d of %d lookups were hits", room, hits, steps)
		}
	}
}

// TestRoomIsExact checks that the sizes of the shards add up to the size of the cache,
// and that every shard can be full.
func TestRoomIsExact(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, room := range []int{0, 1, 15, 16, 17, 1000} {
		c, sum := newCache(room), 0
		for i := range c.shards {
			sum += c.shards[i].room
		}
		if sum != room {
			t.Errorf("size %d: the sizes of the shards add up to %d", room, sum)
		}
		for i := range 100 * room {
			c.put(digestOf(fmt.Sprint(i)), &claimSet{}, now.Add(time.Hour), now)
		}
		if got := c.fill(t); got != room {
			t.Errorf("size %d: got %d tokens", room, got)
		}
	}
}

// TestWhoIsAskedForStays checks that tokens in use survive a flood of valid tokens that
// are used once.
func TestWhoIsAskedForStays(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := newCache(16 * 64)
	var used []digest
	for i := range 200 {
		used = append(used, digestOf(fmt.Sprint("used", i)))
		c.put(used[i], &claimSet{}, now.Add(time.Hour), now)
	}
	for i := range 20_000 {
		for j := range 5 { // each token is used once per 40 new tokens
			if _, ok := c.get(used[(5*i+j)%len(used)], now); !ok {
				t.Fatalf("after %d new tokens, a token in use was evicted", i)
			}
		}
		c.put(digestOf(fmt.Sprint("once", i)), &claimSet{}, now.Add(time.Hour), now)
	}
}

// TestExpiredGoFirst checks that an expired token is evicted first, even if it is in use.
func TestExpiredGoFirst(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := newCache(16) // one place per shard
	old, young := digest{0, 1}, digest{0, 2}
	c.put(old, &claimSet{}, now.Add(time.Minute), now)
	if _, ok := c.get(old, now); !ok {
		t.Fatal("the old token is missing")
	}
	now = now.Add(time.Minute)
	c.put(young, &claimSet{}, now.Add(time.Minute), now)
	if _, ok := c.get(young, now); !ok {
		t.Error("the new token is missing")
	}
	if _, ok := c.get(old, now.Add(-time.Second)); ok {
		t.Error("the old token is still in the cache")
	}
}
