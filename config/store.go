package config

import (
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config/check"
	"github.com/headgate/headgate/config/field"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/memory"
)

// Bounds of the store's settings.
const (
	leastTimeout = time.Millisecond
	mostTimeout  = time.Minute
	// leastMemory is what package memory asks for at least.
	leastMemory = 64 << 10
	// mostMemory is beyond what one machine has; above it sums of bytes could overflow.
	mostMemory = 16 << 40
	// redisSlots is how many hash slots every Redis Cluster has.
	redisSlots = 16_384
	// mostDenyCache bounds for how long a limit that was raised, or a ban that was
	// lifted, on another instance is not noticed.
	mostDenyCache = time.Minute
	// Bounds of the breaker: after a thousand failures it was never closed, and after
	// ten minutes nobody believes that it tries again.
	mostFailures = 1000
	mostProbe    = 10 * time.Minute
)

const memoryWord = "memory"

// counting is what the readers know of the store while they read on.
type counting struct {
	// known is false when the store is at fault: what depends on it is not judged.
	known bool
	// shared is nil for a store in memory.
	shared *SharedStore
	// prefetch is what rules have that do not say otherwise.
	prefetch Prefetch
	// fit says which policies the shared store can count; nil for a store in memory.
	fit check.Fit
	// localShare is 0 unless it is told, and right.
	localShare int
}

// store reads where counters live, and what happens when they cannot be reached
// or there is no room for more.
func (s *section) store(c *Config) {
	shared := s.storeAddress()
	s.counting = counting{known: !s.blamed("store"), shared: shared}
	if shared != nil {
		s.counting.fit = check.NewFit(shared.Kind == KindMemcached)
	}
	s.duration(s.declare("store_timeout", field.Taken, "Budget of one decision, all rules together; a store in memory answers at "+
		"once."), &c.StoreTimeout, leastTimeout, mostTimeout)
	s.namespace(&c.Namespace)
	s.sharedFields(shared)
	s.prefetchDefault()
	oneOf(s, s.declare("fallback", field.Taken, "What a rule answers when its store cannot; local counts in this instance's memory, "+
		"against local_share of each limit."), &c.Fallback, fallbackWords())
	s.percent(s.declare("local_share", field.Taken, "This instance's part of each limit for fallback local, 1% to 100%."),
		&c.LocalShare, 1, 100)
	s.counting.localShare = c.LocalShare
	s.size(s.declare("max_memory", field.Restart, "Bound of all state in memory."), &c.MaxMemory, leastMemory, mostMemory)
	oneOf(s, s.declare("on_full", field.Restart, "What a new key gets when every place holds a key that is being limited."),
		&c.OnFull, []choice[headgate.Verdict]{
			{word: "deny", value: headgate.Deny}, {word: "allow", value: headgate.Allow},
		})
	if shared != nil {
		c.Store, c.Shared, c.Prefetch = shared.String(), shared, s.counting.prefetch
	}
}

// namespace reads what keeps the counters of several guards on one store apart.
func (s *section) namespace(into *string) {
	s.declare("namespace", field.Taken, "Part of every key: instances with different namespaces share no counters on one store.")
	s.outline.field("namespace").text("", "^[A-Za-z0-9_.-]*$", 0, 64)
	if v, ok := s.textOf("namespace", into); ok && guard.CheckNamespace(*into) != nil {
		s.fault(v, quote(*into)+" is no namespace", "use up to 64 letters, digits, - _ and .")
	}
}

func fallbackWords() []choice[guard.Fallback] {
	var choices []choice[guard.Fallback]
	for _, f := range guard.Fallbacks() {
		choices = append(choices, choice[guard.Fallback]{word: f.String(), value: f})
	}
	return choices
}

// storeAddress reads the store; nil is memory. An address may hold a password, so
// that no message repeats more of it than its scheme.
func (s *section) storeAddress() *SharedStore {
	s.declare("store", field.Restart, "Where counters live: memory is the memory of this process; redis://, rediss:// (TLS), "+
		"redis+cluster://, redis+sentinel:// and memcached:// are shared by instances.")
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

// StoreConfig gives what the store in memory is made of: half of it is kept for
// logs and sliding windows when a rule has them, and none when none does. Beside a
// shared store it is the one that rules with fallback local count in, which may have
// such rules after a reload too.
func (c *Config) StoreConfig() memory.Config {
	own := memory.Config{MaxMemory: c.MaxMemory, BlockShare: -1, AllowOnFull: c.OnFull == headgate.Allow}
	if c.Shared != nil {
		own.MaxMemory, own.BlockShare = c.MaxMemory-c.stashBytes(), check.BlockPercent
		return own
	}
	for i := range c.Rules {
		if p := c.Rules[i].Policies; len(p) > 0 && check.UsesBlocks(p[0].Algorithm) {
			own.BlockShare = check.BlockPercent
		}
	}
	return own
}

// stashBytes leaves the store in memory at least what it asks for.
func (c *Config) stashBytes() int64 {
	return max(0, min(c.MaxMemory/100*check.StashPercent, c.MaxMemory-leastMemory))
}

// PrefetchKeys gives for how many keys package prefetch has capacity before a shared store.
func (c *Config) PrefetchKeys() int {
	const (
		bytes = 400 // as package prefetch says
		most  = 1 << 24
	)
	return int(min(max(c.stashBytes()/bytes, 1), most))
}
