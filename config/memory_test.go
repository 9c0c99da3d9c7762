package config

import (
	"fmt"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/store/memory"
)

// TestBlocksAreThoseOfTheStore holds blockOf against package memory: a store with
// just that block prepares the policy, and one with less does not.
func TestBlocksAreThoseOfTheStore(t *testing.T) {
	var policies []headgate.Policy
	for _, n := range []int64{0, 1, 2, 5, 100, 500, 2045, 2046, 2047, 10_000, 1 << 20} {
		policies = append(policies, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: n, Per: 1e9}})
	}
	for _, n := range []int{1, 4, 5, 12, 13, 60, 61, limit.MaxSubWindows} {
		policies = append(policies, headgate.Policy{Algorithm: headgate.SlidingWindow, SubWindows: n, Limit: headgate.Limit{Count: 1, Per: 1e9}})
	}
	for _, p := range policies {
		// The least store has 57 KiB of blocks, in which the greatest is of 32 KiB.
		block := blockOf(p)
		if block <= 32<<10 {
			continue
		}
		if err := prepareWithin(t, p, block); err != nil {
			t.Errorf("%v does not fit into %d bytes: %v", p, block, err)
		}
		if err := prepareWithin(t, p, block-blockBytes); err == nil {
			t.Errorf("%v fits into less than %d bytes", p, block)
		}
	}
}

// prepareWithin prepares p in a store with that many bytes of blocks.
func prepareWithin(t *testing.T, p headgate.Policy, blocks int64) error {
	t.Helper()
	s, err := memory.New(memory.Config{MaxMemory: blocks * 2, BlockShare: 50})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Stats().BlockBytes; got > blocks || got < blocks-200 {
		t.Fatalf("the store has %d bytes of blocks, want %d", got, blocks)
	}
	_, err = s.Prepare(p)
	return err
}

// TestKeysFitIntoTheStore holds that as many keys as Need says find room: a
// newcomer past them would be refused or evict another.
func TestKeysFitIntoTheStore(t *testing.T) {
	for _, text := range []string{
		"limits: [5/s]", "limits: [5/s, 9/m]", "algorithm: sliding_window, limits: [5/s]",
		"algorithm: sliding_log, limits: [100/s]", "algorithm: sliding_log, limits: [100/s, 900/m]",
	} {
		t.Run(text, func(t *testing.T) {
			c := parsed(t, "version: 1\nmax_memory: 1MiB\nrules:\n  - {name: a, key: [ip], "+text+"}\n")
			s, err := memory.New(c.StoreConfig())
			if err != nil {
				t.Fatal(err)
			}
			need, stats := c.Need(&c.Rules[0]), s.Stats()
			if places := need.Keys * int64(len(c.Rules[0].Policies)); places > stats.Places+64 {
				t.Errorf("%d keys need %d places, and there are %d", need.Keys, places, stats.Places)
			}
			if need.Keys*need.BlockBytes > stats.BlockBytes {
				t.Errorf("%d keys need %d bytes of blocks, and there are %d", need.Keys, need.Keys*need.BlockBytes, stats.BlockBytes)
			}
			// One key more would not have fitted.
			if (need.Keys+1)*need.TableBytes <= stats.Places*placeBytes && (need.Keys+1)*max(need.BlockBytes, 1) <= stats.BlockBytes {
				t.Errorf("more than %d keys fit", need.Keys)
			}
		})
	}
}

func TestStoreConfig(t *testing.T) {
	for algorithm, share := range map[string]int{
		"token_bucket": -1, "leaky_bucket": -1, "fixed_window": -1, "sliding_log": 50, "sliding_window": 50,
	} {
		c := parsed(t, fmt.Sprintf("version: 1\nmax_memory: 2MiB\non_full: allow\nrules:\n"+
			"  - {name: a, key: [ip], limits: [5/s]}\n  - {name: b, key: [ip], limits: [5/s], algorithm: %s}\n", algorithm))
		want := memory.Config{MaxMemory: 2 << 20, BlockShare: share, OnFull: headgate.Allow}
		got := c.StoreConfig()
		if got.MaxMemory != want.MaxMemory || got.BlockShare != want.BlockShare || got.OnFull != want.OnFull {
			t.Errorf("%s: got %+v, want %+v", algorithm, got, want)
		}
	}
}

// TestMemoryFixHelps: the max_memory that a fault asks for is enough, and not
// much more than enough.
func TestMemoryFixHelps(t *testing.T) {
	for _, n := range []Need{{TableBytes: 32}, {TableBytes: 32, BlockBytes: 1 << 24}, {TableBytes: 512, BlockBytes: 3 << 20}} {
		keys := func(total int64) int64 {
			return min(total/2/n.TableBytes, total/100*blockShare/max(n.BlockBytes, 1))
		}
		if total := enough(n); keys(total) < leastKeys || total > 1<<20 && keys(total-2<<20) >= leastKeys {
			t.Errorf("%+v: %d bytes hold %d keys", n, total, keys(total))
		}
	}
}
