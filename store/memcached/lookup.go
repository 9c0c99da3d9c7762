package memcached

import (
	"context"
	"fmt"
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

// look calls Config.Lookup until it gives servers.
func (s *Store) look(ctx context.Context) {
	told := false
	for wait := firstLookupWait; ; wait = min(2*wait, maxLookupWait) {
		err := s.lookOnce(ctx)
		if err == nil || ctx.Err() != nil {
			if told && err == nil {
				s.config.Log.Info("memcached servers are found", "servers", len(s.nodes))
			}
			return
		}
		if !told && s.config.Log != nil {
			told = true
			s.config.Log.Warn("memcached servers are not found: fallbacks decide until they are", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
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

// use connects to the servers. It is called once with success.
func (s *Store) use(ctx context.Context, servers []string) error {
	nodes := make([]*node, 0, len(servers))
	for _, addr := range servers {
		n, err := newNode(addr, &s.config)
		if err != nil {
			for _, n := range nodes {
				_ = n.client.Close() // Its error is always nil.
			}
			return err
		}
		nodes = append(nodes, n)
	}
	s.nodes = nodes
	s.found.Store(true)
	for _, n := range nodes {
		s.group.Go(func() { n.follow(ctx) })
	}
	return nil
}
