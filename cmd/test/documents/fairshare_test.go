package documents

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/internal/share"
)

// fairSharePage is the document with the tables that these tests compute.
var fairSharePage = filepath.Join("..", "..", "..", "docs", "fair-share.md")

// fourClients are the clients of the page's example. The demands are theirs in three cycles.
var (
	fourClients = []string{"A", "B", "C", "D"}
	fourDemands = [][]int64{{2, 15, 10, 10}, {3, 15, 50, 10}, {0, 15, 50, 5}}
)

// sizesOver returns the clients' sizes in each cycle. In the first cycle no demand is known.
func sizesOver(t *testing.T, division share.Division, demands [][]int64) [][]int64 {
	t.Helper()
	l, err := fairshare.New(0, fairshare.Config{
		Capacity: 40, Cycle: time.Second, Reservation: 10, Division: division,
		Weights: map[string]int64{"A": 1, "B": 1, "C": 1, "D": 1}, ForgetAfter: 30, MaxClients: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	var all [][]int64
	for cycle := range len(demands) + 1 {
		now := headgate.Instant(0).Add(time.Duration(cycle) * time.Second)
		var sizes []int64
		for _, c := range l.Shares(now).Clients {
			sizes = append(sizes, c.Size)
		}
		all = append(all, sizes)
		if cycle == len(demands) {
			break
		}
		for i, n := range demands[cycle] {
			for range n {
				l.Take(now, fairshare.Request{Client: fourClients[i]})
			}
		}
	}
	return all
}

// TestFourCycles computes the page's first table with the limiter.
func TestFourCycles(t *testing.T) {
	sizes := sizesOver(t, share.Loan, fourDemands)
	sum := func(all []int64) (n int64) {
		for _, v := range all {
			n += v
		}
		return n
	}
	var want []string
	row := func(name string, value func([]int64) int64) {
		cells := []string{name}
		for cycle := range sizes {
			cells = append(cells, fmt.Sprint(value(sizes[cycle])))
			if cycle < len(fourDemands) {
				cells = append(cells, fmt.Sprint(value(fourDemands[cycle])))
			}
		}
		want = append(want, "| "+strings.Join(cells, " | ")+" |")
	}
	for i, name := range fourClients {
		row(name, func(all []int64) int64 { return all[i] })
	}
	row("together", sum)
	if got := tableOf(t, fairSharePage, "four cycles"); !slices.Equal(got, want) {
		t.Errorf("the page has\n%s\nand the limiter computes\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestDivisions computes the page's table of both divisions.
func TestDivisions(t *testing.T) {
	list := func(all []int64) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ", "), "[]") }
	var want []string
	for _, demands := range fourDemands {
		row := []string{list(demands)}
		for _, division := range share.Divisions() {
			row = append(row, list(sizesOver(t, division, [][]int64{demands})[1]))
		}
		want = append(want, "| "+strings.Join(row, " | ")+" |")
	}
	if got := tableOf(t, fairSharePage, "divisions"); !slices.Equal(got, want) {
		t.Errorf("the page has\n%s\nand the limiter computes\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
