package config

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/store/memory"
)

// TestKeysFitIntoTheStore checks that the number of keys from Needs fits. A further key could be
// refused or evict another key.
func TestKeysFitIntoTheStore(t *testing.T) {
	for _, text := range []string{
		"limits: [5/s]", "limits: [5/s, 9/m]", "limits: [5/s], ban: {for: 1h}",
		"limits: [5/s], on_exceed: {action: degrade, header: X-Degraded, value: yes, hard: 9/s}, ban: {for: 1h}",
		"limits: [5/s], overrides: {192.0.2.1: {limits: [5/s, 9/m]}}",
		"algorithm: sliding_log, limits: [5/s], on_exceed: {action: degrade, header: X-Degraded, value: yes, hard: 90/s}",
		"algorithm: sliding_log, limits: [5/s], overrides: {192.0.2.1: {limits: [500/s]}, 192.0.2.2: {limits: [50/s]}}", "algorithm: sliding_window, limits: [5/s]",
		"algorithm: sliding_log, limits: [100/s]", "algorithm: sliding_log, limits: [100/s, 900/m]",
	} {
		t.Run(text, func(t *testing.T) {
			c := parsed(t, "version: 1\nmax_memory: 1MiB\nrules:\n  - {name: a, key: [ip], "+text+"}\n")
			s, err := memory.New(c.StoreConfig())
			if err != nil {
				t.Fatal(err)
			}
			need, stats := c.Needs()[0], s.Stats()
			if places := need.Keys * need.TableBytes / check.PlaceBytes; places > stats.Places+64 {
				t.Errorf("%d keys need %d table entries, but the store has %d", need.Keys, places, stats.Places)
			}
			if need.Keys*need.BlockBytes > stats.BlockBytes {
				t.Errorf("%d keys need %d bytes of blocks, but the store has %d", need.Keys, need.Keys*need.BlockBytes, stats.BlockBytes)
			}
			// One more key must not fit.
			if (need.Keys+1)*need.TableBytes <= stats.Places*check.PlaceBytes && (need.Keys+1)*max(need.BlockBytes, 1) <= stats.BlockBytes {
				t.Errorf("Needs says that %d keys fit, but one more fits too", need.Keys)
			}
		})
	}
}

func TestStoreConfig(t *testing.T) {
	for algorithm, share := range map[string]int{
		"token_bucket": -1, "leaky_bucket": -1, "fixed_window": -1, "sliding_log": 50, "sliding_window": 50,
	} {
		c := parsed(t, fmt.Sprintf("version: 1\nmax_memory: 2MiB\non_full: allow\nrules:\n"+
			"  - {name: a, key: [ip], limits: [5/s]}\n  - {name: b, key: [path], limits: [5/s], algorithm: %s}\n", algorithm))
		want := memory.Config{MaxMemory: 2 << 20, BlockShare: share, AllowOnFull: true}
		got := c.StoreConfig()
		if got.MaxMemory != want.MaxMemory || got.BlockShare != want.BlockShare || got.AllowOnFull != want.AllowOnFull {
			t.Errorf("%s: got %+v, want %+v", algorithm, got, want)
		}
	}
}

