package history

import (
	"cmp"
	"slices"
	"time"

	"github.com/headgate/headgate/cmd/internal/console/history/ring"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/sorting"
	"github.com/headgate/headgate/rule"
)

// throttledNow is what the throttle did in a second, and its present state.
type throttledNow struct {
	on      bool
	mode    guard.Mode
	load    throttler.Load
	stats   throttler.Stats
	refused uint64
}

// sampleThrottle reads the throttle, if it is on.
func (s *sampler) sampleThrottle(c *config.Config) {
	stage := s.from.Throttle()
	if c.Throttle == nil || c.Throttle.Mode == guard.Off || stage == nil {
		s.throttled = throttledNow{}
		return
	}
	now := throttledNow{on: true, mode: c.Throttle.Mode}
	now.load, now.stats = stage.Load()
	t := &s.totals.throttle
	s.set(t.inFlight, int64(now.load.InFlight))
	s.set(t.concurrency, int64(now.load.Limit))
	s.set(t.queuedWork, now.load.QueuedWork.Milliseconds())
	s.counted(t.waited, now.stats.Waited)
	s.counted(t.waitMillis, uint64(max(now.stats.WaitTime.Milliseconds(), 0)))
	for class := range t.queued {
		s.set(t.queued[class], int64(now.load.Queued[class]))
		n := uint64(0)
		for reason := range now.stats.Refused {
			n += now.stats.Refused[reason][class]
		}
		now.refused += s.counted(t.refused[class], n)
	}
	for reason, classes := range now.stats.Refused {
		n := uint64(0)
		for _, refusals := range classes {
			n += refusals
		}
		s.counted(t.reasons[reason], n)
	}
	s.throttled = now
}

// correct replaces the refusals that the report knows by those of the throttle, which also refuses requests that have waited.
func (t *throttledNow) correct(mode guard.Mode, d *deltas) {
	if !t.on {
		return
	}
	if mode == guard.Shadow {
		d.counts[wouldRefuse] = t.refused
		return
	}
	all := d.counts[passed] + d.counts[refused]
	d.counts[refused] = t.refused
	d.counts[passed] = all - min(all, t.refused)
}

// clients are those of fair share.
type clients struct {
	on    bool
	all   []*client // by name
	cycle time.Duration
}

// client is a client of fair share.
type client struct {
	name string
	// shown is the name for callers that may not administer, in the form of shownBy.
	shown   string
	shownBy *rule.KeyNames
	now     fairshare.Share
	last    [clientCounts]uint64
	series  [clientCounts]ring.Series
	share   ring.Series
	window  [clientCounts]window
	run     episode
}

func newClient(name string) *client {
	c := &client{name: name, share: ring.Series{Name: ring.Name{Prefix: "client", Of: name, Metric: "default"}, Gauge: true}}
	for i, metric := range clientMetricNames {
		c.series[i].Name = ring.Name{Prefix: "client", Of: name, Metric: metric}
	}
	return c
}

// sampleShares reads the shares of all clients, if fair share is on.
func (s *sampler) sampleShares() {
	now, on := s.from.Shares()
	if !on {
		s.clients = clients{}
		return
	}
	known := s.clients.on
	s.clients.on, s.clients.cycle = true, now.Length
	s.set(s.totals.shareCapacity, now.Capacity)
	s.clients.follow(now.Clients)
	for i, c := range s.clients.all {
		if c.now = now.Clients[i]; !known { // Fair share was off for a time, and its counters are older.
			c.last = c.counters()
			continue
		}
		s.sampleClient(c)
	}
}

// follow takes the list of clients. Both lists are in the order of names.
func (c *clients) follow(now []fairshare.Share) {
	same := func(known *client, share fairshare.Share) bool { return known.name == share.Client }
	if slices.EqualFunc(c.all, now, same) {
		return
	}
	next, rest := make([]*client, len(now)), c.all
	for i := range now {
		for len(rest) > 0 && rest[0].name < now[i].Client {
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0].name == now[i].Client {
			next[i] = rest[0]
		} else {
			next[i] = newClient(now[i].Client)
		}
	}
	c.all = next
}

func (c *client) counters() [clientCounts]uint64 {
	return [clientCounts]uint64{c.now.AdmittedCounter, c.now.RefusedTotal}
}

func (s *sampler) sampleClient(c *client) {
	for i, n := range c.counters() {
		n = since(n, &c.last[i])
		if n == 0 {
			continue
		}
		c.window[i].add(s.part, n)
		s.count(&c.series[i], n)
		switch i {
		case admitted:
			s.add(s.totals.shareAdmitted, n)
		case clientRefused:
			c.run.refused(s.end)
		}
	}
	if s.kept {
		s.ring.Set(&c.share, uint64(max(c.now.Default, 0)))
	}
}

// The counts of a server of the store, in the order of nodeMetricNames.
const (
	nodeCalls = iota
	nodeFailed
	nodeCounts
)

var nodeMetricNames = [nodeCounts]string{"calls", "failed"}

// node is a server of a shared store.
type node struct {
	now     report.Node
	last    [nodeCounts]uint64
	series  [nodeCounts]ring.Series
	waiting ring.Series
	window  [nodeCounts]window
}

func newNode(name string) *node {
	n := &node{waiting: ring.Series{Name: ring.Name{Prefix: "store", Of: name, Metric: "waiting"}, Gauge: true}}
	for i, metric := range nodeMetricNames {
		n.series[i].Name = ring.Name{Prefix: "store", Of: name, Metric: metric}
	}
	return n
}

// sampleStore reads the servers of the store.
func (s *sampler) sampleStore() {
	now := s.from.Store().Nodes
	sorting.Func(now, func(a, b report.Node) int { return cmp.Compare(a.Name, b.Name) })
	next := make([]*node, len(now))
	for i := range now {
		at, known := slices.BinarySearchFunc(s.nodes, now[i].Name, func(n *node, name string) int { return cmp.Compare(n.now.Name, name) })
		if known {
			next[i] = s.nodes[at]
		} else {
			next[i] = newNode(now[i].Name)
		}
		s.sampleNode(next[i], &now[i])
	}
	s.nodes = next
}

func (s *sampler) sampleNode(n *node, now *report.Node) {
	n.now = *now
	for i, count := range [nodeCounts]uint64{cmp.Or(now.Calls, now.Decisions), now.Failures} {
		if count = since(count, &n.last[i]); count > 0 {
			n.window[i].add(s.part, count)
			s.count(&n.series[i], count)
		}
	}
	if s.kept {
		s.ring.Set(&n.waiting, uint64(max(now.Waiting, 0)))
	}
}
