package memcached

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// The waits between two lookups of the servers.
const (
	firstLookupWait = 50 * time.Millisecond
	maxLookupWait   = 5 * time.Second
)

// lookupTimeout bounds one lookup.
const lookupTimeout = 5 * time.Second

// errNotFound is the error of decisions before the first successful lookup.
var errNotFound = fmt.Errorf("memcached: the servers' addresses are not known yet: %w", headgate.ErrUnavailable)

// look calls Config.Lookup until it gives servers, and then every Config.LookupEvery.
func (s *Store) look(ctx context.Context) {
	faulty := false
	for wait := firstLookupWait; ; {
		err := s.lookOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		s.tell(err, faulty)
		faulty = err != nil
		switch {
		case s.nodes.Load() == nil:
			wait = min(2*wait, maxLookupWait)
		case s.config.LookupEvery == 0:
			return
		default:
			wait = s.config.LookupEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// tell logs the first of several failed lookups, and the first success after them.
func (s *Store) tell(err error, faulty bool) {
	switch {
	case s.config.Log == nil || faulty == (err != nil):
	case err == nil:
		s.config.Log.Info("memcached servers are found", "servers", len(s.servers()))
	case s.nodes.Load() == nil:
		s.config.Log.Warn("memcached servers are not found: fallbacks decide until they are", "error", err)
	default:
		s.config.Log.Warn("memcached servers are not found again: the known ones stay in use", "error", err)
	}
}

func (s *Store) lookOnce(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	servers, err := s.config.Lookup(within)
	if err == nil {
		err = checkServers(servers)
	}
	if err == nil {
		err = s.use(ctx, servers)
	}
	return err
}

// retireAfter is how long a removed server still answers calls that had begun before.
const retireAfter = 5 * time.Second

// use connects to the servers. Those that are known keep their connections and their clocks.
func (s *Store) use(ctx context.Context, servers []string) error {
	known := map[string]*node{}
	for _, n := range s.servers() {
		known[n.addr] = n
	}
	var nodes, added []*node
	for _, addr := range servers {
		n := known[addr]
		if n == nil {
			var err error
			if n, err = newNode(addr, &s.config); err != nil {
				closeAll(added)
				return err
			}
			added = append(added, n)
		}
		delete(known, addr)
		nodes = append(nodes, n)
	}
	if len(added)+len(known) == 0 {
		return nil
	}
	if len(known) > 0 || len(nodes) > len(added) {
		s.tellChange(added, known)
	}
	for _, n := range added {
		own, end := context.WithCancel(ctx)
		n.end = end
		s.group.Go(func() { n.follow(own) })
	}
	s.nodes.Store(&nodes)
	for _, n := range known {
		s.group.Go(func() { n.retire(ctx) })
	}
	return nil
}

// tellChange logs that the servers have changed.
func (s *Store) tellChange(added []*node, removed map[string]*node) {
	if s.config.Log == nil {
		return
	}
	var more []string
	for _, n := range added {
		more = append(more, n.addr)
	}
	s.config.Log.Warn("memcached servers have changed: keys that move begin with empty counts",
		"added", more, "removed", slices.Sorted(maps.Keys(removed)))
}

// retire ends a removed server.
func (n *node) retire(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(retireAfter):
	}
	n.end()
	closeAll([]*node{n})
}

func closeAll(nodes []*node) {
	for _, n := range nodes {
		_ = n.client.Close() // Its error is always nil.
	}
}
