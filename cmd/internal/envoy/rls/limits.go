package rls

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/domain"
)

// Limits has the Hits of all limits, by the names that they have in metrics: the domain and the
// entries, like "shop.path_/search.client". Its zero value is not ready: use newLimits.
//
// Values of requests can be a part of a name. The field most bounds such names of one limit. The hits of
// further values count under the value "other", and those of further sent limits under the
// name of the domain and "other".
type Limits struct {
	most   int
	bytes  atomic.Int64 // of the names that clients chose, with nameOverhead
	seed   maphash.Seed
	shards [shardCount]counterShard

	// fixed has the Hits of limits whose names do not depend on values, by *guard.Leaf. Forget
	// empties it, because a reload makes other leaves.
	fixed atomic.Pointer[sync.Map]

	unknown sync.RWMutex
	domains map[string]*atomic.Uint64 // descriptors by domains without limits; guarded by unknown
}

// shardCount spreads the locks of busy limits.
const shardCount = 16

// counterShard has a part of the names.
type counterShard struct {
	mu    sync.RWMutex
	named map[string]*Hits
	// values has, by the name of a limit without values, the number of its names.
	values map[string]int
}

// DefaultMaxMetricValues bounds the names that values of requests give to one limit.
const DefaultMaxMetricValues = 1000

const (
	// mostNameBytes bounds the names that clients choose, of all limits and unknown domains together. Five counters have
	// each name, and a scrape copies each of them: config.MetricBytes has the memory of all copies.
	mostNameBytes = 4 << 20
	// nameOverhead is what each name counts beside its length: 7,281 names of 64 bytes fit, and 2,730 of 1 KiB.
	nameOverhead = 512
)

func newLimits(most int) *Limits {
	if most <= 0 {
		most = DefaultMaxMetricValues
	}
	c := &Limits{most: most, seed: maphash.MakeSeed(), domains: map[string]*atomic.Uint64{}}
	for i := range c.shards {
		c.shards[i].named, c.shards[i].values = map[string]*Hits{}, map[string]int{}
	}
	c.Forget()
	return c
}

// Forget lets go of the leaves of replaced configurations. The Hits stay.
func (c *Limits) Forget() { c.fixed.Store(new(sync.Map)) }

// hits gives the Hits of the limit that decided a descriptor. name is memory for the name.
func (c *Limits) hits(a *guard.Answer, d headgate.Descriptors, name []byte) (*Hits, []byte) {
	if !a.FixedMetric() {
		return c.byName(a, d, name)
	}
	leaves := c.fixed.Load()
	if known, ok := leaves.Load(a.Leaf()); ok {
		h, _ := known.(*Hits) // There is nothing else.
		return h, name
	}
	h, name := c.byName(a, d, name)
	leaves.Store(a.Leaf(), h)
	return h, name
}

// byName is of with a lookup of the name.
func (c *Limits) byName(a *guard.Answer, d headgate.Descriptors, name []byte) (*Hits, []byte) {
	name = a.AppendMetric(name[:0], d)
	s := &c.shards[maphash.Bytes(c.seed, name)%shardCount]
	s.mu.RLock()
	h := s.named[string(name)]
	s.mu.RUnlock()
	if h != nil {
		return h, name
	}
	return c.add(a, d, name), name
}

// add adds a name.
func (c *Limits) add(a *guard.Answer, d headgate.Descriptors, name []byte) *Hits {
	base := string(a.AppendOtherMetric(nil, d))
	if base != string(name) && !c.claim(base, len(name)) {
		name = []byte(base)
	}
	s := &c.shards[maphash.Bytes(c.seed, name)%shardCount]
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.named[string(name)]
	if h == nil {
		h = new(Hits)
		s.named[string(name)] = h
	}
	return h
}

// claim takes one of the names that values can give to a limit.
func (c *Limits) claim(base string, length int) bool {
	s := &c.shards[maphash.String(c.seed, base)%shardCount]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values[base] >= c.most || !c.spend(length) {
		return false
	}
	s.values[base]++
	return true
}

// spend takes the bytes of a name from those of all names.
func (c *Limits) spend(length int) bool {
	cost := int64(length + nameOverhead)
	if c.bytes.Add(cost) <= mostNameBytes {
		return true
	}
	c.bytes.Add(-cost)
	return false
}

// countUnknown counts the descriptors of a request to a domain without limits. Those of further such
// domains count under the name "other".
func (c *Limits) countUnknown(name string, descriptors int) {
	c.unknown.RLock()
	n := c.domains[name]
	c.unknown.RUnlock()
	if n == nil {
		n = c.addUnknown(name)
	}
	n.Add(uint64(descriptors))
}

func (c *Limits) addUnknown(name string) *atomic.Uint64 {
	c.unknown.Lock()
	defer c.unknown.Unlock()
	if c.domains[name] == nil && (len(c.domains) >= c.most || !c.spend(len(name))) {
		name = "other"
	}
	if c.domains[name] == nil {
		c.domains[strings.Clone(name)] = new(atomic.Uint64)
	}
	return c.domains[name]
}

// eachUnknown calls yield with every domain without limits, as metrics name it.
func (c *Limits) eachUnknown(yield func(name string, descriptors uint64)) {
	c.unknown.RLock()
	defer c.unknown.RUnlock()
	for name, n := range c.domains {
		yield(string(domain.AppendMetric(nil, name, nil, nil)), n.Load())
	}
}

// Each calls yield with every name and its Hits, in no order.
func (c *Limits) Each(yield func(name string, h *Hits)) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.RLock()
		for name, h := range s.named {
			yield(name, h)
		}
		s.mu.RUnlock()
	}
}
