package redis

import (
	"slices"
	"strconv"
)

// owners queries all running nodes and returns the owners with the latest configuration epoch.
func (c *Cluster) owners() *[Slots]owner {
	c.tb.Helper()
	views, err := c.views()
	if err != nil {
		c.tb.Fatal(err)
	}
	var all [Slots]owner
	for _, v := range views {
		for slot, o := range v.owners() {
			if o.port != 0 && (all[slot].port == 0 || o.epoch > all[slot].epoch) {
				all[slot] = o
			}
		}
	}
	return &all
}

// MasterOf returns the owner of a slot, by the latest configuration epoch that a running node
// knows. The owner itself may be stopped.
func (c *Cluster) MasterOf(slot int) *Server {
	c.tb.Helper()
	if slot < 0 || slot >= Slots {
		c.tb.Fatalf("slot %d: want 0 to %d", slot, Slots-1)
	}
	node := c.byPort(c.owners()[slot].port)
	if node == nil {
		c.tb.Fatalf("no node has slot %d", slot)
	}
	return node
}

// Masters returns the nodes that have slots, in the order of Nodes.
func (c *Cluster) Masters() []*Server {
	c.tb.Helper()
	has := map[int]bool{}
	for _, o := range c.owners() {
		has[o.port] = true
	}
	return slices.DeleteFunc(slices.Clone(c.Nodes), func(node *Server) bool { return !has[node.port] })
}

// Replicas returns the running replicas of a node, as the replicas themselves report.
func (c *Cluster) Replicas(master *Server) []*Server {
	c.tb.Helper()
	var all []*Server
	for _, node := range c.Nodes {
		if !node.Running() {
			continue
		}
		f, err := replication(node)
		if err != nil {
			c.tb.Fatal(err)
		}
		if f["role"] == "slave" && f["master_port"] == strconv.Itoa(master.port) {
			all = append(all, node)
		}
	}
	return all
}

// SlotOf returns the slot of a key, as the servers compute it.
func (c *Cluster) SlotOf(key string) int {
	c.tb.Helper()
	for _, node := range c.Nodes {
		if !node.Running() {
			continue
		}
		if slot, ok := node.must("CLUSTER", "KEYSLOT", key).(int64); ok {
			return int(slot)
		}
	}
	c.tb.Fatal("no running node can compute a key's slot")
	return 0
}
