package config

import "github.com/headgate/headgate/internal/config/check"

// Need is the memory that the keys of one rule take at most. With a shared store, it is the
// memory for fallback local, and zero for rules without that fallback.
type Need = check.Need

// Needs returns the memory of the most expensive key of each rule. Such a key has the rule's
// limits or those of an override, the ban, and the hard limit.
func (c *Config) Needs() []Need {
	memory := c.memory()
	needs := make([]Need, len(c.Rules))
	for i := range c.Rules {
		if memory.Counts(&c.Rules[i]) {
			needs[i] = memory.Need(&c.Rules[i])
		}
	}
	return needs
}

func (c *Config) memory() check.Memory {
	store := c.StoreConfig()
	blocks := store.MaxMemory / 100 * int64(max(store.BlockShare, 0))
	memory := check.Memory{Max: c.MaxMemory, Table: store.MaxMemory - blocks, Blocks: blocks, Shared: c.Shared != nil}
	if memory.Shared {
		memory.LocalShare = c.LocalShare
	}
	return memory
}
