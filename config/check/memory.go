package check

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config/field"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/memory"
)

// What package memory takes for a key. Its tests hold that these are true.
const (
	// PlaceBytes is what each limit of a key takes in the table.
	PlaceBytes = 32
	// BlockPercent is the percentage of the memory for logs and sliding windows.
	BlockPercent = 50
	// leastBlock is the smallest block, and the unit that blocks double from.
	leastBlock = 64
	// LeastKeys is how many keys each rule must have room for: with fewer, a rule
	// would refuse newcomers for want of memory and not for being over the limit.
	LeastKeys = 16
	// StashPercent is the percentage of max_memory that is kept beside a shared store for units
	// that were taken ahead of need, and for keys known to be over a limit.
	StashPercent = 25
)

// UsesBlocks reports whether an algorithm keeps its state in blocks.
func UsesBlocks(a headgate.Algorithm) bool {
	return a == headgate.SlidingLog || a == headgate.SlidingWindow
}

// Need is the memory that the keys of one rule take at most: in the store, or, beside
// a shared store, in the one that rules with fallback local count in. Rules without
// that fallback need none there.
type Need struct {
	// TableBytes and BlockBytes are for one key: its places in the table, and the
	// blocks of its logs or sliding windows.
	TableBytes, BlockBytes int64
	// Keys is the number of such keys of which at least 99.9 % keep their state when no
	// other rule has any: see memory.KeysThatKeep.
	Keys int64
}

// windows gives the number of places of one key.
func (n Need) windows() int { return int(n.TableBytes / PlaceBytes) }

// Bytes gives what one key takes, all together.
func (n Need) Bytes() int64 { return n.TableBytes + n.BlockBytes }

// Memory is how a store in memory divides its bytes, and which rules count in it.
type Memory struct {
	// Max is max_memory, in bytes.
	Max int64
	// Table and Blocks are the bytes of the table and of the blocks.
	Table, Blocks int64
	// Shared is set beside a shared store. Then only rules with fallback local count here, each
	// LocalShare percent of its limits; 0 is the whole limit.
	Shared     bool
	LocalShare int
}

// Counts reports whether a rule ever counts in the memory of this instance.
func (m Memory) Counts(r *guard.Rule) bool { return !m.Shared || r.Fallback == guard.FallbackLocal }

// Need returns the worst case of one rule.
func (m Memory) Need(r *guard.Rule) Need {
	n, _ := m.need(r)
	return n
}

// need gives the worst case of one rule, and which of its Sets it is.
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

// part gives what of a policy is counted; one that cannot be divided is a fault
// already, and stays.
func (m Memory) part(p headgate.Policy) headgate.Policy {
	if m.LocalShare == 0 {
		return p
	}
	if part, err := guard.LocalPolicy(p, m.LocalShare); err == nil {
		return part
	}
	return p
}

// Sets gives the lists of limits that a key of the rule can have: the rule's own,
// and those of each override.
func Sets(r *guard.Rule) [][]headgate.Policy {
	sets := make([][]headgate.Policy, 0, 1+len(r.Overrides))
	sets = append(sets, r.Policies)
	for i := range r.Overrides {
		sets = append(sets, r.Overrides[i].Policies)
	}
	return sets
}

// Counted gives what a key with these limits is counted against, all together.
func Counted(r *guard.Rule, limits []headgate.Policy) []headgate.Policy {
	all := slices.Clip(limits)
	if r.Ban.For > 0 {
		all = append(all, BanPolicy(r, limits))
	}
	if r.Exceed.Hard.Limit.Per > 0 {
		all = append(all, r.Exceed.Hard)
	}
	return all
}

// BlockBytes gives the greatest block that one key of the policy takes: a header,
// and 16 bytes for each unit of a log or 8 for each counter of a sliding window,
// rounded up to a power of two.
func BlockBytes(p headgate.Policy) int64 {
	var words int64
	switch p.Algorithm {
	case headgate.SlidingLog:
		words = 4 + 2*(max(p.Limit.Count, 1)+1)
	case headgate.SlidingWindow:
		words = 3 + int64(p.SubWindows) + 1
	default:
		return 0
	}
	return max(leastBlock, int64(1)<<bits.Len64(uint64(words*8-1)))
}

// MaxPolicies bounds the different limits of all rules: half of what a store in
// memory keeps, so that there is room for those of the next configuration.
const MaxPolicies = 1<<15 - 1

// Policies finds rules with more different limits than a store keeps.
func Policies(rules []guard.Rule) []Finding {
	different := make(map[headgate.Policy]struct{})
	for i := range rules {
		for _, set := range Sets(&rules[i]) {
			for _, p := range Counted(&rules[i], set) {
				different[p] = struct{}{}
			}
		}
	}
	if len(different) <= MaxPolicies {
		return nil
	}
	problem, fix := fmt.Sprintf("the rules have %d different limits", len(different)), fmt.Sprintf("use at most %d", MaxPolicies)
	return []Finding{{"rules", problem, fix}}
}

// Capacity finds rules for which the memory has room for fewer than LeastKeys keys.
func Capacity(rules []guard.Rule, m Memory, blamed Blamed) []Finding {
	var all []Finding
	for i := range rules {
		r, path := &rules[i], fmt.Sprintf("rules[%d]", i)
		if !m.Counts(r) {
			continue
		}
		n, which := m.need(r)
		if n.Keys >= LeastKeys || blamed(path) {
			continue
		}
		of, room := "", enough(n)
		if m.Shared {
			of, room = " while the store is away", enoughBeside(room)
		}
		if which > 0 {
			path += ".overrides." + r.Overrides[which-1].Value
		}
		all = append(all, Finding{
			Path: path + ".limits",
			Problem: fmt.Sprintf("one key takes up to %d bytes%s, and max_memory of %s has room for %d",
				n.Bytes(), of, field.FormatSize(m.Max), n.Keys),
			Fix: fmt.Sprintf("raise max_memory to %s or more, lower the count, or use another algorithm", field.FormatSize(room)),
		})
	}
	return all
}

// enoughBeside gives the max_memory, in whole MiB, of which n bytes are left for
// fallbacks beside what is kept of units that were taken ahead.
func enoughBeside(n int64) int64 {
	const mib = 1 << 20
	return (n*100/(100-StashPercent) + 2*mib) / mib * mib
}

// enough gives the max_memory, in whole MiB, in which LeastKeys of a need fit.
func enough(n Need) int64 {
	total := (LeastKeys*n.TableBytes/memory.KeptPercent(n.windows()) + PlaceBytes) * 100
	if n.BlockBytes > 0 {
		total = max(total*100/(100-BlockPercent), LeastKeys*n.BlockBytes*100/BlockPercent)
	}
	const mib = 1 << 20
	return (total + mib) / mib * mib
}

// BanPolicy is what the ban of a rule is counted against beside these limits.
func BanPolicy(r *guard.Rule, limits []headgate.Policy) headgate.Policy {
	after := r.Ban.After
	if after.Per == 0 && len(limits) > 0 {
		after = headgate.Limit{Count: limits[0].Limit.Count, Per: limits[0].Limit.Per}
	}
	return headgate.Policy{Algorithm: headgate.Ban, Limit: after, BanFor: r.Ban.For}
}
