//go:build soak

package acceptance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// TestSoakClocksApart: instances with monotonic clocks that differ by 30 s and by 9 hours share
// one limit, with and without prefetch. By the server's clock, no window has more units. The
// clocks belong to time namespaces, which need root. The wall clocks are those of one machine.
func TestSoakClocksApart(t *testing.T) {
	unshare := tool(t, "unshare", "util-linux")
	server := testserver.Start(t)
	for _, prefetch := range []string{"off", "auto"} {
		t.Run("prefetch "+prefetch, func(t *testing.T) {
			server.CLI("FLUSHALL")
			s := sharing{algorithm: "sliding_log", limit: "500/1s", count: 500, cost: 1, per: time.Second, prefetch: prefetch}
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
			t.Cleanup(upstream.Close)
			f := &fleet{}
			for _, ahead := range []string{"0", "30", "32400"} {
				log := filepath.Join(t.TempDir(), "access.log")
				configuration := fmt.Sprintf(sharedConfiguration, "redis://"+server.Addr, prefetch, log, s.algorithm, s.limit, s.cost)
				path := file(t, fmt.Sprintf(configuration, upstream.URL)+adminAnywhere)
				command := exec.Command(unshare, "--time", "--monotonic", ahead, "--boottime", ahead, binary, "proxy", "--config", path)
				f.logs, f.instances = append(f.logs, log), append(f.instances, serve(t, path, command))
			}
			f.hammer(t, len(f.instances), 5*s.per)
			at := f.admitted(t)
			most := s.most(at)
			if most > s.count {
				t.Errorf("%d units in one window of %s", most, s.limit)
			}
			t.Logf("%d requests passed, at most %d in one window of %s; %.4f of it was used", len(at), most, s.limit, s.used(t, at))
		})
	}
}

// TestSoakStartWithoutCluster: an instance starts while all nodes of its cluster, or all
// sentinels, are down. Its fallbacks decide until the nodes are up.
func TestSoakStartWithoutCluster(t *testing.T) {
	c := circumstances{timeout: 300 * time.Millisecond, keys: 10, rate: 150}
	t.Run("cluster", func(t *testing.T) {
		cluster := testserver.StartCluster(t, 3, 0)
		c.store = "redis+cluster://" + strings.Join(cluster.Addrs(), ",")
		c.startsWithout(t, cluster.Nodes, func() { cluster.WaitHealthy(30 * time.Second) })
	})
	t.Run("sentinels", func(t *testing.T) {
		s := testserver.StartSentinel(t, 1, 3)
		c.store = "redis+sentinel://" + strings.Join(s.Addrs(), ",") + "/" + s.Name
		c.startsWithout(t, s.Sentinels, func() {})
	})
}

func (c circumstances) startsWithout(t *testing.T, servers []*testserver.Server, well func()) {
	t.Helper()
	for _, server := range servers {
		server.Kill()
	}
	o := c.open(t)
	o.begin(c)
	o.fallsBack()
	for _, server := range servers {
		server.Restart()
	}
	well()
	came := time.Now()
	eventually(t, "a decision by the store", func() bool { return o.series("store_decisions_total") > 0 })
	o.calm()
	o.untilUsed()
	l := o.end()
	l.within(none)
	if gone, back := l.lines(givenUp), l.lines(isBack); gone == 0 || gone != back {
		t.Errorf("%d log lines about an unreachable server, and %d about its recovery: want as many\n%s", gone, back, l.log)
	}
	l.tell(0, fmt.Sprintf("the last fallback came %v after the recovery", l.lastFall.Sub(came)))
}

// TestSoakStopWhileStoreHangs: an instance with a hanging store stops within its
// shutdown_timeout.
func TestSoakStopWhileStoreHangs(t *testing.T) {
	t.Parallel()
	stopWhileStoreHangs(t, 500*time.Millisecond)
}
