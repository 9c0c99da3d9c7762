package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// reading is the result of a linearizable read: all values are of one revision, at some time after
// the read was sent.
type reading struct {
	history // the history of the result

	sent  time.Time
	era   int     // the era in which it was sent
	known history // the known history when it was sent

	limit, plan, brake, own *keyValue // nil for a missing key

	// before are the plans between the known one and this one, the oldest first.
	before []*keyValue

	full    bool // the members were read too
	members []*keyValue

	err error
}

// request says what to read.
type request struct {
	full  bool
	era   int
	known history
	plan  mark // the newest known plan
}

// read reads a provider's keys.
func (s *Source) read(ctx context.Context, k keys, q request) *reading {
	r := &reading{sent: time.Now(), era: q.era, known: q.known, full: q.full}
	ops := []clientv3.Op{
		clientv3.OpGet(k.limit()), clientv3.OpGet(k.plan()), clientv3.OpGet(k.brake()), clientv3.OpGet(k.member(s.config.ID)),
	}
	if q.full {
		ops = append(ops, clientv3.OpGet(k.members(), clientv3.WithPrefix(), clientv3.WithLimit(maxMembers+1)))
	}
	answer, err := s.config.Client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		r.err = err
		return r
	}
	found := answers(answer)
	if len(found) != len(ops) {
		r.err = fmt.Errorf("%d answers to %d questions", len(found), len(ops))
		return r
	}
	r.history = historyOf(answer.Header)
	r.limit, r.plan, r.brake, r.own = first(found[0]), first(found[1]), first(found[2]), first(found[3])
	if q.full {
		r.members = found[4]
	}
	r.before = s.between(ctx, k, q.plan, r.plan)
	return r
}

// maxBetween bounds the missed plans that are read.
const maxBetween = 16

// between reads the plans between a known plan and a newer one. It gives none if etcd no longer
// has them or there are too many. The newer plan then does not follow the known one.
func (s *Source) between(ctx context.Context, k keys, known mark, newest *keyValue) []*keyValue {
	to := markOf(newest)
	if known.mod == 0 || to.create != known.create || to.version-known.version > maxBetween {
		return nil
	}
	var found []*keyValue
	for to.version > known.version+1 {
		answer, err := s.config.Client.Get(ctx, k.plan(), clientv3.WithRev(to.mod-1))
		if err != nil || len(answer.Kvs) == 0 {
			return nil
		}
		kv := convert(answer.Kvs[0])
		found, to = append(found, kv), kv.mark
	}
	slices.Reverse(found)
	return found
}

// heard are the events of a watch.
type heard struct {
	watch    int // its number
	events   []*clientv3.Event
	revision int64
	ended    bool
	err      error // the reason why it has ended
}

var errClosed = errors.New("the client was closed")

// watch reports changes after a revision, until ctx is done or the watch fails.
func (s *Source) watch(ctx context.Context, k keys, number int, after int64, tell chan<- heard) {
	send := func(h heard) bool {
		h.watch = number
		select {
		case tell <- h:
			return true
		case <-ctx.Done():
			return false
		}
	}
	// A server without a leader then ends the watch instead of keeping silent.
	events := s.config.Client.Watch(clientv3.WithRequireLeader(ctx), k.base, clientv3.WithPrefix(), clientv3.WithRev(after+1))
	for e := range events {
		if err := e.Err(); err != nil {
			send(heard{ended: true, err: err})
			return
		}
		if !send(heard{events: e.Events, revision: e.Header.GetRevision()}) {
			return
		}
	}
	send(heard{ended: true, err: errClosed})
}
