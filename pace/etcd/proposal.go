package etcd

import (
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// idle is how long there is nothing to propose: until something has changed.
const idle = time.Hour

// propose proposes the plan that is called for, when it is another than the present and
// this instance's turn. It gives how long to wait until it may be.
func (f *follower) propose(ctx context.Context, now moment) time.Duration {
	if f.inFlight || f.stopWatch == nil || !f.standing.registered {
		return idle
	}
	_, bound := f.view.bounds(f.config.Propagation)
	p, uneven := f.view.next(f.grace(bound, now.mono))
	turn := -1
	if p != nil {
		turn = slices.Index(p.members, f.config.ID)
	}
	if turn < 0 {
		f.proposing.since = time.Time{}
		return idle
	}
	if present := f.view.plan.plan; p.sameAs(present, uneven) {
		if wait := f.rebalance(present, turn, now); wait > 0 {
			f.proposing.since = time.Time{}
			return wait
		}
	}
	f.proposing.wanted(turn, f.penalty(bound), now.mono)
	p.from = f.view.from(p, now.wall, bound)
	f.warn(p, now)
	if wait := f.proposing.wait(p.from, bound, now); wait > 0 {
		return wait
	}
	if uneven {
		p.units = divide(p.limit, p.members, f.view.demand)
	}
	f.send(ctx, p)
	return idle
}

// grace says that no plan may leave out who has no lease: for a bound after etcd was
// lost, or this instance began. When it was lost for all, leases have expired of members
// that are about to come back, and under hold take their parts meanwhile.
func (f *follower) grace(bound time.Duration, now time.Time) bool {
	return f.lost(now) || now.Before(f.returned.Add(bound))
}

// penalty is by how much longer an instance waits whose clock differs from the others':
// they name better times.
func (f *follower) penalty(bound time.Duration) time.Duration {
	if ahead, of := f.offsets.median(); of > 1 && ahead.Abs() > bound/4 {
		return 2 * bound
	}
	return 0
}

// warn says when a change has to wait for very long.
func (f *follower) warn(p *plan, now moment) {
	var err error
	if wait := p.from.Sub(now.wall); wait > 2*max(p.per, patientChange) {
		err = fmt.Errorf("pace/etcd: no change takes effect before %v, when the present plan begins or its window ends: "+
			"if a wrong clock has written that, set it right and delete the key %s", p.from.Time(), f.keys.plan())
	}
	f.faults.tell("from", err)
}

// send proposes a plan: it is taken when neither the plan nor the limit is another than
// those that it was made for, and this instance lives.
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
	if done.Succeeded { // Else somebody else was earlier, and the watch tells what is now.
		f.config.Logger.Info("pace/etcd: proposed a plan", "provider", f.config.Provider, "by", f.config.ID,
			"revision", historyOf(done.Header).revision, "limit", p.limit, "per", p.per, "instances", len(p.members), "from", p.from.Time())
	}
	return nil
}

// answered notes that a proposal has come to an end.
func (f *follower) answered(err error) {
	f.inFlight = false
	f.faults.tell("propose", err)
	f.proposing.last = time.Now()
}

// balancing is when parts are adapted to demand.
type balancing struct {
	next   time.Time
	missed int // how often it was found that they should be
}

// rebalance looks whether demand calls for other parts, and gives how long to wait, or
// 0 when the plan is to be proposed now. The first instance does so; the others when
// those before them have not.
func (f *follower) rebalance(present *plan, turn int, now moment) time.Duration {
	if present.units == nil {
		return idle
	}
	b := &f.balancing
	if !now.mono.Before(b.next) {
		b.next = now.mono.Add(f.config.Rebalance)
		if material(present, divide(present.limit, present.members, f.view.demand), f.view.demand) {
			b.missed++
		} else {
			b.missed = 0
		}
	}
	if b.missed > turn {
		return 0
	}
	return max(b.next.Sub(now.mono), time.Millisecond)
}
