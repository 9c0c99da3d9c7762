package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// reading is what a linearizable read has found: what was there at some time after it
// was sent, all of one revision.
type reading struct {
	history // as of which it is

	sent  time.Time
	era   int     // that it was sent in
	known history // when it was sent

	limit, plan, brake, own *keyValue // nil: not there

	// before are the plans between the one that was known and this one, the oldest first.
	before []*keyValue

	full    bool // members are read too
	members []*keyValue

	err error
}

// request is what a read is to find.
type request struct {
	full  bool
	era   int
	known history
	plan  mark // the newest that is known
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

// maxBetween bounds the plans that are read of those that were missed.
const maxBetween = 16

// between reads the plans between one that is known and one that was read. When they
// are no longer kept, or too many, it gives none: then the newer one does not follow
// the older.
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

// heard is what a watch has told.
type heard struct {
	watch    int // its number
	events   []*clientv3.Event
	revision int64
	ended    bool
	err      error // why it has ended
}

var errClosed = errors.New("the client was closed")

// watch tells what changes after a revision, until ctx is done or it cannot go on.
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
	// A server that has lost its leader ends the watch, instead of keeping silent.
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
