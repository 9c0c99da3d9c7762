package report

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/domain"
	"github.com/headgate/headgate/internal/sorting"
	"github.com/headgate/headgate/rule"
)

// These limits bound the memory for refused keys: topShards x topPlaces keys in each of
// two periods, with about 150 bytes each, and at most topKeyBytes more.
const (
	topShards = 16
	topPlaces = 64
	topPeriod = 5 * time.Minute
	// topKeyBytes bounds the part of a key that a place keeps. A descriptor with many entries has a
	// longer key, and its name then ends with "...".
	topKeyBytes = 1024
)

// top counts refusals by key in bounded memory, with the Space-Saving algorithm
// (Metwally, Agrawal, El Abbadi, 2005). A new key replaces the key with the fewest
// refusals and takes over its count. That count is the largest possible error of the
// new key's count. Each key with more than 1/topPlaces of the refusals of its shard is
// present. The hash of a key selects its shard.
//
// Counts include the present and the previous period. A refusal locks a shard for about
// 50 nanoseconds.
type top struct {
	clock  func() time.Time
	shards [topShards]topShard
}

// topShard counts the keys of one range of hashes.
type topShard struct {
	mu sync.Mutex
	// since is the start of the period of now, and the end of the period of before.
	since       time.Time
	now, before topCounts
	_           [lineBytes]byte
}

// topCounts has the counts of one shard in one period.
type topCounts struct {
	used   int
	total  uint64
	hashes [topPlaces]uint64
	counts [topPlaces]uint64
	places [topPlaces]topPlace
}

// topPlace has the data of a key except its count.
type topPlace struct {
	rule string
	fair bool // key is a client of fair share
	tree bool // key is the key of a descriptor in a domain's tree
	part rule.Part
	key  []byte // reused when another key takes the place
	// excess is the largest possible error of the key's count.
	excess uint64
}

func newTop(clock func() time.Time) *top {
	t := &top{clock: clock}
	for i := range t.shards {
		t.shards[i].since = clock()
	}
	return t
}

