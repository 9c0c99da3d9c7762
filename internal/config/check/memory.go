package check

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/store/memory"
)

// Memory use of one key in package memory. Tests compare these constants with that package.
const (
	// PlaceBytes is the size of one table entry. Each limit of a key has one entry.
	PlaceBytes = 32
	// BlockPercent is the percentage of the memory that is reserved for logs and sliding windows.
	BlockPercent = 50
	// leastBlock is the smallest block, in bytes. Larger blocks are powers of two.
	leastBlock = 64
	// LeastKeys is the number of keys that must fit for each rule. With fewer, a rule would
	// refuse new keys for lack of memory, though they are under their limit.
	LeastKeys = 16
	// StashPercent is the percentage of max_memory that is reserved beside a shared store. The
	// reserve is for prefetched units and for keys that are known to be over a limit.
	StashPercent = 25
)

// UsesBlocks reports whether an algorithm keeps its state in blocks.
func UsesBlocks(a headgate.Algorithm) bool { return limit.TraitsOf(a).Blocks() }

// Need is the memory that the keys of one rule take at most. With a shared store, it is the
// memory for fallback local, and zero for rules without that fallback.
type Need struct {
	// TableBytes and BlockBytes are for one key: its table entries, and the blocks of its logs
	// or sliding windows.
	TableBytes, BlockBytes int64
	// Keys is the number of such keys that fit. At least 99.9 % of them keep their state
	// if no other rule has any keys: see memory.KeysThatKeep.
	Keys int64
}

// windows returns the number of table entries of one key.
func (n Need) windows() int { return int(n.TableBytes / PlaceBytes) }

// Bytes returns the bytes that one key takes in the table and in blocks.
func (n Need) Bytes() int64 { return n.TableBytes + n.BlockBytes }

// Memory says how a store in memory divides its bytes, and which rules count in that store.
type Memory struct {
	// Max is max_memory, in bytes.
	Max int64
	// Table and Blocks are the bytes for the table and for blocks.
	Table, Blocks int64
	// Shared is set beside a shared store. Then only rules with fallback local count here, with
	// LocalShare percent of each limit. A LocalShare of 0 means the whole limit.
	Shared     bool
	LocalShare int
}

// Counts reports whether a rule ever counts in the memory of this instance. A rule with in_flight alone
// keeps nothing after the end of its requests.
func (m Memory) Counts(r *guard.Rule) bool {
	return (len(r.Policies) > 0 || r.Ban.For > 0) && (!m.Shared || r.Fallback == guard.FallbackLocal)
}

// Need returns the memory of the rule's most expensive key.
func (m Memory) Need(r *guard.Rule) Need {
	n, _ := m.need(r)
	return n
}

// need returns the memory of the rule's most expensive key, and the index of its limits in Sets.
func (m Memory) need(r *guard.Rule) (worst Need, which int) {
	for i, set := range Sets(r) {
		var n Need
		for _, p := range Counted(r, set) {
			n.TableBytes += PlaceBytes
			n.BlockBytes += BlockBytes(m.part(p))
		}
		n.Keys = memory.KeysThatKeep(m.Table/PlaceBytes, n.windows())
		if n.BlockBytes > 0 {
			n.Keys = min(n.Keys, m.Blocks/n.BlockBytes)
		}
		if i == 0 || n.Keys < worst.Keys {
			worst, which = n, i
		}
	}
	return worst, which
}

// part returns this instance's part of a policy. It returns p itself if p cannot be divided:
// another check reports that fault.
func (m Memory) part(p headgate.Policy) headgate.Policy {
	if m.LocalShare == 0 {
		return p
	}
	if part, err := guard.LocalPolicy(p, m.LocalShare); err == nil {
		return part
	}
	return p
}

// Sets returns the lists of limits that a key of the rule can have: the rule's own,
// those of each override with limits, and the highest that requests may state.
func Sets(r *guard.Rule) [][]headgate.Policy {
	sets := make([][]headgate.Policy, 0, 1+len(r.Overrides))
	sets = append(sets, r.Policies)
	for i := range r.Overrides {
		if !r.Overrides[i].Unlimited {
			sets = append(sets, r.Overrides[i].Policies)
		}
	}
	return append(sets, r.StatedAtMost()...)
}

// overrideOfSet returns the value of the override with the limits at a position of Sets.
func overrideOfSet(r *guard.Rule, which int) (value string, found bool) {
	for i := range r.Overrides {
		if o := &r.Overrides[i]; !o.Unlimited {
			if which--; which == 0 {
				return o.Value, true
			}
		}
	}
	return "", false
}

