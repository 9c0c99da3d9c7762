package redis

import (
	"strconv"
	"time"
)

// Move is a slot on its way from one master to another. Until Finish clients are
// answered ASK for keys that have gone, and TRYAGAIN for several that are not all there.
type Move struct {
	// Slot is what moves, From and To are masters.
	Slot     int
	From, To *Server

	c *Cluster
}

// MoveSlot moves a slot with all its keys, while clients may go on.
func (c *Cluster) MoveSlot(slot int, from, to *Server) {
	c.tb.Helper()
	m := c.BeginMove(slot, from, to)
	m.Keys(-1)
	m.Finish()
}

// BeginMove opens a slot on both sides, and moves nothing yet.
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

// Keys moves as many keys as are there, at most n, all when n is negative, and
// gives how many that were.
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

// Finish gives the slot to its new master, and waits until all nodes know. Keys
// that have not been moved must not be there any more: the old master refuses.
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

// Undo moves the keys that have gone back, those that clients have made meanwhile
// as well, and closes the slot on both sides: it stays where it was.
func (m *Move) Undo() {
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
