package acceptance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// bars are the bounds for a failover.
type bars struct {
	circumstances

	// decision bounds the 99.9th percentile of the decisions. A decision may take longer by late times
	// what requests without a store took in its seconds, which is the delay by a busy machine.
	decision time.Duration
	late     int
	// clean bounds the time from the replica's promotion to the last fallback.
	clean time.Duration
	// blamed bounds the openings of breakers of healthy nodes. A node that has just taken over can
	// be blamed while calls for its keys still go to the killed node.
	blamed int
	// strays bounds the fallbacks per 1,000 requests for healthy nodes, without those that are due to a busy machine as late says.
	strays int
}

// quick has bars for a busy machine; the soak tests use the strict bars. The killed server's
// machine refuses connections at once. So a long timeout slows nothing down, and a busy moment
// causes no fallback.
func quick() bars {
	const timeout = 400 * time.Millisecond
	return bars{
		circumstances: circumstances{timeout: timeout, keys: 50, rate: 500},
		decision:      timeout + 100*time.Millisecond, late: 5, clean: 5 * time.Second, blamed: 1,
	}
}

// nodesOf finds the node that counts each path, by the counter that changes after a request. The look for bans by operators, each second,
// changes a counter too: a request beside it is made again.
func (o *outage) nodesOf(paths []string, nodes []string) map[string]string {
	o.t.Helper()
	counted := func() map[string]float64 {
		all := map[string]float64{}
		for _, node := range nodes {
			all[node] = o.series("store_decisions_total", `node="`+node+`"`)
		}
		return all
	}
	eventually(o.t, "a look at the slots", func() bool { return o.series("store_up") == float64(len(nodes)) })
	nodeOfPath, before := map[string]string{}, counted()
	for _, path := range paths {
		eventually(o.t, "one node that counts "+path, func() bool {
			get(o.t, "http://"+o.i.Proxy+path)
			after, changed := counted(), []string(nil)
			for _, node := range nodes {
				if after[node] > before[node] {
					changed = append(changed, node)
				}
			}
			if before = after; len(changed) == 1 {
				nodeOfPath[path] = changed[0]
			}
			return len(changed) == 1
		})
	}
	return nodeOfPath
}

// TestClusterFailover: a master of a cluster is killed under load. Every request is answered in
// time. Fallbacks decide only for the keys of that master, until its replica takes over. Other
// keys stay exact, and its own keys exceed their limits by at most the lost units.
func TestClusterFailover(t *testing.T) { clusterFailover(t, quick()) }

func clusterFailover(t *testing.T, b bars) {
	t.Helper()
	cluster := testserver.StartCluster(t, 3, 1, "--cluster-require-full-coverage", "no")
	b.store = "redis+cluster://" + strings.Join(cluster.Addrs(), ",")
	o := b.open(t)
	var masters []string
	for _, node := range cluster.Masters() {
		masters = append(masters, node.Addr)
	}
	nodeOfPath := o.nodesOf(b.paths(), masters)
	o.begin(b.circumstances)
	victim := cluster.Masters()[1]
	slot := 0
	for cluster.MasterOf(slot) != victim {
		slot += 100
	}
	killed := time.Now()
	cluster.Kill(victim)
	eventually(t, "the dead node given up", func() bool {
		_, text := get(t, "http://"+o.i.Health+"/metrics")
		return strings.Contains(text, `headgate_store_up{node="`+victim.Addr+`"} 0`)
	})
	noticed := time.Since(killed)
	eventually(t, "a promotion", func() bool { return cluster.MasterOf(slot) != victim })
	promoted := time.Now()
	o.calm()
	o.untilUsed()
	up, nodes := o.series("store_up"), o.series("store_given_up_total")
	l := o.end()
	if up != 3 {
		t.Errorf("%v nodes are in use at the end, want 3", up)
	}
	lost := l.within(func(path string) bool { return nodeOfPath[path] == victim.Addr })
	strays := l.strays(func(path string) bool { return nodeOfPath[path] != victim.Addr }, b.timeout, b.late)
	if strays > b.strays*len(l.shots)/1000 {
		t.Errorf("fallbacks decided %d times for keys of healthy nodes, want %d in 1000 requests", strays, b.strays)
	}
	l.bounded(b, promoted)
	gone, blamed, back := l.lines(givenUp, `"server":"`+victim.Addr), l.lines(givenUp)-1, l.lines(isBack)
	if gone != 1 || blamed > b.blamed || back < blamed || back > blamed+1 {
		t.Errorf("log lines: %d openings of the breaker of %s, %d of other breakers, %d closings: want 1, at most %d, and as many or one more\n%s",
			gone, victim.Addr, blamed, back, b.blamed, l.log)
	}
	l.tell(lost, fmt.Sprintf("breaker open after %v, promotion after %v, the last fallback %v later; %v open breakers at the end",
		noticed, promoted.Sub(killed), l.lastFall.Sub(promoted), nodes))
}

// bounded checks the times.
func (l *ledger) bounded(b bars, promoted time.Time) {
	l.t.Helper()
	if fell, _, _ := l.fallen(); fell == 0 {
		l.t.Error("no fallback has decided")
	}
	if n, total := l.slow(b.decision, b.late), len(l.all); n > total/1000 {
		l.t.Errorf("%d of %d decisions took longer than %v and %d times what requests without a store took: want 1 in 1000; p99.9 is %v",
			n, total, b.decision, b.late, quantile(l.durations, 0.999))
	}
	if late := l.lastFall.Sub(promoted); late > b.clean {
		l.t.Errorf("a fallback decided %v after the promotion, want clean after %v", late, b.clean)
	}
}

// TestSentinelFailover: the master is killed under load. Fallbacks decide for all keys until the
// sentinels have promoted a replica.
func TestSentinelFailover(t *testing.T) { sentinelFailover(t, quick()) }

func sentinelFailover(t *testing.T, b bars) {
	t.Helper()
	s := testserver.StartSentinel(t, 2, 3)
	b.store = "redis+sentinel://" + strings.Join(s.Addrs(), ",") + "/" + s.Name
	o := b.open(t)
	o.begin(b.circumstances)
	killed := time.Now()
	old := s.KillMaster()
	o.fallsBack()
	s.WaitMaster(old.Addr, 30*time.Second)
	promoted := time.Now()
	o.calm()
	o.untilUsed()
	l := o.end()
	lost := l.within(func(string) bool { return true })
	l.bounded(b, promoted)
	l.changes(s.Name)
	l.tell(lost, fmt.Sprintf("another master %v after the kill, the last fallback %v later", promoted.Sub(killed), l.lastFall.Sub(promoted)))
}
