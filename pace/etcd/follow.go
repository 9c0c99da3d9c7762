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

// take applies the result of a read.
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
		p, _ := parsePlan(kv.value) // No instance has used an invalid plan.
		f.learn(kv.mark, p)
	}
	f.setPlan(r.plan, r.revision)
	f.settle()
	f.disown(r.own, r.revision)
	if r.plan != nil {
		f.standing.verified(r.sent, f.member.shown.Load().until, f.moment())
	}
}

// lost reports that etcd has not answered for so long that leases of other instances may have expired.
func (f *follower) lost(now time.Time) bool { return now.Sub(f.answeredAt) > f.config.TTL/2 }

// handle applies the events of the watch.
func (f *follower) handle(h heard) {
	if h.watch != f.watches {
		return
	}
	if h.ended {
		f.endWatch() // The next read is a full one, and starts another watch.
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

// change applies an event of one key.
func (f *follower) change(e *clientv3.Event) {
	kv, deleted := convertEvent(e)
	there, revision := kv, kv.mod
	if deleted {
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
			f.member.look() // The key may be free again.
		}
		f.disown(there, revision)
	default:
		if id, ok := strings.CutPrefix(kv.key, f.keys.members()); ok {
			f.view.setMember(kv, revision)
			f.compare(id, there)
		}
	}
}

// compare learns the clock difference from another instance's report.
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

// disown checks whether this instance's key has no owner or another owner, as of a revision. Its
// membership then finds the reason. With another owner, the instance uses nothing.
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

// setPlan applies the newest plan.
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

// learn applies one write of the plan's key; p is nil for an invalid plan.
func (f *follower) learn(m mark, p *plan) {
	if m.mod <= f.standing.known.mod {
		return
	}
	now := f.moment()
	if p != nil {
		f.proposing.saw(p.from, now.mono)
	}
	f.standing.learn(m, p, now)
}

// settle applies changes of everything except the plan.
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

// slow applies a changed brake.
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
		f.to.Brake(pace.Brake{Percent: 100}) // The brake was deleted.
	}
	f.braked = b
}

// anew starts again with only the last valid plan, because etcd has lost its data.
func (f *follower) anew() {
	f.faults.tell("history", errHistory)
	f.endWatch()
	f.era++
	f.rejoining = time.Now().Add(f.config.TTL)
	f.history = history{}
	f.view.reset()
	f.proposing = proposing{}
	f.standing.anew(f.moment())
	f.nextRead = time.Time{}
}

var errHistory = errors.New("pace/etcd: etcd has lost its data, or is another cluster: " +
	"the last plan is kept until there is another: set the limit again")

// watchFrom starts to watch after a full read. If the current watch has missed what the previous
// full read has found, it is replaced.
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