// Counted returns all policies that count a key with these limits, with the ban and the hard limit.
func Counted(r *guard.Rule, limits []headgate.Policy) []headgate.Policy {
	all := slices.Clip(limits)
	if r.Ban.For > 0 {
		all = append(all, r.Ban.Policies(BanPolicy(r, limits).Limit)...)
	}
	if r.Exceed.Hard.Limit.HasPeriod() {
		all = append(all, r.Exceed.Hard)
	}
	return all
}

// BlockBytes returns the size of the largest block for one key of the policy: limit.BlockWords, rounded up to a power of two.
func BlockBytes(p headgate.Policy) int64 {
	words := limit.BlockWords(p)
	if words == 0 {
		return 0
	}
	return max(leastBlock, int64(1)<<bits.Len64(uint64(words*8-1)))
}

// MaxPolicies bounds the different limits of all rules. A store in memory keeps twice as many,
// so that a reload can add the limits of the next configuration before it removes the old ones.
const MaxPolicies = 1<<15 - 1

// Policies reports a configuration with more than MaxPolicies different limits.
func Policies(rules []guard.Rule, domains []guard.Domain) []Finding {
	different := make(map[headgate.Policy]struct{})
	for i := range rules {
		for _, set := range Sets(&rules[i]) {
			for _, p := range Counted(&rules[i], set) {
				different[p] = struct{}{}
			}
		}
	}
	for _, leaf := range Leaves(domains) {
		for _, p := range leaf.Policies {
			different[p] = struct{}{}
		}
	}
	if len(different) <= MaxPolicies {
		return nil
	}
	if len(domains) > 0 {
		problem := fmt.Sprintf("the rules and domains have %d different limits", len(different))
		return []Finding{{"domains", problem, fmt.Sprintf("use at most %d", MaxPolicies)}}
	}
	problem, fix := fmt.Sprintf("the rules have %d different limits", len(different)), fmt.Sprintf("use at most %d", MaxPolicies)
	return []Finding{{"rules", problem, fix}}
}

// Capacity finds rules, and limits of domains, for which fewer than LeastKeys keys fit in memory.
func Capacity(rules []guard.Rule, domains []guard.Domain, m Memory, blamed Blamed) []Finding {
	var all []Finding
	for i := range rules {
		all = append(all, m.fit(&rules[i], fmt.Sprintf("rules[%d]", i), blamed)...)
	}
	for path, leaf := range Leaves(domains) {
		if all = append(all, m.fit(leaf, path, blamed)...); len(all) > maxFindings {
			break
		}
	}
	return all
}

// fit finds out whether LeastKeys keys of the rule at path fit in memory.
func (m Memory) fit(r *guard.Rule, path string, blamed Blamed) []Finding {
	if !m.Counts(r) {
		return nil
	}
	n, which := m.need(r)
	if n.Keys >= LeastKeys || blamed(path) {
		return nil
	}
	when, room := "", enough(n)
	if m.Shared {
		when, room = " while the store is unreachable", enoughBeside(room)
	}
	if value, found := overrideOfSet(r, which); found {
		path += ".overrides." + value + ".limits"
	} else if which > 0 {
		path += ".limits_from.most"
	} else {
		path += ".limits"
	}
	return []Finding{{
		Path: path,
		Problem: fmt.Sprintf("one key takes up to %d bytes%s, and only %d fit in max_memory of %s",
			n.Bytes(), when, n.Keys, field.FormatSize(m.Max)),
		Fix: fmt.Sprintf("raise max_memory to %s or more, lower the count, or use another algorithm", field.FormatSize(room)),
	}}
}

// enoughBeside returns the max_memory, in bytes of whole MiB, that leaves n bytes for fallback local
// beside the reserve of StashPercent.
func enoughBeside(n int64) int64 {
	const mib = 1 << 20
	return (n*100/(100-StashPercent) + 2*mib) / mib * mib
}

// enough returns the max_memory, in bytes of whole MiB, in which LeastKeys keys fit.
func enough(n Need) int64 {
	total := (LeastKeys*n.TableBytes/memory.KeptPercent(n.windows()) + PlaceBytes) * 100
	if n.BlockBytes > 0 {
		total = max(total*100/(100-BlockPercent), LeastKeys*n.BlockBytes*100/BlockPercent)
	}
	const mib = 1 << 20
	return (total + mib) / mib * mib
}

// BanPolicy returns the policy that counts attempts for the rule's ban. Without an After of its
// own, a ban uses the first of the limits.
func BanPolicy(r *guard.Rule, limits []headgate.Policy) headgate.Policy {
	after := r.Ban.After
	if !after.HasPeriod() && len(limits) > 0 {
		after = headgate.Limit{Count: limits[0].Limit.Count, Per: limits[0].Limit.Per}
	}
	return headgate.Policy{Algorithm: headgate.Ban, Limit: after, BanFor: r.Ban.For}
}
