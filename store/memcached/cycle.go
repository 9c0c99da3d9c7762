package memcached

import (
	"context"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/meta"
)

// held is an item as it is on a server.
type held struct {
	found bool
	value []byte
	cas   uint64
}

// cycle reads d's item, does the work of the batch, and writes a changed item on the condition that
// no other process has written it. If that fails, the cycle starts again.
func (s *Store) cycle(ctx context.Context, d digest, batch []*request, rivals *pace) error {
	n, name := s.serverOf(&d), d.name()
	var h held
	fresh := false
	if len(batch) == 1 && batch[0].hint != nil {
		h, fresh = *batch[0].hint, true
	}
	for try := 0; ; try++ {
		if err := rivals.yield(ctx); err != nil {
			return couldNot("write a key before other processes do", err)
		}
		began := n.clock.mono()
		if !fresh {
			if err := n.read(ctx, name, &h); err != nil {
				return err
			}
		}
		fresh = false
		it, now, err := s.work(ctx, n, &h, batch)
		if err != nil {
			return err
		}
		if !it.changed {
			return nil
		}
		stored, err := n.write(ctx, name, it, now, &h)
		if err != nil {
			return err
		}
		rivals.met(!stored, n.clock.mono()-began)
		if stored {
			return nil
		}
		n.conflicts.Add(1)
		if try >= s.config.Retries {
			n.exhausted.Add(1)
			return ErrContended
		}
	}
}

// work does the work of the batch to the item, in order, at one time.
func (s *Store) work(ctx context.Context, n *node, h *held, batch []*request) (*item, headgate.Instant, error) {
	it, err := s.parse(h)
	if err != nil {
		return nil, 0, n.failed(err)
	}
	now, err := n.timeOf(ctx, it, 0)
	if err != nil {
		return nil, 0, err
	}
	for _, q := range batch {
		q.work.decide(it, now)
	}
	return it, now, nil
}

// parse reads what a server holds. A missing item has no states.
func (s *Store) parse(h *held) (*item, error) {
	if !h.found {
		return &item{}, nil
	}
	return parseItem(h.value, s.plan)
}

// read gets an item.
func (n *node) read(ctx context.Context, name string, h *held) error {
	asked := [1]meta.Request{{Kind: meta.Get, Key: name}}
	answer := [1]meta.Response{{Value: h.value}}
	if err := n.do(ctx, "read a key", asked[:], answer[:]); err != nil {
		return err
	}
	h.take(&answer[0])
	return nil
}

// take keeps the answer to a Get.
func (h *held) take(r *meta.Response) {
	h.found, h.value, h.cas = r.Status == meta.OK, r.Value, r.CAS
}

// write replaces h with an item. It reports whether h was still there.
func (n *node) write(ctx context.Context, name string, it *item, now headgate.Instant, h *held) (bool, error) {
	it.drop(now)
	life := max(it.until().Sub(now), 0) + n.slack
	asked := [1]meta.Request{{Kind: meta.Add, Key: name, Value: it.render(), TTL: life}}
	if h.found {
		asked[0].Kind, asked[0].CAS = meta.Set, h.cas
	}
	var answer [1]meta.Response
	if err := n.do(ctx, "write a key", asked[:], answer[:]); err != nil {
		return false, err
	}
	if answer[0].Status == meta.Refused {
		return false, n.failed(refused(n.addr, &answer[0]))
	}
	return answer[0].Status == meta.OK, nil
}

// The time for which an item is kept beyond its use.
const (
	// slack covers the difference between callers' clocks.
	slack = together + 2*time.Second
	// slackOfTests: the clock of a test stands still while the server's clock moves on.
	slackOfTests = time.Hour
)