// TestMemoryBesideASharedStore: with a shared store, max_memory is divided between fallback local
// and the reserve for prefetch.
func TestMemoryBesideASharedStore(t *testing.T) {
	const rules = "rules:\n- {name: a, match: {path: /a}, key: [ip], limits: [100/s], algorithm: sliding_log, fallback: local}\n" +
		"- {name: b, match: {path: /b}, key: [ip], limits: [30000/s], algorithm: sliding_log}\n"
	for _, row := range []struct {
		memory string
		table  int64 // The bytes of max_memory for the store in memory.
	}{{"64KiB", 64 << 10}, {"80KiB", 64 << 10}, {"100MiB", 75 << 20}} {
		c := parsed(t, "version: 1\nstore: redis://h\nlocal_share: 50%\nmax_memory: "+row.memory+"\n"+rules)
		if got := c.StoreConfig(); got.MaxMemory < row.table || got.MaxMemory > row.table+100 || got.BlockShare != check.BlockPercent {
			t.Errorf("%s: got %+v", row.memory, got)
		}
		if keys, bytes := int64(c.PrefetchKeys()), c.MaxMemory-c.StoreConfig().MaxMemory; keys < 1 || keys > 1 && keys*400 > bytes {
			t.Errorf("%s: %d keys in %d bytes", row.memory, keys, bytes)
		}
		needs := c.Needs()
		half := check.BlockBytes(headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 50, Per: time.Second}})
		if needs[0].BlockBytes != half || needs[0].TableBytes != check.PlaceBytes || needs[1] != (Need{}) {
			t.Errorf("%s: got %+v", row.memory, needs)
		}
	}
	// The max_memory in the fix of a fault must be enough.
	text := "version: 1\nstore: redis://h\nfallback: local\nlocal_share: 50%%\nmax_memory: %s\nrules: [{name: b, key: [ip], limits: [30000/s], algorithm: sliding_log}]\n"
	_, err := Parse("f", fmt.Appendf(nil, text, "1MiB"))
	if err == nil {
		t.Fatal("1MiB is enough")
	}
	_, fix, _ := strings.Cut(err.Error(), "raise max_memory to ")
	enough, _, _ := strings.Cut(fix, " ")
	parsed(t, fmt.Sprintf(text, enough))
}

// TestNeedsAreThoseOfTheWorstKey: a key has the limits of at most one override, and the ban and
// the hard limit.
func TestNeedsAreThoseOfTheWorstKey(t *testing.T) {
	log := func(n int64) int64 {
		return check.BlockBytes(headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: n, Per: time.Second}})
	}
	for text, want := range map[string]Need{
		"limits: [5/s]":                 {TableBytes: 32},
		"limits: [5/s], ban: {for: 1h}": {TableBytes: 64},
		"limits: [5/s, 9/m], soft: 50%": {TableBytes: 64},
		"limits: [5/s], overrides: {192.0.2.1: {limits: [5/s, 9/m, 99/h]}, 192.0.2.2: {limits: [5/s, 9/m]}}": {TableBytes: 96},
		"limits: [5/s], algorithm: sliding_log, on_exceed: {action: degrade, header: X-Degraded, value: yes, hard: 600/s}": {
			TableBytes: 64, BlockBytes: log(5) + log(600),
		},
		"limits: [600/s], algorithm: sliding_log, overrides: {192.0.2.1: {limits: [5/s]}}, ban: {for: 1h}": {
			TableBytes: 64, BlockBytes: log(600),
		},
		"limits: [5/s], algorithm: sliding_log, overrides: {192.0.2.1: {limits: [600/s]}}": {TableBytes: 32, BlockBytes: log(600)},
	} {
		got := parsed(t, "version: 1\nrules: [{name: a, key: [ip], "+text+"}]\n").Needs()[0]
		if got.TableBytes != want.TableBytes || got.BlockBytes != want.BlockBytes {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
}

// TestPoliciesOfARule compares Sets and Counted with the policies that a guard prepares.
func TestPoliciesOfARule(t *testing.T) {
	c := parsed(t, "version: 1\nrules: [{name: a, key: [ip], limits: [5/s, 9/m], ban: {for: 1h}, "+
		"on_exceed: {action: degrade, header: X-Degraded, value: yes, hard: 9/s}, overrides: {192.0.2.1: {limits: [7/s]}, 192.0.2.2: {limits: [5/s]}}}]\n")
	counted := make(map[headgate.Policy]bool)
	for _, set := range check.Sets(&c.Rules[0]) {
		for _, p := range check.Counted(&c.Rules[0], set) {
			counted[p] = true
		}
	}
	prepared := make(recorder)
	if _, err := guard.New(guard.Config{Rules: c.Rules, Store: prepared}); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(counted, prepared) {
		t.Errorf("counted\n%+v\nprepared\n%+v", counted, prepared)
	}
}

// recorder is a store that records prepared policies.
type recorder map[headgate.Policy]bool

func (r recorder) Prepare(p headgate.Policy) (headgate.PolicyID, error) {
	r[p] = true
	return compiler{}.Prepare(p)
}

func (recorder) Release(headgate.PolicyID) {}

func (recorder) Apply(context.Context, []headgate.Op, []headgate.Decision) error { return nil }

func (recorder) Return(context.Context, []headgate.Receipt) error { return nil }

func (recorder) Forget(context.Context, []headgate.Op) error { return nil }
