// Package bench_test runs all benchmarks briefly, to detect benchmarks that no longer work.
package bench_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/flood"
	"github.com/headgate/headgate/cmd/test/bench/outcome"
	"github.com/headgate/headgate/cmd/test/bench/proxy"
	"github.com/headgate/headgate/cmd/test/bench/rls"
	"github.com/headgate/headgate/cmd/test/bench/scenes"
	"github.com/headgate/headgate/cmd/test/bench/shared"
)

// TestQuick builds and runs the command as users do, without the race detector, and reads
// its results. It judges no figure, because other tests share the machine.
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
		t.Fatalf("got the result files %q, error %v, want one file", found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var o outcome.Outcome
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	contests := len(scenes.All()) + len(rls.All()) + 3 // The 3 contests are waiters, reload and the throttle of the proxy.
	for _, s := range shared.All() {
		contests += len(s.Contests)
	}
	if len(o.Contests) != contests || len(o.Flood) != len(flood.Names()) {
		t.Errorf("got %d contests and %d floods, want %d contests and %d floods", len(o.Contests), len(o.Flood), contests, len(flood.Names()))
	}
	if len(o.Memory) != 3 {
		t.Errorf("got the memory of %d proxies, want 3", len(o.Memory))
	}
	for _, c := range o.Contests {
		checkContest(t, c)
	}
	quick := slices.DeleteFunc(proxy.Scenes(""), func(s proxy.Scene) bool { return s.Repeats })
	if got, want := len(o.Proxies), len(quick); got != want {
		t.Errorf("got %d scenes of proxies, want %d", got, want)
	}
	for _, p := range o.Proxies {
		checkContest(t, p.Result)
	}
}

// allocationsTable holds the allocations that our sides may make in an operation. A scene
// that is not listed may make none. The fields of a response outlive the handler, so
// each response allocates them. A pacer allocates each waiter once and reuses the waiter;
// a quick run ends before many waiters are reused.
var allocationsTable = map[string]float64{"middleware, allowed": 1, "middleware, denied": 8, "pace, 300,000 a second, all wait": 8, "middleware, with a stage": 7}

// allocationsOf returns the allocations that our sides may make in a decision. A decision
// over the network also allocates in the client library, and the servers of the scenes "server" are
// processes of their own. A quick run contains many first
// decisions, which allocate more.
func allocationsOf(name string) float64 {
	switch {
	case strings.HasPrefix(name, "server"):
		return 120
	case strings.HasPrefix(name, "memcached"), strings.HasPrefix(name, "redis cluster"), strings.HasPrefix(name, "client"):
		return 30
	case strings.HasPrefix(name, "redis"):
		return 15
	default:
		return allocationsTable[name]
	}
}

// checkContest checks that each side and each ratio has a figure. A difference may be
// negative, because a quick run measures too little.
func checkContest(t *testing.T, c contest.Result) {
	t.Helper()
	for _, r := range c.Rows {
		if r.Median <= 0 {
			t.Errorf("%s: got a median of %v ns for %s, want more than 0", c.Name, r.Median, r.Name)
		}
		if most := allocationsOf(c.Name); r.Kind == contest.Ours && r.Allocs > most+0.05 {
			t.Errorf("%s: got %.2f allocations per decision for %s, want at most %v", c.Name, r.Allocs, r.Name, most)
		}
	}
	if len(c.Ratios) == 0 {
		t.Errorf("%s: got no ratio, want at least one", c.Name)
	}
	for _, r := range c.Ratios {
		if r.Median <= 0 && !r.Difference || r.Low > r.Median || r.High < r.Median {
			t.Errorf("%s: got %+v for %s / %s, want a positive median within the interval", c.Name, r.Interval, r.Of, r.Against)
		}
	}
}
