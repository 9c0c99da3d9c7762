package storetest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// testRelease: a released policy decides nothing. Used units stay used. Its id and its
// receipts never reach another policy.
func (s *suite) testRelease(t *testing.T) {
	for name, story := range map[string]func(b *bench, p headgate.Policy, id headgate.PolicyID){
		"Users":       releaseCountsUsers,
		"Used":        releaseKeepsWhatWasUsed,
		"Receipts":    releaseKeepsReceipts,
		"Beside":      releaseReturnsOthers,
		"InTurns":     releaseInTurns,
		"Reuse":       releaseReusesNoID,
		"Concurrency": releaseWhileOthersTake,
	} {
		t.Run(name, func(t *testing.T) { s.each(t, headgate.Limit{Count: 4, Per: time.Minute}, story) })
	}
}

// wantUnknown: an Op with the id fails.
func (b *bench) wantUnknown(what string, id headgate.PolicyID) {
	b.t.Helper()
	for _, mode := range []headgate.OpKind{headgate.Take, headgate.Peek} {
		ds := make([]headgate.Decision, 1)
		err := b.store.Apply(b.t.Context(), []headgate.Op{{Key: "unknown", Policy: id, Cost: 1, Kind: mode}}, ds)
		if !errors.Is(err, headgate.ErrUnknownPolicy) {
			b.t.Errorf("%s: %v, want %v", what, err, headgate.ErrUnknownPolicy)
		}
		b.wantUndecided(what, ds)
	}
}

// with gives the policy with another count.
func with(p headgate.Policy, count int64) headgate.Policy {
	p.Limit.Count = count
	return p
}

// expire advances the clock until all units under a limit of a minute have expired. It then
// prepares another limit: stores free expired policies at that moment.
func (b *bench) expire(p headgate.Policy) {
	b.t.Helper()
	b.clock.Advance(10 * time.Minute)
	b.store.Release(b.prepare(with(p, 3)))
}

func releaseCountsUsers(b *bench, p headgate.Policy, id headgate.PolicyID) {
	b.store.Release(0)
	b.store.Release(id + 1000)
	named := p
	named.Named = true
	if again := b.prepare(named); again != id {
		b.t.Errorf("a client has named an equal policy: id %d, want %d", again, id)
	}
	b.store.Release(id)
	b.wantReason("one of two users is left", b.take("k", id, 1), headgate.WithinLimit)
	b.store.Release(id)
	b.wantUnknown("a policy without users", id)
	b.store.Release(id)
	b.wantRemaining("prepared again", "k", b.prepare(p), 3)
}

func releaseKeepsWhatWasUsed(b *bench, p headgate.Policy, id headgate.PolicyID) {
	b.take("k", id, 4)
	b.store.Release(id)
	id = b.prepare(p)
	b.wantReason("all was used before the release", b.take("k", id, 1), excess(p))
	b.store.Release(id)
	b.clock.Advance(6 * time.Second)
	other := b.prepare(with(p, 5))
	if d := b.take("k", other, 2); d.Verdict == headgate.Allow {
		b.t.Errorf("under a limit of 5 a key passes that has used 4 of 4: %+v", d)
	}
	b.expire(p)
	b.wantRemaining("when it has expired", "k", other, 5)
}

func releaseKeepsReceipts(b *bench, p headgate.Policy, id headgate.PolicyID) {
	d := b.take("k", id, 3)
	b.store.Release(id)
	if err := b.store.Return(b.t.Context(), []headgate.Receipt{d.Receipt}); err != nil {
		b.t.Errorf("a receipt of a released policy: %v", err)
	}
	b.wantRemaining("returned after the release", "k", b.prepare(p), 4)
}

// releaseInTurns: a client that changes its limit with each request gains nothing.
func releaseInTurns(b *bench, p headgate.Policy, id headgate.PolicyID) {
	passed := int64(0)
	for i := range int64(40) {
		b.store.Release(id)
		id = b.prepare(with(p, 4+i%2))
		if d := b.take("k", id, 1); d.Verdict == headgate.Allow {
			passed++
		}
	}
	if passed > 5 {
		b.t.Errorf("%d requests passed under a limit of 4 and one of 5 in turns", passed)
	}
}

