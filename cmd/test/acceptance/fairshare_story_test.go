package acceptance

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// storyTable has four clients that share 40 units a cycle, with 10 % of each share reserved: the
// sizes of each cycle, and the clients' demands in it.
var storyTable = []struct{ sizes, demands [4]int64 }{
	{[4]int64{10, 10, 10, 10}, [4]int64{2, 15, 10, 10}},
	{[4]int64{5, 15, 10, 10}, [4]int64{3, 15, 50, 10}},
	{[4]int64{3, 11, 16, 10}, [4]int64{0, 15, 50, 5}},
	{[4]int64{1, 12, 22, 5}, [4]int64{}},
}

// retellings bounds the number of new starts after the machine was too busy to send all requests
// within their cycle.
const retellings = 5

// TestFairShareStory sends the requests of storyTable to the binary, and compares the output of
// headgate ctl shares, as JSON and as a table.
func TestFairShareStory(t *testing.T) {
	t.Parallel()
	for _, reclaim := range []string{"at_once", "next_cycle"} {
		t.Run(reclaim, func(t *testing.T) {
			t.Parallel()
			behind := httptest.NewServer(page())
			t.Cleanup(behind.Close)
			for range retellings {
				i := start(t, fmt.Sprintf(fairShareConfiguration, "capacity: 40, cycle: 1s, reservation: 10%%, reclaim: "+reclaim), behind.URL)
				if tellStory(t, i, reclaim) {
					return
				}
				i.stop()
			}
			t.Fatalf("the machine has sent the requests of a cycle in time in none of %d tries", retellings)
		})
	}
}

// tellStory reports whether all requests came in their cycles.
func tellStory(t *testing.T, i *instance, reclaim string) (whole bool) {
	t.Helper()
	clients := []string{"A", "B", "C", "D"}
	began := nextCycle(t, i).Cycle
	var last [4]int64
	for n, act := range storyTable {
		demands := map[string]int64{}
		for k, name := range clients {
			demands[name] = act.demands[k]
		}
		passed := burst(t, i, demands)
		got := ctlShares(t, i)
		_, table, _ := call(t, "ctl", "shares", "--admin", i.Admin)
		if !inCycle(&got, table, began+uint64(n), demands) {
			t.Logf("cycle %d of the story began as %d and has seen %v, want %v: once more", n+1, began+uint64(n), got, demands)
			return false
		}
		if !slices.Equal(got.sizes(), act.sizes[:]) || len(got.Clients) != len(clients) {
			t.Fatalf("cycle %d: sizes %v, want %v: %+v", n+1, got.sizes(), act.sizes, got)
		}
		for k, name := range clients {
			row := shareRow{
				Client: name, Demand: last[k], Size: act.sizes[k],
				Borrowed: max(0, act.sizes[k]-10), Lent: max(0, 10-act.sizes[k]),
				Seen: act.demands[k], Admitted: passed[name], Refused: act.demands[k] - passed[name],
			}
			if got.Clients[k] != row {
				t.Errorf("cycle %d: %+v, want %+v", n+1, got.Clients[k], row)
			}
			if shown := strings.Join(words(table, name), " "); shown != row.shown() {
				t.Errorf("cycle %d: the table shows %s %s, want %s\n%s", n+1, name, shown, row.shown(), table)
			}
			if reclaim == "next_cycle" && n > 0 && passed[name] != min(act.demands[k], act.sizes[k]) {
				t.Errorf("cycle %d: %d of %d requests of %s passed with a size of %d", n+1, passed[name], act.demands[k], name, act.sizes[k])
			}
		}
		if got.Admitted > 40 {
			t.Errorf("cycle %d: %d were admitted of 40", n+1, got.Admitted)
		}
		last = act.demands
		if n+1 < len(storyTable) && nextCycle(t, i).Cycle != began+uint64(n)+1 {
			return false
		}
	}
	return true
}

// inCycle reports whether both outputs are of one cycle, with the demands of the previous one.
func inCycle(got *shareTable, table string, cycle uint64, demands map[string]int64) bool {
	for name, n := range demands {
		if got.row(name).Seen != n {
			return false
		}
	}
	return got.Cycle == cycle && strings.HasPrefix(table, fmt.Sprintf("cycle %d, capacity 40 per 1s, enforce", cycle))
}

// shown is a row of the table.
func (r shareRow) shown() string {
	return fmt.Sprint(r.Demand, r.Size, r.Borrowed, r.Lent, r.Seen, r.Admitted, r.Refused) + " no" // a client is established after an hour
}
