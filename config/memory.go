package config

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/memory"
)

// What package memory takes for a key. Its tests hold that these are true.
const (
	// placeBytes is what each limit of a key takes in the table.
	placeBytes = 32
	// blockShare is the percentage of the memory for logs and sliding windows.
	blockShare = 50
	// blockBytes is the smallest block, and the unit that blocks double from.
	blockBytes = 64
	// leastKeys is how many keys each rule must have room for: with fewer, a rule
	// would refuse newcomers for want of memory and not for being over the limit.
	leastKeys = 16
)

func usesBlocks(a headgate.Algorithm) bool {
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
func (n Need) windows() int { return int(n.TableBytes / placeBytes) }

// Bytes gives what one key takes, all together.
func (n Need) Bytes() int64 { return n.TableBytes + n.BlockBytes }

// Needs gives the worst case of each rule: a key that is counted against all its
// limits, those of the override that take most, its ban and its hard limit.
func (c *Config) Needs() []Need {
	bytes := c.memory()
	needs := make([]Need, len(c.Rules))
	for i := range c.Rules {
		if c.inMemory(&c.Rules[i]) {
			needs[i], _ = bytes.need(&c.Rules[i])
		}
	}
	return needs
}

// inMemory reports whether a rule ever counts in the memory of this instance.
func (c *Config) inMemory(r *guard.Rule) bool {
	return c.Shared == nil || r.Fallback == guard.FallbackLocal
}

// storeBytes is how a store in memory divides its bytes, and which part of each limit
// it counts, in percent; 0 is all of it.
type storeBytes struct {
	table, blocks int64
	share         int
}

func (c *Config) memory() storeBytes {
	store := c.StoreConfig()
	blocks := store.MaxMemory / 100 * int64(max(store.BlockShare, 0))
	bytes := storeBytes{table: store.MaxMemory - blocks, blocks: blocks}
	if c.Shared != nil {
		bytes.share = c.LocalShare
	}
	return bytes
}

// need gives the worst case of one rule, and which of its setsOf it is.
func (b storeBytes) need(r *guard.Rule) (worst Need, which int) {
	for i, set := range setsOf(r) {
		var n Need
		for _, p := range besides(r, set) {
			n.TableBytes += placeBytes
			n.BlockBytes += blockOf(b.part(p))
		}
		n.Keys = memory.KeysThatKeep(b.table/placeBytes, n.windows())
		if n.BlockBytes > 0 {
			n.Keys = min(n.Keys, b.blocks/n.BlockBytes)
		}
		if i == 0 || n.Keys < worst.Keys {
			worst, which = n, i
		}
	}
	return worst, which
}

// part gives what of a policy is counted; one that cannot be divided is a fault
// already, and stays.
func (b storeBytes) part(p headgate.Policy) headgate.Policy {
	if b.share == 0 {
		return p
	}
	if part, err := guard.LocalPolicy(p, b.share); err == nil {
		return part
	}
	return p
}

// setsOf gives the lists of limits that a key of the rule can have: the rule's own,
// and those of each override.
func setsOf(r *guard.Rule) [][]headgate.Policy {
	sets := make([][]headgate.Policy, 0, 1+len(r.Overrides))
	sets = append(sets, r.Policies)
	for i := range r.Overrides {
		sets = append(sets, r.Overrides[i].Policies)
	}
	return sets
}

// besides gives what a key with these limits is counted against, all together.
func besides(r *guard.Rule, limits []headgate.Policy) []headgate.Policy {
	all := slices.Clip(limits)
	if r.Ban.For > 0 {
		all = append(all, banPolicy(r, limits))
	}
	if r.Exceed.Hard.Limit.Per > 0 {
		all = append(all, r.Exceed.Hard)
	}
	return all
}

// blockOf gives the greatest block that one key of the policy takes: a header,
// and 16 bytes for each unit of a log or 8 for each counter of a sliding window,
// rounded up to a power of two.
func blockOf(p headgate.Policy) int64 {
	var words int64
	switch p.Algorithm {
	case headgate.SlidingLog:
		words = 4 + 2*(max(p.Limit.Count, 1)+1)
	case headgate.SlidingWindow:
		words = 3 + int64(p.SubWindows) + 1
	default:
		return 0
	}
	return max(blockBytes, int64(1)<<bits.Len64(uint64(words*8-1)))
}

// maxPolicies bounds the different limits of all rules: half of what a store in
// memory keeps, so that there is room for those of the next configuration.
const maxPolicies = 1<<15 - 1

// checkPolicies refuses more different limits than a store keeps.
func (r *reader) checkPolicies(c *Config) {
	different := make(map[headgate.Policy]struct{})
	for i := range c.Rules {
		for _, set := range setsOf(&c.Rules[i]) {
			for _, p := range besides(&c.Rules[i], set) {
				different[p] = struct{}{}
			}
		}
	}
	if len(different) > maxPolicies {
		r.fault(r.find("rules"), fmt.Sprintf("the rules have %d different limits", len(different)),
			fmt.Sprintf("use at most %d", maxPolicies))
	}
}

// checkMemory refuses rules of which hardly a key fits.
func (r *reader) checkMemory(c *Config) {
	if r.blamed("max_memory") {
		return
	}
	bytes := c.memory()
	for i := range c.Rules {
		if !c.inMemory(&c.Rules[i]) {
			continue
		}
		n, which := bytes.need(&c.Rules[i])
		path := fmt.Sprintf("rules[%d]", i)
		if n.Keys >= leastKeys || r.blamed(path) {
			continue
		}
		of, room := "", enough(n)
		if c.Shared != nil {
			of, room = " while the store is away", enoughBeside(room)
		}
		if which > 0 {
			path += ".overrides." + c.Rules[i].Overrides[which-1].Value
		}
		r.fault(r.find(path+".limits"),
			fmt.Sprintf("one key takes up to %d bytes%s, and max_memory of %s has room for %d",
				n.Bytes(), of, formatSize(c.MaxMemory), n.Keys),
			fmt.Sprintf("raise max_memory to %s or more, lower the count, or use another algorithm", formatSize(room)))
	}
}

// enoughBeside gives the max_memory, in whole MiB, of which n bytes are left for
// fallbacks beside what is kept of units that were taken ahead.
func enoughBeside(n int64) int64 {
	const mib = 1 << 20
	return (n*100/(100-stashShare) + 2*mib) / mib * mib
}

// enough gives the max_memory, in whole MiB, in which leastKeys of a need fit.
func enough(n Need) int64 {
	total := (leastKeys*n.TableBytes/memory.KeptPercent(n.windows()) + placeBytes) * 100
	if n.BlockBytes > 0 {
		total = max(total*100/(100-blockShare), leastKeys*n.BlockBytes*100/blockShare)
	}
	const mib = 1 << 20
	return (total + mib) / mib * mib
}
