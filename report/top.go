package report

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// Bounds of what is remembered of refused keys: in all topShards x topPlaces keys in
// each of two periods, at some 150 bytes each.
const (
	topShards = 16
	topPlaces = 64
	topPeriod = 5 * time.Minute
)

// top counts refusals by key in bounded memory, by the Space-Saving algorithm
// (Metwally, Agrawal, El Abbadi, 2005): a key without a place takes that of the key
// with the fewest refusals, and its count, which is then the most by which the new
// key's count is too high. A key that was refused more than a topPlaces-th of all
// refusals of its shard has a place. A key's shard follows from its hash.
//
// Counts are of the present period and the one before. A shard is locked for some 50
// nanoseconds a refusal.
type top struct {
	clock  func() time.Time
	shards [topShards]topShard
}

// topShard counts the keys of one part of the hashes.
type topShard struct {
	mu sync.Mutex
	// since is when now began. before ended then.
	since       time.Time
	now, before topCounts
	_           [lineBytes]byte
}

// topCounts are the counts of one shard in one period.
type topCounts struct {
	used   int
	total  uint64
	hashes [topPlaces]uint64
	counts [topPlaces]uint64
	places [topPlaces]topPlace
}

// topPlace is what is known of a key beside its count.
type topPlace struct {
	rule string
	fair bool // a client of fair share, in key
	part rule.Part
	key  []byte // reused when another key takes the place
	// excess is the most by which the key's count is too high.
	excess uint64
}

func newTop(clock func() time.Time) *top {
	t := &top{clock: clock}
	for i := range t.shards {
		t.shards[i].since = clock()
	}
	return t
}

// refused counts a refusal. A nil *top counts none; a stage without keys has none.
func (t *top) refused(r *guard.Result) {
	if t == nil || len(r.Rule.Key) == 0 {
		return
	}
	hash := r.KeyHash()
	s := &t.shards[hash%topShards]
	now := t.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(now)
	s.now.add(hash, r)
}

// turn begins a period when one is over. A clock that stepped back begins one too:
// it would keep old counts otherwise. mu is held.
func (s *topShard) turn(now time.Time) {
	switch age := now.Sub(s.since); {
	case age >= 0 && age < topPeriod:
		return
	case age >= topPeriod && age < 2*topPeriod:
		s.now, s.before = s.before, s.now // The buffers of keys are used again.
		s.since = s.since.Add(topPeriod)
	default:
		s.before.reset()
		s.since = now
	}
	s.now.reset()
}

func (c *topCounts) reset() { c.used, c.total = 0, 0 }

// add counts a refusal of the key of r.
func (c *topCounts) add(hash uint64, r *guard.Result) {
	c.total++
	least := 0
	for i := range c.used {
		if c.hashes[i] == hash {
			c.counts[i]++
			return
		}
		if c.counts[i] < c.counts[least] {
			least = i
		}
	}
	p := &c.places[least]
	if c.used < topPlaces {
		least = c.used
		p = &c.places[least]
		c.used++
		c.counts[least] = 0
	}
	p.excess = c.counts[least]
	c.hashes[least] = hash
	c.counts[least]++
	p.rule, p.key = r.Rule.Name, r.AppendRawKey(p.key[:0])
	p.fair = r.Stage == guard.FairShareName
	if p.fair {
		p.part = r.Rule.Key[0]
	}
}

// TopKey is a key that was refused often.
type TopKey struct {
	// Rule is the rule's name, and Key the parts of the key, as log.keys has them.
	Rule string `json:"rule"`
	Key  string `json:"key"`
	// Refusals is how often it was refused, those in shadow included; it may be up to
	// Error too high, and is never too low.
	Refusals uint64 `json:"refusals"`
	Error    uint64 `json:"error"`
}

// TopKeys is which keys were refused most.
type TopKeys struct {
	// Since is when counting began: five to ten minutes ago, or at the start.
	Since time.Time `json:"since"`
	// Total is all refusals since, those of keys that are not listed included.
	Total uint64 `json:"total"`
	// Keys are in the order of their refusals, most first.
	Keys []TopKey `json:"keys"`
}

// TopKeys gives the keys with most refusals of a rule, or of all rules and fair share
// for "", at most n. Every key with more than a 64th of the refusals of its
// sixteenth of the keys is among those that are known, 1,024 in all. It reports false
// when keys are not named (KeysOff).
func (r *Report) TopKeys(ruleName string, n int) (TopKeys, bool) {
	if r.top == nil {
		return TopKeys{}, false
	}
	list := r.top.list(ruleName, r.names)
	slices.SortFunc(list.Keys, func(a, b TopKey) int {
		return cmp.Or(cmp.Compare(b.Refusals, a.Refusals), strings.Compare(a.Rule, b.Rule), strings.Compare(a.Key, b.Key))
	})
	list.Keys = list.Keys[:min(n, len(list.Keys))]
	return list, true
}

// list gives the keys of a rule in no order. Hashing their names is left until the
// shard is free again.
func (t *top) list(ruleName string, names *rule.KeyNames) TopKeys {
	list := TopKeys{Since: t.clock(), Keys: []TopKey{}}
	var entries []topEntry
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		s.turn(t.clock())
		if since := s.begin(); since.Before(list.Since) {
			list.Since = since
		}
		list.Total += s.now.total + s.before.total
		entries = s.merge(entries[:0], ruleName)
		s.mu.Unlock()
		for i := range entries {
			list.Keys = append(list.Keys, entries[i].named(names))
		}
	}
	return list
}

// begin is when the older of the two periods began. mu is held.
func (s *topShard) begin() time.Time {
	if s.before.total > 0 {
		return s.since.Add(-topPeriod)
	}
	return s.since
}

// topEntry is a place that was copied.
type topEntry struct {
	topPlace

	hash, count uint64
}

// merge appends the keys of a rule with their counts of both periods. mu is held.
func (s *topShard) merge(entries []topEntry, ruleName string) []topEntry {
	for _, pair := range [...][2]*topCounts{{&s.now, &s.before}, {&s.before, &s.now}} {
		c, other := pair[0], pair[1]
		for i := range c.used {
			p, hash := c.places[i], c.hashes[i]
			if ruleName != "" && p.rule != ruleName || slices.ContainsFunc(entries, func(e topEntry) bool { return e.hash == hash }) {
				continue
			}
			count, excess := other.of(hash)
			p.key, p.excess = slices.Clone(p.key), p.excess+excess
			entries = append(entries, topEntry{p, hash, c.counts[i] + count})
		}
	}
	return entries
}

// of gives the count of a key, and the most by which it is too high. A key that has no
// place where all are taken may have been refused as often as the key with the fewest.
func (c *topCounts) of(hash uint64) (count, excess uint64) {
	if i := slices.Index(c.hashes[:c.used], hash); i >= 0 {
		return c.counts[i], c.places[i].excess
	}
	if c.used < topPlaces {
		return 0, 0
	}
	least := slices.Min(c.counts[:])
	return least, least
}

func (e *topEntry) named(names *rule.KeyNames) TopKey {
	k := TopKey{Rule: e.rule, Refusals: e.count, Error: e.excess}
	if e.fair {
		k.Key = string(names.AppendClient(nil, e.part, string(e.key)))
	} else {
		k.Key = string(names.AppendKey(nil, string(e.key)))
	}
	return k
}
