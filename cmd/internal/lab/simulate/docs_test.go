package simulate

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/race"

	"github.com/headgate/headgate/cmd/internal/lab/output"
)

// update writes the pictures instead of comparing them:
//
//	go test ./cmd/internal/lab/simulate -run TestPictures -update
var update = flag.Bool("update", false, "write docs/plots/simulate-*.svg")

const (
	page  = "../../../../docs/choosing-limits.md"
	plots = "../../../../docs/plots/"
)

// pictured are the options of the command that makes the pictures of the page.
func pictured() Options {
	return Options{
		Limit: "100/m", Algorithms: []string{"fixed_window", "sliding_window"}, SubWindows: []int{1, 4, 12}, Traffic: "bursty", For: 12 * time.Minute,
	}
}

// TestPictures: the pictures in docs/plots are those of the page that headgate simulate --html writes.
func TestPictures(t *testing.T) {
	t.Parallel()
	o := pictured()
	o.Keys, o.Seed, o.Progress = 1, 1, output.NewProgress(&bytes.Buffer{}, false, time.Now)
	c, err := o.comparison()
	if err != nil {
		t.Fatal(err)
	}
	done, err := Compare(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	pictures := done.Pictures()
	names := []string{"simulate-fixed.svg", "simulate-two.svg", "simulate-more.svg"}
	if len(pictures) != len(names) {
		t.Fatalf("%d pictures, want %d", len(pictures), len(names))
	}
	for i, name := range names {
		var b bytes.Buffer
		if _, err := pictures[i].WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(plots+name, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(plots + name); err != nil || !bytes.Equal(got, b.Bytes()) {
			t.Errorf("%s is not what the code draws (%v): run this test with -update, look at it, and commit it", name, err)
		}
	}
}

// TestPage: the outputs on the page are those of its commands.
func TestPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	commands := []struct {
		line    string
		options Options
	}{
		{
			"headgate simulate --config headgate.yaml --scenario flood.yaml --html f.html",
			Options{Config: parsed(t, blockOf(t, string(text), "fair_share:")), Scenario: blockOf(t, string(text), "seed: 3"), ScenarioName: "flood.yaml"},
		},
		{
			"headgate simulate --limit 100/m --traffic bursty",
			Options{Limit: "100/m", SubWindows: []int{1, 2, 4, 12, 60}, Traffic: "bursty"},
		},
	}
	for _, command := range commands[:race.Fewer(len(commands), 1)] {
		want, err := ran(t, command.options)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "$ "+command.line+"\n"+strings.TrimRight(want, "\n")+"\n```\n") {
			t.Errorf("the page lacks the output of its command: %s\n%s", command.line, want)
		}
	}
}

// blockOf returns the block of code of the page that has a text.
func blockOf(t *testing.T, text, has string) string {
	t.Helper()
	for i, part := range strings.Split(text, "```") {
		if i%2 == 1 && strings.Contains(part, has) {
			_, code, _ := strings.Cut(part, "\n")
			return code
		}
	}
	t.Fatalf("the page has no block with %q", has)
	return ""
}

// accuracyRows are the rows of the page's table of accuracy.
func accuracyRows(mean map[int64]float64, excess map[int64]int64) (rows []string) {
	for _, n := range []int64{0, 1, 2, 4, 12, 60} {
		name := "`fixed_window`"
		if n > 0 {
			name = fmt.Sprintf("`sliding_window`, N = %d", n)
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %d %% |", name, output.Percent(mean[n]), excess[n]))
	}
	return rows
}
