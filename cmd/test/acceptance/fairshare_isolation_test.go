package acceptance

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"
)

// crowdConfiguration takes the file of the access log, the settings of fair share, and the
// upstream.
const crowdConfiguration = `version: 1
max_memory: 16MiB
log: {decisions: none, access: json, access_file: "%s"}
rules: []
proxy:
  listen: "127.0.0.1:0"
  upstream: "%%s"
fair_share: {client: "header:X-Client-Id", %s}
`

// crowdCapacity is the capacity of a crowd in a cycle of a second.
const crowdCapacity = 2000

// crowded is an instance with all of its decisions in an access log.
type crowded struct {
	*instance

	log    string
	served *counted
}

func startCrowded(t *testing.T, settings string) *crowded {
	t.Helper()
	c := &crowded{log: filepath.Join(t.TempDir(), "access.log"), served: &counted{}}
	behind := httptest.NewServer(c.served)
	t.Cleanup(behind.Close)
	c.instance = start(t, fmt.Sprintf(crowdConfiguration, c.log, settings), behind.URL)
	return c
}

// end ends the instance and gives its decisions. Their number equals that of the answers, and
// the number of allowed decisions equals that of the service's requests.
func (c *crowded) end(t *testing.T, l *traffic) []decided {
	t.Helper()
	if lost := metric(t, c.instance, "headgate_access_log_dropped_total"); lost != 0 {
		t.Fatalf("%v lines of the access log are lost: it says nothing then", lost)
	}
	c.stop()
	all := readDecided(t, c.log)
	passed := 0
	for _, d := range all {
		if d.passed {
			passed++
		}
	}
	answered, refused := l.answered(t)
	if len(all) != answered || passed != answered-refused || int64(passed) != c.served.n.Load() {
		t.Errorf("%d decisions, %d passed; %d answers, %d refusals; the service was asked %d times",
			len(all), passed, answered, refused, c.served.n.Load())
	}
	return all
}

// isolation has owners that each demand four fifths of their default shares on average, and a
// client that floods.
type isolation struct {
	owners int
	flood  float64 // in a cycle
	// reclaim is the setting.
	reclaim string
	cycles  int
}

func (c isolation) String() string {
	return fmt.Sprintf("%d owners and a flood of %.0f, %s", c.owners, c.flood, c.reclaim)
}

// fair is the default share of each client.
func (c isolation) fair() int { return crowdCapacity / (c.owners + 1) }

// settings let all clients get shares in the first cycle.
func (c isolation) settings() string {
	return fmt.Sprintf("capacity: %d, cycle: 1s, new_clients_per_cycle: 1000, reclaim: %s", crowdCapacity, c.reclaim)
}

// load gives the owners' stream and the stream of the flood, which has its own address.
func (c isolation) load(owners, flood string) *traffic {
	return &traffic{cycle: time.Second, cycles: c.cycles, streams: []*stream{
		{to: owners, connections: 32, rate: steadily(0.8 * float64(c.owners*c.fair())), request: anyOf("owner", c.owners)},
		{to: flood, connections: 16, rate: steadily(c.flood), request: always("flood")},
	}}
}

// run sends the load and judges the decisions. It fails when a cycle admits more than the
// capacity.
func (c isolation) run(t *testing.T) (*judgement, *traffic) {
	t.Helper()
	i := startCrowded(t, c.settings())
	l := c.load(i.Proxy, i.Proxy)
	l.run(t)
	j := sharedOut{cycle: time.Second, capacity: crowdCapacity, fair: c.fair(), warm: 2, cycles: c.cycles}.judge(i.end(t, l))
	all, refused := l.answered(t)
	t.Logf("%v: %d requests, %d refused; %v", c, all, refused, j)
	if j.most > crowdCapacity {
		t.Errorf("%v: a cycle admitted %d of %d", c, j.most, crowdCapacity)
	}
	return j, l
}

// TestOwnersAreIsolated floods a service while the owners use four fifths of their shares. The
// owners are served, and no cycle admits more than the capacity. The bars are lower than in
// `make soak`, because the machine may be busy.
func TestOwnersAreIsolated(t *testing.T) {
	for _, c := range []isolation{
		{owners: 3, flood: 3000, reclaim: "at_once", cycles: 8},
		{owners: 199, flood: 3000, reclaim: "at_once", cycles: 5},
		{owners: 3, flood: 3000, reclaim: "next_cycle", cycles: 3},
	} {
		j, _ := c.run(t)
		if c.reclaim != "at_once" {
			continue
		}
		if j.refusals()*1000 > j.within || j.unexcused > 1 || float64(j.used) < 0.95*float64(j.could) {
			t.Errorf("%v: want at most 1 in 1,000 of the owners' requests refused, and 0.95 used: %v", c, j)
		}
	}
}
