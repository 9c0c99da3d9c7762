//go:build soak

package overload

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sim "github.com/headgate/headgate/internal/sim/overload"
	"github.com/headgate/headgate/internal/throttle"
)

// contender is a design in the table.
type contender struct {
	name    string
	design  func(ctx context.Context, row string) sim.NewDesign
	reports bool
}

func contenders() []contender {
	always := func(d sim.NewDesign) func(context.Context, string) sim.NewDesign {
		return func(context.Context, string) sim.NewDesign { return d }
	}
	library := func(d func(context.Context) sim.NewDesign) func(context.Context, string) sim.NewDesign {
		return func(ctx context.Context, _ string) sim.NewDesign { return d(ctx) }
	}
	searched := func(_ context.Context, row string) sim.NewDesign {
		if c := sim.LimitOf(row); c.Concurrency == 0 {
			return sim.NewThrottled(c) // A bound of CPU time is not searched.
		}
		// The search begins in the middle of its bounds.
		return sim.NewThrottled(throttle.Config{Concurrency: 64, Search: throttle.Search{Min: 4, Max: 124, Apply: true}})
	}
	throttled := func(_ context.Context, row string) sim.NewDesign { return sim.NewThrottled(sim.LimitOf(row)) }
	return []contender{
		{"throttle", throttled, true},
		{"throttle, no reports", throttled, false},
		{"throttle, searched", searched, true},
		{"open", always(sim.NewOpen()), true},
		{"queue", always(sim.NewQueue(16, 1000)), true},
		{"last first", always(sim.NewLastFirst(16, 100)), true},
		{"by class", always(sim.NewByClass(16, 100)), true},
		{"fair", always(sim.NewFair(16, 100)), true},
		{"failsafe-go limiter", library(NewLimiter), true},
		{"failsafe-go limiter, by class", library(NewPriorityLimiter), true},
		{"failsafe-go limiter, by class and tenant", library(NewUsageLimiter), true},
		{"failsafe-go bulkhead", library(NewBulkhead), true},
	}
}

// worst joins the figures of all seeds: the worst of each.
func worst(a, b sim.Figures) sim.Figures {
	return sim.Figures{
		Goodput: min(a.Goodput, b.Goodput), Critical: min(a.Critical, b.Critical), All: min(a.All, b.All),
		P99: max(a.P99, b.P99), Jain: min(a.Jain, b.Jain), Wasted: max(a.Wasted, b.Wasted),
		WorstTenant: min(a.WorstTenant, b.WorstTenant), WorstPart: min(a.WorstPart, b.WorstPart),
		Recovered: max(a.Recovered, b.Recovered), HangWait: max(a.HangWait, b.HangWait), HangProbes: max(a.HangProbes, b.HangProbes), HangGap: max(a.HangGap, b.HangGap),
	}
}

const seeds = 10

// TestSoakTable runs ten seeds of all scenarios and of five drawn ones, with all designs. It judges
// the throttler by the worst seed, and writes the table to the folder HEADGATE_RESULTS.
// HEADGATE_MIXES is the seed of the drawn scenarios, in hexadecimal.
func TestSoakTable(t *testing.T) {
	mixSeed, err := strconv.ParseUint(cmp.Or(os.Getenv("HEADGATE_MIXES"), "1"), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Worst of %d seeds. Drawn scenarios: seed %x.\n\n", seeds, mixSeed)
	text.WriteString("| scenario | design | goodput | critical | all | p99 | Jain | wasted | worst tenant | worst part | recovered | bars |\n")
	text.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range append(sim.Rows(), sim.Mixes(mixSeed, 5)...) {
		var fixed sim.Figures
		for _, c := range contenders() {
			f := worstOf(t, s, c)
			if c.name == "throttle" {
				fixed = f
			}
			verdict := judge(t, s.Name, c, f, fixed)
			fmt.Fprintf(&text, "| %s | %s | %.3f | %.3f | %.3f | %v | %.3f | %.3f | %.3f | %.3f | %v | %s |\n", s.Name, c.name, f.Goodput,
				f.Critical, f.All, f.P99.Round(time.Millisecond), f.Jain, f.Wasted, f.WorstTenant, f.WorstPart, f.Recovered.Round(10*time.Millisecond), verdict)
		}
		t.Logf("%s is done", s.Name)
	}
	t.Log("\n" + text.String())
	if folder := os.Getenv("HEADGATE_RESULTS"); folder != "" {
		if err := os.WriteFile(filepath.Join(folder, "overload.md"), []byte(text.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// searchedPart is the part of the bars that a limit must reach that has to find itself.
const searchedPart = 0.9

// judge compares the throttle with the bars, and the searched one with a part of them. Drawn scenarios have no
// bars: there, the searched limit has to reach that part of the goodput and of the critical requests
// of the fixed one.
func judge(t *testing.T, row string, c contender, f, fixed sim.Figures) string {
	t.Helper()
	var misses []string
	var hasBars bool
	switch c.name {
	case "throttle":
		misses, hasBars = sim.Misses(row, f, 1)
	case "throttle, searched":
		if misses, hasBars = sim.Misses(row, f, searchedPart); strings.HasPrefix(row, "mix ") {
			hasBars = true
			if f.Goodput < searchedPart*fixed.Goodput || f.Critical < searchedPart*fixed.Critical {
				misses = append(misses, fmt.Sprintf("goodput %.3f, critical %.3f: less than %v of the fixed limit", f.Goodput, f.Critical, searchedPart))
			}
		}
	}
	if !hasBars {
		return "none"
	}
	for _, miss := range misses {
		t.Logf("%s, %s: %s", row, c.name, miss)
		if c.name == "throttle" {
			t.Fail() // The searched limit is not for use: config refuses mode enforce.
		}
	}
	if len(misses) > 0 {
		return "MISSED"
	}
	return "met"
}

// worstOf runs a scenario with all seeds, two at a time.
func worstOf(t *testing.T, s sim.Scenario, c contender) sim.Figures {
	t.Helper()
	results := make(chan sim.Figures, seeds)
	for seed := range uint64(seeds) {
		go func() {
			synctest.Test(t, func(t *testing.T) {
				f, err := sim.Run(s, seed+1, c.reports, c.design(t.Context(), s.Name))
				if err != nil {
					t.Error(err)
				}
				results <- f
			})
		}()
	}
	f := <-results
	for range seeds - 1 {
		f = worst(f, <-results)
	}
	return f
}
