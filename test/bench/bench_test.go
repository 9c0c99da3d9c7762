// Package bench_test runs the benchmarks quickly, so that they do not rot.
package bench_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/test/bench/contest"
	"github.com/headgate/headgate/test/bench/flood"
	"github.com/headgate/headgate/test/bench/outcome"
	"github.com/headgate/headgate/test/bench/scenes"
	"github.com/headgate/headgate/test/bench/shared"
)

// TestQuick builds the command as it is used, without the race detector, and reads
// what it has written. No figure is judged: that needs the machine for itself.
func TestQuick(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "bench")
	if text, err := exec.Command("go", "build", "-o", program, "./cmd/bench").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	if text, err := exec.Command(program, "--quick", "--out", dir).CombinedOutput(); err != nil {
		t.Fatalf("bench --quick: %v\n%s", err, text)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("results: got %q, %v, want one", found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var o outcome.Outcome
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	contests := len(scenes.All()) + 2 // and those of waiters and reload
	for _, s := range shared.All() {
		contests += len(s.Contests)
	}
	if len(o.Contests) != contests || len(o.Flood) != len(flood.Names()) {
		t.Errorf("got %d contests and %d floods, want %d and %d", len(o.Contests), len(o.Flood), contests, len(flood.Names()))
	}
	for _, c := range o.Contests {
		checkContest(t, c)
	}
	switch {
	case o.Proxy != nil:
		checkContest(t, o.Proxy.Result)
	case len(o.Skipped) == 0:
		t.Error("the proxy was neither measured nor skipped")
	default:
		t.Log("not measured:", o.Skipped)
	}
}

// allocationsTable holds what our sides may allocate; elsewhere it is nothing. An
// answer's fields outlive its handler; those who wait are made when they first come, and
// in a quick run most do.
var allocationsTable = map[string]float64{"middleware, allowed": 1, "middleware, denied": 8, "pace, 300,000 a second, all wait": 8, "middleware, with a stage": 7}

// allocationsOf is what our sides may allocate for a decision. A decision over the
// network allocates in its client too, and a quick run has many that are the first.
func allocationsOf(name string) float64 {
	switch {
	case strings.HasPrefix(name, "memcached"), strings.HasPrefix(name, "redis cluster"):
		return 30
	case strings.HasPrefix(name, "redis"):
		return 15
	default:
		return allocationsTable[name]
	}
}

// checkContest holds that every side and every ratio has a figure. A difference may be
// of any sign where little is measured.
func checkContest(t *testing.T, c contest.Result) {
	t.Helper()
	for _, r := range c.Rows {
		if r.Median <= 0 {
			t.Errorf("%s: %s has a median of %v", c.Name, r.Name, r.Median)
		}
		if most := allocationsOf(c.Name); r.Kind == contest.Ours && r.Allocs > most+0.05 {
			t.Errorf("%s: %s allocates %.2f objects a decision, want at most %v", c.Name, r.Name, r.Allocs, most)
		}
	}
	if len(c.Ratios) == 0 {
		t.Errorf("%s: no ratio was formed", c.Name)
	}
	for _, r := range c.Ratios {
		if r.Median <= 0 && !r.Difference || r.Low > r.Median || r.High < r.Median {
			t.Errorf("%s: %s / %s is %+v", c.Name, r.Of, r.Against, r.Interval)
		}
	}
}
