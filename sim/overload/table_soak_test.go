//go:build soak

package overload

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/throttle"
)

// contender is a design in the table.
type contender struct {
	name    string
	design  func(row string) NewDesign
	reports bool
}

func contenders() []contender {
	always := func(d NewDesign) func(string) NewDesign { return func(string) NewDesign { return d } }
	searched := func(row string) NewDesign {
		if c := limitOf(row); c.Concurrency == 0 {
			return NewThrottled(c) // A bound of CPU time is not searched.
		}
		// The search begins in the middle of its bounds.
		return NewThrottled(throttle.Config{Concurrency: 64, Search: throttle.Search{Min: 4, Max: 124, Apply: true}})
	}
	throttled := func(row string) NewDesign { return NewThrottled(limitOf(row)) }
	return []contender{
		{"throttle", throttled, true},
		{"throttle, no reports", throttled, false},
		{"throttle, searched", searched, true},
		{"open", always(NewOpen()), true},
		{"queue", always(NewQueue(16, 1000)), true},
		{"last first", always(NewLastFirst(16, 100)), true},
		{"by class", always(NewByClass(16, 100)), true},
		{"fair", always(NewFair(16, 100)), true},
	}
}

// worst joins the figures of all seeds: the worst of each.
func worst(a, b Figures) Figures {
	return Figures{
		Goodput: min(a.Goodput, b.Goodput), Critical: min(a.Critical, b.Critical), All: min(a.All, b.All),
		P99: max(a.P99, b.P99), Jain: min(a.Jain, b.Jain), Wasted: max(a.Wasted, b.Wasted),
		WorstTenant: min(a.WorstTenant, b.WorstTenant), WorstPart: min(a.WorstPart, b.WorstPart),
		Recovered: max(a.Recovered, b.Recovered),
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
	slow := rowNamed(t, slowByCPU)
	slow.Name = slowByCPU
	var text strings.Builder
	fmt.Fprintf(&text, "Worst of %d seeds. Drawn scenarios: seed %x.\n\n", seeds, mixSeed)
	text.WriteString("| scenario | design | goodput | critical | all | p99 | Jain | wasted | worst tenant | worst part | recovered | bars |\n")
	text.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range append(append(Scenarios(), slow), Mixes(mixSeed, 5)...) {
		for _, c := range contenders() {
			f := worstOf(t, s, c)
			judged := c.name == "throttle"
			misses := bars[s.Name].misses(f)
			verdict := "none"
			if b, ok := bars[s.Name]; ok && b != (bar{}) && judged {
				verdict = "met"
				for _, miss := range misses {
					verdict = "MISSED"
					t.Errorf("%s: %s", s.Name, miss)
				}
			}
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

// worstOf runs a scenario with all seeds, two at a time.
func worstOf(t *testing.T, s Scenario, c contender) Figures {
	t.Helper()
	results := make(chan Figures, seeds)
	for seed := range uint64(seeds) {
		go func() {
			f, err := Run(s, seed+1, c.reports, c.design(s.Name))
			if err != nil {
				t.Error(err)
			}
			results <- f
		}()
	}
	f := <-results
	for range seeds - 1 {
		f = worst(f, <-results)
	}
	return f
}
