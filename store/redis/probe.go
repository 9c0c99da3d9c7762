package redis

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/script"
)

// maxProbeKeys bounds the search for a key on each node of a cluster. Of 10 masters, one without a key is found once in
// 10^11 searches.
const maxProbeKeys = 256

// Probe reports whether the store can decide: nil when a decision on a key of its own, which is written, succeeds. In a
// cluster, it probes all nodes at the same time, and one of them is enough. The breakers treat a probe as a decision. So
// unlike Ping, Probe fails on a replica, and on a server without memory.
func (s *Store) Probe(ctx context.Context) error {
	if !s.made() {
		return headgate.ErrNotMade
	}
	id, err := s.Prepare(headgate.Policy{Limit: headgate.Limit{Count: 1 << 20, Per: time.Second}}) // Its state expires after seconds.
	if err != nil {
		return err
	}
	defer s.Release(id)
	keys := s.probeKeys()
	answers := make(chan error, len(keys))
	for _, key := range keys {
		go func() {
			answers <- s.Apply(ctx, []headgate.Op{{Key: key, Policy: id, Cost: 1}}, make([]headgate.Decision, 1))
		}()
	}
	var all []error
	for range keys {
		err := <-answers
		if err == nil {
			return nil // The others end with ctx.
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

// probeKeys gives a key on each node.
func (s *Store) probeKeys() []string {
	const name = "headgate probe"
	if s.config.Kind != Cluster {
		return []string{name}
	}
	met, keys := map[*nodeQueue]bool{}, []string(nil)
	for i := range maxProbeKeys {
		key := name + " " + strconv.Itoa(i)
		queue := s.queues.queue(s.names.Slot(script.PlaceOf(key, 0)))
		if !met[queue] {
			met[queue] = true
			keys = append(keys, key)
		}
	}
	return keys
}
