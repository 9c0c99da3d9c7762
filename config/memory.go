package config

import "github.com/headgate/headgate/config/check"

// Need is the memory that the keys of one rule take at most: in the store, or, beside
// a shared store, in the one that rules with fallback local count in. Rules without
// that fallback need none there.
type Need = check.Need

// Needs gives the worst case of each rule: a key that is counted against all its
// limits, those of the override that take most, its ban and its hard limit.
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
