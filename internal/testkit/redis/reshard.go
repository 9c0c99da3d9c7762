package redis

import (
	"strconv"
	"time"
)

// Move is a slot that moves from one master to another. Until Finish, clients get ASK for keys
// that have moved, and TRYAGAIN for commands with several keys of which some have moved.
type Move struct {
	// Slot is the slot that moves. From and To are masters.
	Slot     int
	From, To *Server

	c *Cluster
}

// MoveSlot moves a slot with all its keys. Clients may use the slot meanwhile.
func (c *Cluster) MoveSlot(slot int, from, to *Server) {
	c.tb.Helper()
	m := c.BeginMove(slot, from, to)
	m.Keys(-1)
	m.Finish()
}

// BeginMove marks a slot as moving on both masters. It moves no key.
func (c *Cluster) BeginMove(slot int, from, to *Server) *Move {
	c.tb.Helper()
	m := &Move{Slot: slot, From: from, To: to, c: c}
	m.setSlot(to, "IMPORTING", c.id(from))
	m.setSlot(from, "MIGRATING", c.id(to))
	return m
}

func (m *Move) setSlot(node *Server, words ...string) {
	m.c.tb.Helper()
	node.must(append([]string{"CLUSTER", "SETSLOT", strconv.Itoa(m.Slot)}, words...)...)
}

// Keys moves at most n keys, or all keys when n is negative. It returns the number of moved keys.
func (m *Move) Keys(n int) int {
	m.c.tb.Helper()
	moved := 0
	for n < 0 || moved < n {
		batch := 100
		if n >= 0 {
			batch = min(batch, n-moved)
		}
		reply := m.From.must("CLUSTER", "GETKEYSINSLOT", strconv.Itoa(m.Slot), strconv.Itoa(batch))
		names, ok := reply.([]any)
		if !ok || len(names) == 0 {
			return moved
		}
		words := []string{"MIGRATE", "127.0.0.1", strconv.Itoa(m.To.port), "", "0", "5000", "KEYS"}
		for _, name := range names {
			if name, ok := name.(string); ok {
				words = append(words, name)
			}
		}
		m.From.must(words...)
		moved += len(names)
	}
	return moved
}

// Finish gives the slot to its new master and waits until all nodes know. The old master refuses
// if it still has keys of the slot.
func (m *Move) Finish() {
	m.c.tb.Helper()
	id := m.c.id(m.To)
	m.setSlot(m.To, "NODE", id)
	m.setSlot(m.From, "NODE", id)
	for _, node := range m.c.Masters() {
		if node != m.To && node != m.From && node.Running() {
			m.setSlot(node, "NODE", id)
		}
	}
	m.c.WaitHealthy(30 * time.Second)
}

// Rollback moves all keys back, including the keys that clients have created meanwhile. It then
// ends the move on both masters. The slot stays at its old master.
func (m *Move) Rollback() {
	m.c.tb.Helper()
	m.setSlot(m.From, "STABLE")
	back := &Move{Slot: m.Slot, From: m.To, To: m.From, c: m.c}
	back.Keys(-1)
	m.setSlot(m.To, "STABLE")
}

func (c *Cluster) id(node *Server) string {
	c.tb.Helper()
	id, err := node.text("CLUSTER", "MYID")
	if err != nil {
		c.tb.Fatal(err)
	}
	return id
}
