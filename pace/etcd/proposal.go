package etcd

import (
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// idle is the wait without anything to propose, until something changes.
const idle = time.Hour

// propose proposes the required plan, if the plan differs from the present one and this
// instance's turn has come. Otherwise it gives the time to wait.
func (f *follower) propose(ctx context.Context, now moment) time.Duration {
	if f.inFlight || f.stopWatch == nil || !f.standing.registered {
		return idle
	}
	_, bound := f.view.bounds(f.config.Propagation)
	p := f.view.next(f.grace(bound, now.mono))
	turn := -1
	if p != nil {
		turn = slices.Index(p.members, f.config.ID)
	}
	if turn < 0 {
		f.proposing.since = time.Time{}
		return idle
	}
	if p.sameAs(f.view.plan.plan) {
		f.proposing.since = time.Time{}
		return idle
	}
	f.proposing.wanted(turn, f.penalty(bound), now.mono)
	p.from = f.view.from(p, now.wall, bound)
	f.warn(p, now)
	if wait := f.proposing.wait(p.from, bound, now); wait > 0 {
		return wait
	}
	f.send(ctx, p)
	return idle
}

// grace reports that a plan must keep members whose lease has expired: for one bound after an
// outage of etcd, or after the start of this instance. After an outage, leases of healthy members
// have expired; with Hold, these members still use their parts. After etcd has lost its data, a plan
// must keep them for one TTL, as it does for a member that is cut off.
func (f *follower) grace(bound time.Duration, now time.Time) bool {
	return f.lost(now) || now.Before(f.returned.Add(bound)) || now.Before(f.rejoining)
}

// penalty is the additional wait of an instance with a deviating clock: other instances choose
// better times.
func (f *follower) penalty(bound time.Duration) time.Duration {
	if ahead, instances := f.offsets.median(); instances > 1 && ahead.Abs() > bound/4 {
		return 2 * bound
	}
	return 0
}

// warn logs that a change has to wait for very long.
func (f *follower) warn(p *plan, now moment) {
	var err error
	if wait := p.from.Sub(now.wall); wait > 2*max(p.per, patientChange) {
		err = fmt.Errorf("pace/etcd: no change takes effect before %v, when the present plan begins or its window ends: "+
			"if a wrong clock has written that, set it right and delete the key %s", p.from.Time(), f.keys.plan())
	}
	f.faults.tell("from", err)
}

// send proposes a plan. It is accepted if plan and limit are unchanged, and this instance is
// registered.
func (f *follower) send(ctx context.Context, p *plan) {
	f.inFlight, f.proposing.since = true, time.Time{}
	key, limit, member := f.keys.plan(), f.keys.limit(), f.keys.member(f.config.ID)
	compares := []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(key), "=", f.view.plan.mark.mod),
		clientv3.Compare(clientv3.ModRevision(limit), "=", f.view.limit.mod),
		clientv3.Compare(clientv3.LeaseValue(member), "=", int64(f.member.shown.Load().lease)),
	}
	put := clientv3.OpPut(key, p.encode())
	f.work.Go(func() {
		err := f.commit(ctx, compares, put, p)
		select {
		case f.proposed <- err:
		case <-ctx.Done():
		}
	})
}

func (f *follower) commit(ctx context.Context, compares []clientv3.Cmp, put clientv3.Op, p *plan) error {
	within, cancel := context.WithTimeout(ctx, max(f.config.Propagation, time.Second))
	defer cancel()
	done, err := f.config.Client.Txn(within).If(compares...).Then(put).Commit()
	if err != nil {
		return fmt.Errorf("pace/etcd: a plan for %s could not be proposed: it will be again: %w", f.keys.base, err)
	}
	if done.Succeeded { // Otherwise another instance came first, and the watch reports its plan.
		f.config.Logger.Info("pace/etcd: proposed a plan", "provider", f.config.Provider, "by", f.config.ID,
			"revision", historyOf(done.Header).revision, "limit", p.limit, "per", p.per, "instances", len(p.members), "from", p.from.Time())
	}
	return nil
}

// answered records the end of a proposal.
func (f *follower) answered(err error) {
	f.inFlight = false
	f.faults.tell("propose", err)
	f.proposing.last = time.Now()
}