// refused counts a refusal. A nil *top counts nothing. A stage without keys counts
// nothing.
func (t *top) refused(r *guard.Result) {
	if t == nil || len(r.Rule.Key) == 0 && !r.InTree() {
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

// turn starts a new period when the present one has ended. turn also starts a new period
// when the clock has stepped back, because old counts would otherwise stay. The caller
// holds mu.
func (s *topShard) turn(now time.Time) {
	switch age := now.Sub(s.since); {
	case age >= 0 && age < topPeriod:
		return
	case age >= topPeriod && age < 2*topPeriod:
		s.now, s.before = s.before, s.now // The swap reuses the buffers of keys.
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
	p.rule, p.key = r.Rule.Name, r.AppendRawKeyStart(p.key[:0], topKeyBytes)
	p.fair, p.tree = r.Stage == guard.FairShareName || r.Stage == guard.SentName, r.InTree()
	if p.fair {
		p.part = r.Rule.Key[0]
	}
}

// TopKey is a key with many refusals.
type TopKey struct {
	// Rule is the name of the rule, or of the limit in a domain's tree. Key has the parts of the
	// key, in the form of log.keys.
	Rule string `json:"rule"`
	Key  string `json:"key"`
	// Refusals is the number of refusals, including refusals in shadow mode. Refusals is at most
	// Error above the exact number, and never below.
	Refusals uint64 `json:"refusals"`
	Error    uint64 `json:"error"`
}

// TopKeys lists the keys with the most refusals.
type TopKeys struct {
	// Since is the start of counting: five to ten minutes ago, or the start of the process.
	Since time.Time `json:"since"`
	// Total counts all refusals since then, including keys that are not listed.
	Total uint64 `json:"total"`
	// Keys are sorted by refusals, the largest number first.
	Keys []TopKey `json:"keys"`
}

// TopKeys returns the n keys with the most refusals of a rule. The name "" means all
// rules and fair share. The Report tracks 1,024 keys in 16 shards. Each key with more
// than 1/64 of the refusals of its shard is tracked. TopKeys reports false for KeysOff.
func (r *Report) TopKeys(ruleName string, n int) (TopKeys, bool) {
	return r.TopKeysAs(ruleName, n, r.KeyNames())
}

// TopKeysAs is TopKeys with other names of keys than those of the log, for a reader that may see them.
func (r *Report) TopKeysAs(ruleName string, n int, names *rule.KeyNames) (TopKeys, bool) {
	logged := r.logged()
	if logged.top == nil || names == nil {
		return TopKeys{}, false
	}
	list := logged.top.list(ruleName, names)
	sorting.Func(list.Keys, func(a, b TopKey) int {
		return cmp.Or(cmp.Compare(b.Refusals, a.Refusals), strings.Compare(a.Rule, b.Rule), strings.Compare(a.Key, b.Key))
	})
	list.Keys = list.Keys[:min(n, len(list.Keys))]
	return list, true
}

// TopKeyOfEach gives, for each of the rules and stages that has one, the key with the most refusals, with names of keys as in TopKeysAs.
// It costs less than TopKeys: only the keys that it returns are named.
func (r *Report) TopKeyOfEach(ruleNames []string, names *rule.KeyNames) map[string]TopKey {
	logged := r.logged()
	if logged.top == nil || names == nil || len(ruleNames) == 0 {
		return nil
	}
	best := make(map[string]topEntry, len(ruleNames))
	for _, name := range ruleNames {
		best[name] = topEntry{}
	}
	logged.top.eachBest(best)
	keys := make(map[string]TopKey, len(best))
	for name := range best {
		if e := best[name]; e.count > 0 {
			keys[name] = e.named(names)
		}
	}
	return keys
}

// eachBest puts the key with the most refusals of each rule in best.
func (t *top) eachBest(best map[string]topEntry) {
	var entries []topEntry
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		s.turn(t.clock())
		entries = s.merge(entries[:0], "")
		s.mu.Unlock()
		for i := range entries {
			e := &entries[i]
			if former, asked := best[e.rule]; asked && (e.count > former.count || e.count == former.count && e.hash < former.hash) {
				best[e.rule] = *e
			}
		}
	}
}

// list returns the keys of a rule in no order. list computes their hashes after it has
// unlocked the shard.
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

// begin returns the start of the older of the two periods. The caller holds mu.
func (s *topShard) begin() time.Time {
	if s.before.total > 0 {
		return s.since.Add(-topPeriod)
	}
	return s.since
}

// topEntry is a copy of a place.
type topEntry struct {
	topPlace

	hash, count uint64
}

// merge appends the keys of a rule with their counts of both periods. The caller holds
// mu.
func (s *topShard) merge(entries []topEntry, ruleName string) []topEntry {
	for _, pair := range [...][2]*topCounts{{&s.now, &s.before}, {&s.before, &s.now}} {
		c, other := pair[0], pair[1]
		for i := range c.used {
			p, hash := c.places[i], c.hashes[i]
			if ruleName != "" && p.rule != ruleName || slices.ContainsFunc(entries, func(e topEntry) bool { return e.hash == hash }) {
				continue
			}
			count, excess := other.find(hash)
			p.key, p.excess = slices.Clone(p.key), p.excess+excess
			entries = append(entries, topEntry{p, hash, c.counts[i] + count})
		}
	}
	return entries
}

// find returns the count of a key and its largest possible error. If the key is missing
// and all places are taken, the key may have as many refusals as the lowest count.
func (c *topCounts) find(hash uint64) (count, excess uint64) {
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
	switch {
	case e.fair:
		k.Key = string(names.AppendClient(nil, e.part, string(e.key)))
	case e.tree:
		k.Key = string(domain.AppendKeyName(nil, names, string(e.key)))
	default:
		k.Key = string(names.AppendKey(nil, string(e.key)))
	}
	return k
}
