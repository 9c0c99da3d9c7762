package redis

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"
)

// Slots is how many slots a cluster's keys are spread over.
const Slots = 16_384

// Cluster is a running Redis Cluster. Its methods fail the test when they cannot
// do what they say, and are to be called from the test's goroutine.
type Cluster struct {
	// Nodes are all its servers, masters of the beginning first. The order stays.
	Nodes []*Server

	tb testing.TB
}

// clusterPatience is how long a cluster may take to be made: redis-cli alone waits
// some seconds for its nodes to meet, and machines are busy.
const clusterPatience = 60 * time.Second

// StartCluster runs a cluster until the test ends: so many masters, at least
// three, each with so many replicas. A node that does not answer for a second counts
// as failed, and a replica takes its place; replicas stay with their masters, and
// take over however long they have been cut off. Settings go to every node, and may
// say otherwise. When it returns the cluster is healthy.
func StartCluster(tb testing.TB, masters, replicas int, settings ...string) *Cluster {
	tb.Helper()
	if masters < 3 || replicas < 0 {
		tb.Fatalf("a cluster of %d masters with %d replicas each: Redis wants 3 masters or more", masters, replicas)
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
	if _, err := c.Nodes[0].cli(clusterPatience, words...); err != nil {
		tb.Fatal(err)
	}
	c.WaitHealthy(clusterPatience)
	return c
}

// Addrs are the addresses of all nodes, those that are down as well.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, 0, len(c.Nodes))
	for _, node := range c.Nodes {
		addrs = append(addrs, node.Addr)
	}
	return addrs
}

// Kill ends a node as kill -9 does.
func (c *Cluster) Kill(node *Server) { node.Kill() }

// Restart starts a node again, without its keys. It still is who it was in the
// cluster, and learns from the others what it is now: WaitHealthy waits for that.
func (c *Cluster) Restart(node *Server) {
	c.tb.Helper()
	node.Restart()
}

// WaitHealthy waits until all nodes that run agree who has which slot, each slot is
// had by one that runs, no running node is held for failed by another, and every
// running replica is in step with its master. Nodes that are killed or paused do
// not count. It fails the test when that takes longer than wait.
func (c *Cluster) WaitHealthy(wait time.Duration) {
	c.tb.Helper()
	if err := poll(wait, c.Unhealthy); err != nil {
		c.tb.Fatalf("the cluster is not healthy: %v%s", err, ends(c.Nodes...))
	}
}

// Unhealthy says what WaitHealthy waits for, or nil.
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
			return fmt.Errorf("%s: %w", v.of.Addr, err)
		}
		switch known, err := c.epoch(v.of); {
		case err != nil:
			return fmt.Errorf("%s: %w", v.of.Addr, err)
		case i == 0:
			epoch = known
		case known != epoch:
			return fmt.Errorf("%s: knows of epoch %s: the first node of %s", v.of.Addr, known, epoch)
		}
		if err := c.behind(v.of); err != nil {
			return err
		}
	}
	return nil
}

// wrongIn looks through one node's eyes, and compares with the first one's owners.
func (c *Cluster) wrongIn(v view, first *[Slots]owner) error {
	for slot, owner := range v.owners() {
		switch {
		case owner.port == 0:
			return fmt.Errorf("knows of no master of slot %d", slot)
		case owner.port != first[slot].port:
			return fmt.Errorf("gives slot %d to %d: the first node gives it to %d", slot, owner.port, first[slot].port)
		case !c.runs(owner.port):
			return fmt.Errorf("takes slot %d for that of a node that does not run", slot)
		}
	}
	for _, m := range v.members {
		if c.runs(m.port) && !m.well {
			return fmt.Errorf("sees %s as %s, link %s", loopback(m.port), m.flags, m.link)
		}
	}
	return nil
}

// epoch gives the greatest configuration epoch that a node knows of. A master that does
// not know the greatest of all takes a slot with an epoch below that of the one that
// gave it away, whose last message then takes it back.
func (c *Cluster) epoch(node *Server) (string, error) {
	text, err := node.text("CLUSTER", "INFO")
	if err != nil {
		return "", err
	}
	f := fields(text)
	if f["cluster_state"] != "ok" || f["cluster_known_nodes"] != strconv.Itoa(len(c.Nodes)) {
		return "", fmt.Errorf("state %s, knows %s nodes of %d", f["cluster_state"], f["cluster_known_nodes"], len(c.Nodes))
	}
	return f["cluster_current_epoch"], nil
}

// behind tells that a node is a replica out of step.
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
