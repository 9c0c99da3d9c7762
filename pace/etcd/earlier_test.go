package etcd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// earlierParts gives the parts of all members in window j of a turn, as an instance of an earlier
// version uses them: the units of the turn are numbered by member, and window j has every number x
// with (x + j) divisible by the windows of the turn.
func earlierParts(units []int64, windows, j int64) []int64 {
	parts, x := make([]int64, len(units)), int64(0)
	for i, n := range units {
		for range n {
			if x++; (x+j)%windows == 0 {
				parts[i]++
			}
		}
	}
	return parts
}

// TestPartOfEarlierPlan: for a plan with units, a member of this version has in each window no more
// than the same member of an earlier version. So any mixture stays within the limit.
func TestPartOfEarlierPlan(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 14))
	for range 300 {
		p := &plan{limit: random.Int64N(90), per: time.Second}
		for i := range 1 + random.IntN(6) {
			p.members = append(p.members, fmt.Sprint("m", i))
		}
		windows := turns(p.limit, len(p.members))
		p.units = randomUnits(random, p.limit*windows, len(p.members))
		if err := p.checkUnits(); err != nil {
			t.Fatal(err)
		}
		for j := range windows {
			sum := int64(0)
			for i, earlier := range earlierParts(p.units, windows, j) {
				part, err := p.part(i)
				if err != nil || part.Part(j) > earlier || part.Part(j) < earlier-1 {
					t.Fatalf("limit %d, units %v: member %d has %d in window %d, the earlier version %d, %v", p.limit, p.units, i, part.Part(j), j, earlier, err)
				}
				sum += earlier
			}
			if sum != p.limit {
				t.Fatalf("limit %d, units %v: the earlier version has %d units in window %d", p.limit, p.units, sum, j)
			}
		}
	}
}

// randomUnits divides a number at random.
func randomUnits(random *rand.Rand, all int64, members int) []int64 {
	units := make([]int64, members)
	for i := range units[1:] {
		units[i] = random.Int64N(all + 1)
		all -= units[i]
	}
	units[members-1] = all
	random.Shuffle(members, func(i, j int) { units[i], units[j] = units[j], units[i] })
	return units
}

// putDemand stores a limit as an operator of an earlier version has written it.
func (f *fleet) putDemand(count int64) {
	f.t.Helper()
	f.put(keysOf(DefaultPrefix, provider).limit(), fmt.Sprintf(`{"limit":%d,"per":%q,"balance":"demand"}`, count, window.String()))
}

// TestStoredDemand: a stored limit with balance "demand" is used as even, and every instance and
// operator is told what to do.
func TestStoredDemand(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	f.putDemand(90)
	a, b := f.join("a"), f.join("b")
	f.share(90, a, b)
	f.atMost(90)
	for _, i := range []*instance{a, b} {
		if !i.faulty("the limit is divided evenly") || !i.faulty("use package client/lease") {
			t.Errorf("%s is told %q", i.id, i.faults)
		}
	}
	e, err := f.limits.Get(t.Context(), provider)
	if err != nil || e.Limit.Count != 90 || len(e.Faults) != 1 || !strings.Contains(e.Faults[0], "use package client/lease") {
		t.Errorf("an operator reads %+v, %v", e, err)
	}
	if _, err := f.limits.Set(t.Context(), provider, Limit{90, window, retired}, AnyRevision); err == nil || !strings.Contains(err.Error(), NoDemand) {
		t.Errorf("setting balance demand gives %v", err)
	}
	f.set(90, window, Even)
	f.until("the fault is over", func() bool { e, err := f.limits.Get(t.Context(), provider); return err == nil && e.Faults == nil })
}

// earlier is an instance of an earlier version: it proposes a plan with units in place of each plan
// that divides evenly.
type earlier struct {
	fleet    *fleet
	proposed int
}

// run registers the instance until ctx ends.
func (o *earlier) run(ctx context.Context, id string) error {
	k := keysOf(DefaultPrefix, provider)
	lease, err := o.fleet.limits.Client.Grant(ctx, 60)
	if err != nil {
		return err
	}
	o.fleet.server.CTL("put", fmt.Sprintf("--lease=%x", int64(lease.ID)), k.member(id),
		`{"at_us":1,"demand":80,"over_percent":45,"bound_us":300000}`)
	for ctx.Err() == nil {
		if err := o.propose(ctx, k, id); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	_, err = o.fleet.limits.Client.Revoke(context.WithoutCancel(ctx), lease.ID)
	return err
}

// propose gives this instance nine tenths of the limit.
func (o *earlier) propose(ctx context.Context, k keys, id string) error {
	v, _, err := o.fleet.limits.view(ctx, k)
	if err != nil || v.plan.plan == nil || v.plan.plan.units != nil || !slices.Contains(v.plan.plan.members, id) {
		return err
	}
	p := *v.plan.plan
	all := p.limit * turns(p.limit, len(p.members))
	p.units = make([]int64, len(p.members))
	for i, member := range p.members {
		if p.units[i] = all / 10 / int64(len(p.members)-1); member == id {
			p.units[i] = all - all/10/int64(len(p.members)-1)*int64(len(p.members)-1)
		}
	}
	p.from = max(p.from, edge(wall().Add(300*time.Millisecond), window))
	done, err := o.fleet.limits.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(k.plan()), "=", v.plan.mark.mod)).
		Then(clientv3.OpPut(k.plan(), p.encode())).Commit()
	if err == nil && done.Succeeded {
		o.proposed++
	}
	return err
}

// TestEarlierInstance: during a rolling upgrade, an instance of an earlier version and two of this one
// propose different plans in turn. Each uses the smallest part of these plans. When the earlier one
// has ended, the others have the whole limit.
func TestEarlierInstance(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	f.putDemand(100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	o := &earlier{fleet: f}
	go func() { ended <- o.run(ctx, "earlier") }()
	a, b := f.join("a"), f.join("b")
	small := func(i *instance) bool {
		p := i.newest()
		return p.Limit == 5 && p.Instances == 1 // A tenth of the limit, halved.
	}
	f.until("they use a plan with units", func() bool { return small(a) && small(b) })
	f.until("they propose an even plan", func() bool { return a.newest().Instances == 3 })
	f.until("they use a plan with units again", func() bool { return small(a) && small(b) })
	f.atMost(100)
	cancel()
	if err := <-ended; err != nil || o.proposed < 2 {
		t.Errorf("the earlier instance has proposed %d plans, %v", o.proposed, err)
	}
	f.share(100, a, b)
	f.atMost(100)
}
