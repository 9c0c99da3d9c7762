package redis

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/process"
)

// Slots is the number of hash slots of a cluster.
const Slots = 16_384

// Cluster is a running Redis Cluster. Its methods fail the test when they cannot do their work.
// Call them from the test's goroutine.
type Cluster struct {
	// Nodes are all servers, with the first masters first. The order never changes.
	Nodes []*Server

	tb testing.TB
}

// clusterTimeout bounds the creation of a cluster. redis-cli alone waits some seconds until
// the nodes have met, and the machine may be busy.
const clusterTimeout = 60 * time.Second

// StartCluster runs a healthy cluster until the test ends. It has at least three masters, each
// with the given number of replicas.
//
// A node that does not answer for a second counts as failed, and a replica takes over, however
// long it was cut off. Replicas never move to another master. Settings apply to every node and
// override these defaults.
func StartCluster(tb testing.TB, masters, replicas int, settings ...string) *Cluster {
	tb.Helper()
	if masters < 3 || replicas < 0 {
		tb.Fatalf("a cluster of %d masters with %d replicas each: Redis needs at least 3 masters", masters, replicas)
	}
	c := &Cluster{tb: tb}
	for range masters * (1 + replicas) {
		c.Nodes = append(c.Nodes, start(tb, access{}, func(dir string, port int) []string {
			return append(common(dir,
				"--port", strconv.Itoa(port), "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
				"--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0",
				"--cluster-allow-replica-migration", "no", "--repl-ping-replica-period", "1",
			), settings...)
		}))
	}
	words := append([]string{"--cluster", "create"}, c.Addrs()...)
	words = append(words, "--cluster-replicas", strconv.Itoa(replicas), "--cluster-yes")
	if _, err := c.Nodes[0].cli(clusterTimeout, words...); err != nil {
		tb.Fatal(err)
	}
	c.WaitHealthy(clusterTimeout)
	return c
}

// Addrs returns the addresses of all nodes, including stopped nodes.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, 0, len(c.Nodes))
	for _, node := range c.Nodes {
		addrs = append(addrs, node.Addr)
	}
	return addrs
}

// Kill ends a node as kill -9 does.
func (c *Cluster) Kill(node *Server) { node.Kill() }

// Restart starts a node again, without its keys. The node keeps its identity in the cluster and
// learns its new role from the other nodes. WaitHealthy waits for that.
func (c *Cluster) Restart(node *Server) {
	c.tb.Helper()
	node.Restart()
}

// WaitHealthy waits until the running nodes agree on the master of each slot, and that master
// runs. No running node may count as failed, and every running replica must be in sync. Killed
// and paused nodes are ignored. WaitHealthy fails the test after the timeout.
func (c *Cluster) WaitHealthy(wait time.Duration) {
	c.tb.Helper()
	if err := poll(wait, c.Unhealthy); err != nil {
		c.tb.Fatalf("the cluster is not healthy: %v%s", err, ends(c.Nodes...))
	}
}

// Unhealthy returns the reason why the cluster is not healthy, or nil.
func (c *Cluster) Unhealthy() error {
	views, err := c.views()
	if err != nil {
		return err
	}
	if len(views) == 0 {
		return errors.New("no node runs")
	}
	first, epoch := views[0].owners(), ""
	for i, v := range views {
		if err := c.wrongIn(v, first); err != nil {
			return fmt.Errorf("%s: %w", v.server.Addr, err)
		}
		switch known, err := c.epoch(v.server); {
		case err != nil:
			return fmt.Errorf("%s: %w", v.server.Addr, err)
		case i == 0:
			epoch = known
		case known != epoch:
			return fmt.Errorf("%s: the current epoch is %s, and %s at the first node", v.server.Addr, known, epoch)
		}
		if err := c.behind(v.server); err != nil {
			return err
		}
	}
	return nil
}

// wrongIn checks the view of one node and compares its slots with the first node's slots.
func (c *Cluster) wrongIn(v view, first *[Slots]owner) error {
	for slot, owner := range v.owners() {
		switch {
		case owner.port == 0:
			return fmt.Errorf("knows no master for slot %d", slot)
		case owner.port != first[slot].port:
			return fmt.Errorf("slot %d belongs to port %d, and to port %d at the first node", slot, owner.port, first[slot].port)
		case !c.runs(owner.port):
			return fmt.Errorf("slot %d belongs to a node that does not run", slot)
		}
	}
	for _, m := range v.members {
		if c.runs(m.port) && !m.healthy {
			return fmt.Errorf("%s has the flags %s, link %s", process.Loopback(m.port), m.flags, m.link)
		}
	}
	return nil
}

// epoch returns the greatest configuration epoch that a node knows. All nodes must know the same
// epoch before a slot moves. Otherwise the new master may take the slot with an older epoch than
// the old master has, and the old master's next message takes the slot back.
func (c *Cluster) epoch(node *Server) (string, error) {
	text, err := node.text("CLUSTER", "INFO")
	if err != nil {
		return "", err
	}
	f := fields(text)
	if f["cluster_state"] != "ok" || f["cluster_known_nodes"] != strconv.Itoa(len(c.Nodes)) {
		return "", fmt.Errorf("state %s, %s known nodes of %d", f["cluster_state"], f["cluster_known_nodes"], len(c.Nodes))
	}
	return f["cluster_current_epoch"], nil
}

// behind returns an error if the node is a replica that is not in sync.
func (c *Cluster) behind(node *Server) error {
	f, err := replication(node)
	if err != nil {
		return err
	}
	if f["role"] == "slave" && (f["master_link_status"] != "up" || f["master_sync_in_progress"] != "0") {
		return fmt.Errorf("%s: its link to its master is %s", node.Addr, f["master_link_status"])
	}
	return nil
}

func (c *Cluster) runs(port int) bool {
	node := c.byPort(port)
	return node != nil && node.Running()
}

func (c *Cluster) byPort(port int) *Server {
	for _, node := range c.Nodes {
		if node.port == port {
			return node
		}
	}
	return nil
}
