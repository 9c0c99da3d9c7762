package acceptance

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	client "github.com/headgate/headgate/client/lease"
	"github.com/headgate/headgate/internal/testkit/etcd"
)

// leaseMember is a server of the group eu. Its leases are short, and it divides 1 s after it became the master: static leases do
// not wait for those of an earlier master.
const leaseMember = `version: 1
server: {grpc: %q, http: off}
lease:
  election: {etcd: [%q], group: eu, ttl: 1s}
  length: 5s
  refresh: 200ms
  resources:
    - {match: "db/*", capacity: 500/s, safe: 10/s}
    - {match: "each/*", capacity: 500/s, algorithm: static}
`

// leaseSafe is the safe amount of each holder of a group.
const leaseSafe = 10_000

// leaseGroup is a group of two servers, with a program that uses both.
type leaseGroup struct {
	t       *testing.T
	etcd    *etcd.Server
	at      []string
	servers map[string]*instance
	program *client.Client
}

func newLeaseGroup(t *testing.T) *leaseGroup {
	t.Helper()
	g := &leaseGroup{t: t, etcd: etcd.Start(t), at: []string{freeAddress(t), freeAddress(t)}, servers: map[string]*instance{}}
	for _, at := range g.at {
		g.start(at)
	}
	g.program = g.client()
	return g
}

// start starts the server of an address.
func (g *leaseGroup) start(at string) {
	g.t.Helper()
	g.servers[at] = launchServer(g.t, file(g.t, fmt.Sprintf(leaseMember, at, g.etcd.Addr)+adminAnywhere))
}

func (g *leaseGroup) client() *client.Client {
	g.t.Helper()
	k, err := client.New(client.Config{Servers: g.at})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = k.Close() })
	return k
}

// signal sends a signal to a server.
func (g *leaseGroup) signal(at string, signal syscall.Signal) {
	g.t.Helper()
	if err := g.servers[at].command.Process.Signal(signal); err != nil {
		g.t.Fatal(err)
	}
}

// kill kills a server.
func (g *leaseGroup) kill(at string) {
	g.t.Helper()
	g.signal(at, syscall.SIGKILL)
	<-g.servers[at].ended
	delete(g.servers, at)
}

// masters gives the servers that say that they are the master. A paused server does not answer.
func (g *leaseGroup) masters(paused string) (all []string) {
	g.t.Helper()
	for at, i := range g.servers {
		if at != paused && metric(g.t, i, "headgate_lease_master") == 1 {
			all = append(all, at)
		}
	}
	return all
}

// master waits for a master, and gives the time until it was there.
func (g *leaseGroup) master(paused string) (at string, elapsed time.Duration) {
	g.t.Helper()
	start := time.Now()
	eventually(g.t, "a master", func() bool {
		all := g.masters(paused)
		if len(all) > 1 {
			g.t.Fatalf("the masters %v", all)
		}
		at = strings.Join(all, "")
		return at != ""
	})
	return at, time.Since(start)
}

// other gives the address of the other server.
func (g *leaseGroup) other(at string) string {
	if at == g.at[0] {
		return g.at[1]
	}
	return g.at[0]
}

// TestLeaseElection kills the master of a group: the other server takes over, and the program keeps its lease. ctl says who
// the master is.
func TestLeaseElection(t *testing.T) {
	t.Parallel()
	g := newLeaseGroup(t)
	first, _ := g.master("")
	lease := leaseOf(t, g.program, "each/a", 100_000)
	eventually(t, "the lease", func() bool { return lease.Amount() == 100_000 })
	follower := g.servers[g.other(first)]
	if _, out, _ := call(t, "ctl", "leases", "--admin", follower.Admin); !strings.Contains(out, fmt.Sprintf("the master is %q", first)) {
		t.Errorf("ctl of the other server says:\n%s", out)
	}
	g.kill(first)
	second, elapsed := g.master("")
	t.Logf("%v until the other server was the master", elapsed)
	until := lease.State().Until
	eventually(t, "the lease of the next master", func() bool {
		s := lease.State()
		if s.Amount != 100_000 || s.Lost {
			t.Fatalf("%+v during the take-over", s)
		}
		return s.Until.After(until.Add(time.Second))
	})
	if _, out, _ := call(t, "ctl", "leases", "--admin", g.servers[second].Admin); !strings.Contains(out, fmt.Sprintf("this server is the master, %q", second)) {
		t.Errorf("ctl of the next master says:\n%s", out)
	}
}
