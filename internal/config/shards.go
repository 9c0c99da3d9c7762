package config

import (
	"hash/maphash"
	"maps"
)

// shardCount divides a map, so that a change of one entry copies only its shard: with 100,000 entries, 200.
const shardCount = 512

// shards is an immutable map of names: with makes changed ones, which share the shards that do not change. It is safe
// for concurrent use. A nil shards is empty.
type shards[V any] struct {
	seed  maphash.Seed
	parts [shardCount]map[string]V
	n     int
}

func (s *shards[V]) get(name string) (v V, known bool) {
	if s == nil {
		return v, false
	}
	v, known = s.parts[s.part(name)][name]
	return v, known
}

func (s *shards[V]) size() int {
	if s == nil {
		return 0
	}
	return s.n
}

// all calls yield with each entry, in no order.
func (s *shards[V]) all(yield func(name string, v V) bool) {
	if s == nil {
		return
	}
	for i := range s.parts {
		for name, v := range s.parts[i] {
			if !yield(name, v) {
				return
			}
		}
	}
}

// with deletes some names, and then sets others.
func (s *shards[V]) with(set map[string]V, deleted []string) *shards[V] {
	next := &shards[V]{seed: maphash.MakeSeed()}
	if s != nil {
		*next = *s
	}
	var own [shardCount]bool
	partOf := func(name string) map[string]V {
		i := next.part(name)
		if !own[i] {
			own[i] = true
			if next.parts[i] = maps.Clone(next.parts[i]); next.parts[i] == nil {
				next.parts[i] = map[string]V{}
			}
		}
		return next.parts[i]
	}
	for _, name := range deleted {
		if _, known := next.get(name); known {
			delete(partOf(name), name)
			next.n--
		}
	}
	for name, v := range set {
		if _, known := next.get(name); !known {
			next.n++
		}
		partOf(name)[name] = v
	}
	return next
}

func (s *shards[V]) part(name string) uint64 { return maphash.String(s.seed, name) % shardCount }