// releaseReturnsOthers: a Return with a receipt of a freed policy still returns all other
// receipts.
func releaseReturnsOthers(b *bench, _ headgate.Policy, _ headgate.PolicyID) {
	fixed := func(count int64, per time.Duration) headgate.Policy {
		return headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: count, Per: per}}
	}
	short, long := b.prepare(fixed(5, time.Second)), b.prepare(fixed(5, 24*time.Hour))
	receipts := []headgate.Receipt{b.take("freed", short, 1).Receipt, b.take("kept", long, 5).Receipt}
	b.store.Release(short)
	b.clock.Advance(10 * time.Minute)
	b.store.Release(b.prepare(fixed(7, time.Second)))
	if err := b.store.Return(b.t.Context(), receipts); err != nil {
		b.t.Errorf("a receipt of a policy that was freed, beside another: %v", err)
	}
	b.wantRemaining("after its receipt was returned beside that of a freed policy", "kept", long, 5)
}

// releaseReusesNoID: many policies follow each other on one key. No earlier id and no earlier
// receipt has any effect.
func releaseReusesNoID(b *bench, p headgate.Policy, id headgate.PolicyID) {
	const policies = 150
	b.store.Release(id)
	ids := []headgate.PolicyID{id}
	var old []headgate.Receipt
	for i := range int64(policies) {
		n := 10 + i
		id := b.prepare(with(p, n))
		d := b.take("k", id, n-1)
		if d.Limit != n || d.Verdict != headgate.Allow {
			b.t.Fatalf("policy %d: %+v, want an answer under a limit of %d", i, d, n)
		}
		if err := b.store.Return(b.t.Context(), old); err != nil {
			b.t.Fatalf("receipts of released policies: %v", err)
		}
		b.wantRemaining("after receipts of other policies", "k", id, 1)
		for _, other := range ids {
			if other == id {
				b.t.Fatalf("policy %d has the id %d of another one", i, id)
			}
		}
		b.wantUnknown("an earlier id", ids[len(ids)-1])
		b.store.Release(id)
		ids, old = append(ids, id), append(old, d.Receipt)
		b.clock.Advance(10 * time.Minute)
	}
	for _, id := range ids {
		b.wantUnknown("an earlier id", id)
	}
}

// releaseWhileOthersTake: other policies are prepared, used and released meanwhile. A policy
// with a user is never freed. An id decides for its own policy or fails.
func releaseWhileOthersTake(b *bench, p headgate.Policy, held headgate.PolicyID) {
	const callers, each = 4, 60
	var all sync.WaitGroup
	for c := range int64(callers) {
		all.Go(func() {
			for i := range int64(each) {
				n := 100 + (c+i)%callers*1000 + i
				id, err := b.store.Prepare(with(p, n))
				if err != nil {
					b.t.Errorf("Prepare: %v", err)
					return
				}
				b.decides("a policy with a user", id, n, true)
				b.decides("a policy that is held", held, 4, true)
				b.store.Release(id)
				b.decides("a policy that this caller has released", id, n, false)
				b.clock.Advance(time.Minute)
			}
		})
	}
	all.Wait()
}

// decides: the id decides under its own limit. It may be unknown unless must is true.
func (b *bench) decides(what string, id headgate.PolicyID, limit int64, must bool) {
	b.t.Helper()
	ds := make([]headgate.Decision, 1)
	err := b.store.Apply(b.t.Context(), []headgate.Op{{Key: "k", Policy: id, Cost: 1}}, ds)
	switch {
	case err != nil && (must || !errors.Is(err, headgate.ErrUnknownPolicy)):
		b.t.Errorf("%s: %v", what, err)
	case err == nil && ds[0].Limit != limit:
		b.t.Errorf("%s: decided under a limit of %d, want %d", what, ds[0].Limit, limit)
	}
}
