package config

import (
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/store/memory"
)

// Bounds of the store's settings.
const (
	leastTimeout = time.Millisecond
	mostTimeout  = time.Minute
	// leastMemory is the minimum of package memory.
	leastMemory = 64 << 10
	// mostMemory is more than any machine has. Above it, sums of bytes could overflow.
	mostMemory = 16 << 40
	// redisSlots is the number of hash slots of every Redis Cluster.
	redisSlots = 16_384
	// mostDenyCache bounds the delay until an instance notices that another instance has raised
	// a limit or lifted a ban.
	mostDenyCache   = time.Minute
	dialTimeoutName = "redis_dial_timeout"
	// leastRefresh and mostRefresh bound the interval in which SRV records are resolved.
	leastRefresh = time.Second
	mostRefresh  = 24 * time.Hour
	refreshName  = "memcached_srv_refresh"
	// Bounds of the breaker. With higher ones, the breaker would practically never open, or
	// never close again.
	mostFailures = 1000
	mostProbe    = 10 * time.Minute
)

const memoryWord = "memory"

// counting has the settings of the store that the rules depend on.
type counting struct {
	// known is false if the store is at fault. Then no check depends on the store.
	known bool
	// shared is nil for store memory.
	shared *SharedStore
	// prefetch is the setting for rules without one of their own.
	prefetch Prefetch
	// fit says which policies the shared store can count. It is nil for store memory.
	fit check.Fit
	// localShare is 0 if the field is missing or at fault.
	localShare int
}

// store reads where counters are stored, and the answers when the store is unreachable or full.
func (s *section) store(c *Config) {
	shared := s.storeAddress()
	second := s.perSecondAddress()
	s.counting = counting{known: !s.blamed("store"), shared: shared}
	if shared != nil {
		s.counting.fit = check.NewFit(shared.Kind == KindMemcached)
	}
	s.duration(s.declare("store_timeout", field.Taken, "Time limit of one decision, for all rules together. A store in memory answers at "+
		"once."), &c.StoreTimeout, leastTimeout, mostTimeout)
	s.namespace(&c.Namespace)
	s.sharedFields(shared, second)
	s.prefetchDefault()
	oneOf(s, s.declare("fallback", field.Taken, "Answer of rules when the store fails; local counts in this instance's memory, "+
		"against local_share of each limit; error tells the client of headgate server that nothing was decided, and is deny "+
		"elsewhere."), &c.Fallback, choicesOf(guard.Fallbacks()))
	s.percent(s.declare("local_share", field.Taken, "This instance's part of each limit for fallback local, 1% to 100%."),
		&c.LocalShare, 1, 100)
	s.counting.localShare = c.LocalShare
	s.size(s.declare("max_memory", field.Restart, "Bound of all state in memory."), &c.MaxMemory, leastMemory, mostMemory)
	oneOf(s, s.declare("on_full", field.Restart, "Answer for a new key when memory is full of keys over their limits."),
		&c.OnFull, []choice[headgate.Verdict]{
			{word: "deny", value: headgate.Deny}, {word: "allow", value: headgate.Allow},
		})
	if shared != nil {
		c.Store, c.Shared, c.Prefetch = shared.String(), shared, s.counting.prefetch
	}
}

// namespace reads the prefix that separates the counters of several guards on one store.
func (s *section) namespace(into *string) {
	s.declare("namespace", field.Taken, "Part of every key: instances with different namespaces share no counters.")
	s.outline.field("namespace").text("", "^[A-Za-z0-9_.-]*$", 0, 64)
	if v, ok := s.textOf("namespace", into); ok && guard.CheckNamespace(*into) != nil {
		s.fault(v, quote(*into)+" is not a valid namespace", "use up to 64 letters, digits, - _ and .")
	}
}

// storeAddress reads the store. It returns nil for memory. The address may have a password, so
// faults repeat only its scheme.
func (s *section) storeAddress() *SharedStore {
	s.declare("store", field.Refused, "Storage of the counters: memory is the memory of this process; redis://, rediss:// (TLS), "+
		"redis+cluster://, redis+sentinel://, redis+unix://, memcached:// and memcacheds:// (TLS) are shared by instances.")
	s.outline.field("store").written(memoryWord, storePattern)
	v, ok := s.scalar("store", "a word or an address")
	if !ok || v.text() == memoryWord {
		return nil
	}
	if strings.ContainsAny(v.text(), "@?") {
		s.hide(v)
	}
	shared, bad := parseStore(v.text())
	if bad != nil {
		s.faultAt(v, bad.offset, bad.problem, bad.fix)
		return nil
	}
	return shared
}

// StoreConfig returns the settings of the store in memory. If a rule uses logs or sliding windows, half
// of the memory is reserved for them. With a shared store, the settings are those of the store for
// fallback local. That store always has the reserve, because a reload may add such rules.
func (c *Config) StoreConfig() memory.Config {
	own := memory.Config{MaxMemory: c.MaxMemory, BlockShare: -1, AllowOnFull: c.OnFull == headgate.Allow}
	if c.Shared != nil {
		own.MaxMemory, own.BlockShare = c.MaxMemory-c.stashBytes(), check.BlockPercent
		return own
	}
	if c.sourced || c.Source != nil {
		own.BlockShare = check.BlockPercent
	}
	for i := range c.Rules {
		if p := c.Rules[i].Policies; len(p) > 0 && check.UsesBlocks(p[0].Algorithm) {
			own.BlockShare = check.BlockPercent
		}
	}
	if c.quotasUseBlocks() {
		own.BlockShare = check.BlockPercent
	}
	for _, r := range check.Leaves(c.Domains) {
		if check.UsesBlocks(r.Policies[0].Algorithm) {
			own.BlockShare = check.BlockPercent
		}
	}
	return own
}

// stashBytes returns the reserve of check.StashPercent, but leaves leastMemory to the store in memory.
func (c *Config) stashBytes() int64 {
	return max(0, min(c.MaxMemory/100*check.StashPercent, c.MaxMemory-leastMemory))
}

// PrefetchKeys returns how many keys package prefetch can hold before a shared store.
func (c *Config) PrefetchKeys() int {
	const (
		bytes = 400 // From the documentation of package prefetch.
		most  = 1 << 24
	)
	return int(min(max(c.stashBytes()/bytes, 1), most))
}
