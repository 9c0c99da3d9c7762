package redis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// member is a line of CLUSTER NODES: one node's information about another node.
type member struct {
	id, flags, master, link string
	port                    int
	epoch                   int64
	healthy                 bool // Connected, and without a flag for failed, suspected or new.
	slots                   [][2]int
}

// view is one node's information about all nodes.
type view struct {
	server  *Server
	members []member
}

// owner is the owner of a slot in a view. Port 0 means no owner.
type owner struct {
	port  int
	epoch int64
}

// views queries all running nodes.
func (c *Cluster) views() ([]view, error) {
	var views []view
	for _, node := range c.Nodes {
		if !node.Running() {
			continue
		}
		text, err := node.text("CLUSTER", "NODES")
		if err != nil {
			return nil, err
		}
		v := view{server: node}
		for line := range strings.Lines(text) {
			m, err := parseMember(line)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", node.Addr, err)
			}
			v.members = append(v.members, m)
		}
		views = append(views, v)
	}
	return views, nil
}

// parseMember parses "id ip:port@bus flags master sent received epoch link slot…".
func parseMember(line string) (member, error) {
	f := strings.Fields(line)
	if len(f) < 8 {
		return member{}, fmt.Errorf("%q is no line of CLUSTER NODES", line)
	}
	m := member{id: f[0], flags: f[2], master: f[3], link: f[7]}
	addr, _, _ := strings.Cut(f[1], "@")
	if port, err := portOf(addr); err == nil {
		m.port = port // A node that has never been met has no port.
	}
	epoch, err := strconv.ParseInt(f[6], 10, 64)
	if err != nil {
		return member{}, fmt.Errorf("%q has no epoch", line)
	}
	m.epoch = epoch
	flags := strings.Split(m.flags, ",")
	m.healthy = m.link == "connected" && !slices.ContainsFunc(flags, func(flag string) bool {
		return slices.Contains([]string{"fail", "fail?", "handshake", "noaddr"}, flag)
	})
	for _, word := range f[8:] {
		if strings.HasPrefix(word, "[") {
			continue // A moving slot. Another word lists the slot under its owner.
		}
		m.slots = append(m.slots, parseRange(word))
	}
	return m, nil
}

// parseRange parses "5" or "5-9". For other words it returns an empty range.
func parseRange(word string) [2]int {
	low, high, ranged := strings.Cut(word, "-")
	from, err := strconv.Atoi(low)
	to := from
	if ranged && err == nil {
		to, err = strconv.Atoi(high)
	}
	if err != nil || from < 0 || to >= Slots {
		return [2]int{0, -1}
	}
	return [2]int{from, to}
}

func (v view) owners() *[Slots]owner {
	var all [Slots]owner
	for _, m := range v.members {
		for _, r := range m.slots {
			for slot := r[0]; slot <= r[1]; slot++ {
				all[slot] = owner{m.port, m.epoch}
			}
		}
	}
	return &all
}
