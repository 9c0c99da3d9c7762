package documents

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// lateCounts are instances that each count their own admissions, and learn the admissions of the
// others later. Examples are counters that are broadcast or sent over an event log.
type lateCounts struct {
	instances   int
	rate, limit int64 // In requests per second.
	late        time.Duration
}

// lateTable has the rows of docs/stores.md.
var lateTable = []lateCounts{
	{2, 2_000, 1_000, 100 * time.Millisecond},
	{8, 1_200, 1_000, 100 * time.Millisecond},
	{8, 2_000, 1_000, 10 * time.Millisecond},
	{8, 10_000, 1_000, 10 * time.Millisecond},
	{8, 10_000, 1_000, 100 * time.Millisecond},
	{8, 20_000, 1_000, 500 * time.Millisecond},
	{8, 5_000, 1_000, 2 * time.Second},
	{100, 20_000, 10_000, 50 * time.Millisecond},
	{100, 20_000, 1_000, 500 * time.Millisecond},
}

// excess is the formula of the page: the admissions beyond the limit in one window of a second
// that starts empty. Let A(t) = rate x t be the admissions until t, spread evenly over M
// instances. An instance knows its own A(t)/M and the others' (1-1/M) A(t-late). It refuses when
// the sum reaches the limit.
//
// The excess is therefore what the others admit within late. It is at most one limit for each
// other instance, and at most the number of requests.
func (c lateCounts) excess() int64 {
	others := int64(c.instances - 1)
	unheard := c.rate * int64(c.late/time.Microsecond) / 1e6 * others / int64(c.instances)
	return max(0, min(unheard, others*c.limit, c.rate-c.limit))
}

// passed simulates one such window: requests at random microseconds, each to a random instance.
func (c lateCounts) passed(seed uint64) int64 {
	r := rand.New(rand.NewPCG(4, seed))
	arrivals := make([]int64, c.rate)
	for i := range arrivals {
		arrivals[i] = r.Int64N(1e6)
	}
	slices.Sort(arrivals)
	type admission struct {
		at int64
		by int
	}
	var all []admission
	own, heard := make([]int64, c.instances), make([]int64, c.instances)
	known := 0 // The number of admissions that every instance knows.
	for _, now := range arrivals {
		for known < len(all) && all[known].at+c.late.Microseconds() <= now {
			heard[all[known].by]++
			known++
		}
		i := r.IntN(c.instances)
		if own[i]+int64(known)-heard[i] < c.limit {
			own[i]++
			all = append(all, admission{now, i})
		}
	}
	return int64(len(all))
}

// TestLateCounts compares the simulation with the formula, and both with the page.
func TestLateCounts(t *testing.T) {
	const windows = 5
	var rows []string
	for _, c := range lateTable {
		sum := int64(0)
		for seed := range uint64(windows) {
			sum += c.passed(seed) - c.limit
		}
		formula, simulated := c.excess(), (sum+windows/2)/windows
		if off := simulated - formula; max(off, -off) > 5+formula/20 {
			t.Errorf("%+v: %d requests pass beyond the limit, and the formula says %d", c, simulated, formula)
		}
		rows = append(rows, fmt.Sprintf("| %d | %s/s | %s/s | %v | %s | %s | %d %% |", c.instances, thousands(c.rate), thousands(c.limit),
			c.late, thousands(formula), thousands(simulated), (100*simulated+c.limit/2)/c.limit))
	}
	sameTable(t, "late counts", rows)
}

// TestCountsInTimeAreExact checks that without delay the simulation admits exactly the limit.
func TestCountsInTimeAreExact(t *testing.T) {
	c := lateCounts{instances: 8, rate: 5_000, limit: 1_000}
	if got := c.passed(1); got != c.limit || c.excess() != 0 {
		t.Errorf("%d requests pass, and the formula says %d beyond the limit of %d", got, c.excess(), c.limit)
	}
}

// thousands formats a number like 12,345.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// TestMessages computes the messages per second of each way to share a count, for M instances that
// decide r requests per second together.
func TestMessages(t *testing.T) {
	var rows []string
	for _, c := range []struct{ instances, rate int64 }{{3, 10_000}, {8, 10_000}, {20, 50_000}, {100, 100_000}} {
		m, r := c.instances, c.rate
		const perSecond = 10 // Updates per second, if updates are collected for 100 ms.
		rows = append(rows, fmt.Sprintf("| %d | %s/s | %s | %s | %s | %s | %s | %s |", m, thousands(r),
			thousands(2*r*(m-1)), thousands(r*(m-1)), thousands(m*(m-1)*perSecond), thousands(r+m*perSecond),
			thousands(2*r), thousands(2*r/20)))
	}
	sameTable(t, "messages", rows)
}
