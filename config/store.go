package config

import (
	"strings"
	"time"

	"github.com/headgate/headgate/rule"

	"github.com/headgate/headgate"
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
)

// store reads where counters live, and what happens when they cannot be reached
// or there is no room for more.
func (s *section) store(c *Config) {
	s.storeAddress()
	s.duration("store_timeout", &c.StoreTimeout, leastTimeout, mostTimeout)
	oneOf(s, "fallback", &c.Fallback, fallbackWords())
	s.later("local_share", "leave it out: it belongs to fallback local")
	s.size("max_memory", &c.MaxMemory, leastMemory, mostMemory)
	oneOf(s, "on_full", &c.OnFull, []choice[headgate.Verdict]{
		{word: "deny", value: headgate.Deny}, {word: "allow", value: headgate.Allow},
	})
}

func fallbackWords() []choice[guard.Fallback] {
	return []choice[guard.Fallback]{
		{word: "allow", value: guard.FallbackAllow},
		{word: "deny", value: guard.FallbackDeny},
		{word: "local", instead: "use allow or deny"},
	}
}

// storeSchemeWords are the schemes of the stores that are planned.
var storeSchemeWords = [...]string{"redis", "rediss", "redis+cluster", "redis+sentinel", "memcached"}

// storeAddress reads the store: so far only memory, the default. An address may
// hold a password, so that no message repeats more of it than its scheme.
func (s *section) storeAddress() {
	s.outline.field("store").words("memory", []string{"memory"})
	v, ok := s.scalar("store", "a word or an address")
	if !ok || v.text() == "memory" {
		return
	}
	scheme, _, address := strings.Cut(v.text(), "://")
	for _, later := range storeSchemeWords {
		if scheme == later {
			s.fault(v, scheme+" stores are not supported yet", "use memory")
			return
		}
	}
	switch near := rule.Nearest(scheme, append(storeSchemeWords[:], "memory")); {
	case near != "":
		s.fault(v, "the store is not known", "did you mean "+near+"?")
	case address:
		s.fault(v, "the scheme of the store is not known", "use memory")
	default:
		s.fault(v, "the store is not known", "use memory")
	}
}

// StoreConfig gives what the store in memory is made of: half of it is kept for
// logs and sliding windows when a rule has them, and none when none does.
func (c *Config) StoreConfig() memory.Config {
	share := -1
	for i := range c.Rules {
		if p := c.Rules[i].Policies; len(p) > 0 && usesBlocks(p[0].Algorithm) {
			share = blockShare
		}
	}
	return memory.Config{MaxMemory: c.MaxMemory, BlockShare: share, AllowOnFull: c.OnFull == headgate.Allow}
}
