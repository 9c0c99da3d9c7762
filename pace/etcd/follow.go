package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/pace"
)

// take takes over what a read has found.
func (f *follower) take(ctx context.Context, r *reading) {
	if r.era != f.era {
		return
	}
	if r.err != nil {
		f.faults.tell("read", fmt.Errorf("pace/etcd: %s cannot be read: %w", f.keys.base, r.err))
		return
	}
	f.faults.tell("read", nil)
	if now := time.Now(); f.lost(now) {
		f.returned, f.answeredAt = now, now
	} else {
		f.answeredAt = now
	}
	if !r.history.after(r.known) || f.view.changed(r.plan) {
		f.anew()
		return
	}
	f.history = history{r.cluster, max(r.revision, f.history.revision)}
	f.view.setLimit(r.limit, r.revision)
	f.view.setBrake(r.brake, r.revision)
	if r.full {
		f.view.setMembers(r.members, r.revision)
		f.watchFrom(ctx, r)
	}
	for _, kv := range r.before {
		p, _ := parsePlan(kv.value) // Nobody went by one that is not valid.
		f.learn(kv.mark, p)
	}
	f.setPlan(r.plan, r.revision)
	f.settle()
	f.disown(r.own, r.revision)
	if r.plan != nil {
		f.standing.verified(r.sent, f.member.shown.Load().until, f.moment())
	}
}

// lost says that etcd has not answered for so long that others may have lost it too, and
// with it their leases.
func (f *follower) lost(now time.Time) bool { return now.Sub(f.answeredAt) > f.config.TTL/2 }

// hear takes over what the watch has told.
func (f *follower) hear(h heard) {
	if h.watch != f.watches {
		return
	}
	if h.ended {
		f.endWatch() // The next read is a full one, and begins another.
		if !errors.Is(h.err, rpctypes.ErrCompacted) {
			f.faults.tell("watch", fmt.Errorf("pace/etcd: %s is no longer watched: it will be again: %w", f.keys.base, h.err))
		}
		return
	}
	f.newest = max(f.newest, h.revision)
	f.history.revision = max(f.history.revision, h.revision)
	for _, e := range h.events {
		f.change(e)
	}
	f.settle()
}

// change takes over what has happened to one key.
func (f *follower) change(e *clientv3.Event) {
	kv := convert(e.GetKv())
	there, revision := kv, kv.mod
	if e.GetType() == clientv3.EventTypeDelete {
		there = nil
	}
	switch kv.key {
	case f.keys.limit():
		f.view.setLimit(there, revision)
	case f.keys.brake():
		f.view.setBrake(there, revision)
	case f.keys.plan():
		f.setPlan(there, revision)
	case f.keys.member(f.config.ID):
		f.view.setMember(kv, revision)
		if there == nil {
			f.member.look() // It may be free again.
		}
		f.disown(there, revision)
	default:
		if id, ok := strings.CutPrefix(kv.key, f.keys.members()); ok {
			f.view.setMember(kv, revision)
			f.compare(id, there)
		}
	}
}

// compare learns from what another instance says of the time.
func (f *follower) compare(id string, kv *keyValue) {
	m, known := f.view.members.all[id]
	if kv == nil || !known {
		f.offsets.remove(id)
		return
	}
	if m.err == nil {
		f.offsets.add(id, f.config.Wall().Sub(m.at))
	}
}

// disown looks whether this instance's key is nobody's or another's, as of a revision:
// then its membership finds out why, and it takes nothing when it is another's.
func (f *follower) disown(own *keyValue, asOf int64) {
	t := f.member.shown.Load()
	if !t.registered || asOf < t.since || own != nil && t.owns(own.lease) {
		return
	}
	if own != nil && own.lease != 0 {
		f.disputed = t
		f.standing.displaced(f.moment())
	}
	f.member.look()
}

// setPlan takes over the newest plan.
func (f *follower) setPlan(kv *keyValue, revision int64) {
	if !f.view.setPlan(kv, revision) {
		return
	}
	if kv == nil {
		f.proposing.deleted()
		return
	}
	f.learn(kv.mark, f.view.plan.plan)
}

// learn takes one writing of the plan's key; p is nil when it is not valid.
func (f *follower) learn(m mark, p *plan) {
	if m.mod <= f.standing.known.mod {
		return
	}
	now := f.moment()
	if p != nil {
		f.proposing.saw(p.from, now.mono)
		f.balancing = balancing{next: now.mono.Add(f.config.Rebalance)}
	}
	f.standing.learn(m, p, now)
}

// settle says what has changed besides the plan.
func (f *follower) settle() {
	f.member.members.Store(int64(len(f.view.members.all)))
	for id := range f.offsets.last {
		if _, lives := f.view.members.all[id]; !lives {
			f.offsets.remove(id)
		}
	}
	wrong := f.view.faults()
	if f.view.limit.mod == 0 {
		wrong[f.keys.limit()] = fmt.Errorf("pace/etcd: there is no limit: set one by: headgate ctl limit set %s", f.config.Provider)
	}
	for _, key := range []string{f.keys.limit(), f.keys.plan(), f.keys.brake(), f.keys.members()} {
		f.faults.tell(key, wrong[key])
	}
	f.slow()
}

// slow tells the brake when it has changed.
func (f *follower) slow() {
	b, now := f.view.brake.brake, f.now()
	if b != nil && !b.near(now) {
		f.faults.tell("brake's end", fmt.Errorf("%s: %w: it ends at %v, and brakes end within %v: it counts as not written",
			f.keys.brake(), errRecord, b.Until, maxBrake))
		b = nil
	}
	switch before := f.braked; {
	case b != nil && (before == nil || *b != *before):
		f.to.Brake(pace.Brake{Until: b.Until, Percent: b.Percent, Reason: b.Reason})
	case b == nil && before != nil && before.Until.After(now):
		f.to.Brake(pace.Brake{Percent: 100}) // Somebody has taken it away.
	}
	f.braked = b
}

// anew begins with nothing but the last good plan, since etcd has lost what it knew.
func (f *follower) anew() {
	f.faults.tell("history", errHistory)
	f.endWatch()
	f.era++
	f.returned = time.Now()
	f.history = history{}
	f.view.reset()
	f.proposing, f.balancing = proposing{}, balancing{}
	f.standing.anew(f.moment())
	f.nextRead = time.Time{}
}

var errHistory = errors.New("pace/etcd: etcd has lost its data, or is another cluster: " +
	"the last plan is kept until there is another: set the limit again")

// watchFrom begins to watch from a full read on, and begins anew when the watch has not
// told what the full read before this one had found.
func (f *follower) watchFrom(ctx context.Context, r *reading) {
	if f.stopWatch != nil && f.newest < f.behind {
		f.endWatch()
	}
	f.behind = 0
	for _, kv := range append(slices.Clone(r.members), r.limit, r.plan, r.brake) {
		if kv != nil {
			f.behind = max(f.behind, kv.mod)
		}
	}
	if f.stopWatch != nil {
		return
	}
	f.watches++
	f.newest = r.revision
	inner, cancel := context.WithCancel(ctx)
	f.stopWatch = cancel
	watch := f.watches
	f.work.Go(func() { f.watch(inner, f.keys, watch, r.revision, f.heard) })
}

func (f *follower) endWatch() {
	if f.stopWatch != nil {
		f.stopWatch()
	}
	f.stopWatch = nil
	f.watches++
}
