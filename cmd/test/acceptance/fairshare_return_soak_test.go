//go:build soak

package acceptance

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// comeback has a lender that is idle for ten cycles and then demands its full default share for
// two, again and again. Beside it are two owners and a flood of twenty times its share.
type comeback struct {
	reclaim string
	cycle   time.Duration
	rounds  int
}

const (
	comebackIdle   = 10 // in cycles
	comebackPeriod = comebackIdle + 2
	comebackPart   = 10 // the early part of a cycle: 100 ms of a second
)

// returned counts the lender's requests within its share, and those served: in the first tenth
// of a cycle, in the whole cycle, and in the second cycle.
type returned struct{ asked, served [3]int }

func (r *returned) part(n int) float64 { return float64(r.served[n]) / float64(max(1, r.asked[n])) }

// TestSoakCapacityComesBack measures what a returning lender gets, and the effect on the other
// owners.
func TestSoakCapacityComesBack(t *testing.T) {
	busy(t)
	var table strings.Builder
	for _, c := range []comeback{
		{"at_once", time.Second, 8},
		{"next_cycle", time.Second, 8},
		{"at_once", 200 * time.Millisecond, 30},
		{"next_cycle", 200 * time.Millisecond, 30},
	} {
		r, j := c.run(t)
		fmt.Fprintf(&table, "| %s, cycle %v | %.2f %% | %.2f %% | %.2f %% | %d of %d |\n", c.reclaim, c.cycle,
			100*r.part(0), 100*r.part(1), 100*r.part(2), j.refused, j.within)
		if c.reclaim != "at_once" {
			continue
		}
		if r.part(0) < 0.99 || r.part(1) < 0.99 || r.part(2) < 0.99 {
			t.Errorf("%+v: %+v is served: want all of what is within the share", c, r)
		}
		if j.refusals()*1000 > j.within {
			t.Errorf("%+v: it costs the others %d of %d requests within their shares, want 1 in 1,000", c, j.refusals(), j.within)
		}
	}
	t.Logf("\n| reclaim | served in the first tenth of a cycle | in the first cycle | in the second | refused of the others |\n|---|---|---|---|---|\n%s", table.String())
}

func (c comeback) run(t *testing.T) (*returned, *judgement) {
	t.Helper()
	capacity := int(crowdCapacity * c.cycle / time.Second)
	fair := capacity / 4
	i := &crowded{log: filepath.Join(t.TempDir(), "access.log"), served: &counted{}}
	behind := httptest.NewServer(i.served)
	defer behind.Close()
	settings := fmt.Sprintf("capacity: %d, cycle: %v, reclaim: %s, weights: {back: 1, flood: 1, owner-000: 1, owner-001: 1}", capacity, c.cycle, c.reclaim)
	i.instance = start(t, fmt.Sprintf(crowdConfiguration, i.log, settings), behind.URL)
	l := &traffic{cycle: c.cycle, cycles: c.rounds * comebackPeriod, streams: []*stream{
		{to: i.Proxy, connections: 32, rate: steadily(2 * 0.8 * float64(fair)), request: anyOf("owner", 2)},
		{to: i.Proxy, connections: 16, rate: steadily(20 * float64(fair)), request: always("flood")},
		{to: i.Proxy, connections: 32, request: always("back"), rate: func(cycle int) float64 {
			if cycle%comebackPeriod < comebackIdle {
				return 0
			}
			return float64(fair)
		}},
	}}
	l.run(t)
	all := i.end(t, l)
	j := sharedOut{cycle: c.cycle, capacity: capacity, fair: fair, warm: 2, cycles: l.cycles}.judge(all)
	t.Logf("%+v: %v", c, j)
	if j.most > capacity {
		t.Errorf("%+v: a cycle admitted %d of %d", c, j.most, capacity)
	}
	return c.returns(all, l, fair), j
}

// returns reads the lender's requests in the cycles after its return.
func (c comeback) returns(all []decided, l *traffic, fair int) *returned {
	r := &returned{}
	asked := map[int64]int{}
	first := l.begin.UnixMicro() / c.cycle.Microseconds()
	for _, d := range all {
		if d.client != "back" {
			continue
		}
		cycle := d.at/c.cycle.Microseconds() - first
		nth := int(cycle%comebackPeriod) - comebackIdle // 0 is the first, 1 the second
		asked[cycle]++
		if asked[cycle] > fair || nth < 0 {
			continue
		}
		r.note(1+nth, d.passed)
		if nth == 0 && d.at%c.cycle.Microseconds() < c.cycle.Microseconds()/comebackPart {
			r.note(0, d.passed)
		}
	}
	return r
}

func (r *returned) note(n int, passed bool) {
	r.asked[n]++
	if passed {
		r.served[n]++
	}
}
