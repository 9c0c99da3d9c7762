package storetest

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// Churn is a run, in virtual time, of clients that name one limit after another. A store must
// run it in flat memory.
type Churn struct {
	// Limits is the number of different limits. Every Every, one limit over Per is named.
	Limits     int
	Every, Per time.Duration
	// Kept is the number of limits in use at a time. The oldest one is released first.
	Kept int
	// Uses is the number of limits per unit taken: one in Uses limits takes a unit.
	Uses int
}

// churned is the number of limits that are prepared and used at once: one script call.
const churned = 128

// flat bounds the growth of the heap in the second half of a run, in bytes.
const flat = 4 << 20

// Run runs the churn on a store.
func (c Churn) Run(t *testing.T, newStore NewStore) {
	t.Helper()
	clock := NewClock()
	b := &bench{t: t, store: newStore(t, clock), clock: clock}
	var kept []headgate.PolicyID
	var half uint64
	for n := 0; n < c.Limits; n += churned {
		if half == 0 && n >= c.Limits/2 {
			half = heapNow()
		}
		ids := make([]headgate.PolicyID, churned)
		for i := range ids {
			ids[i] = b.prepare(c.policy(n + i))
			clock.Advance(c.Every)
		}
		b.use(ids, n, max(c.Uses, 1), 5000)
		kept = append(kept, ids...)
		for ; len(kept) > c.Kept; kept = kept[1:] {
			b.store.Release(kept[0])
		}
	}
	if end := heapNow(); end > half+flat {
		t.Errorf("%d bytes at half of %d limits, and %d at the end", half, c.Limits, end)
	}
	runtime.KeepAlive(b.store)
}

func (c Churn) policy(n int) headgate.Policy {
	return headgate.Policy{Limit: headgate.Limit{Count: int64(n + 1), Per: c.Per}, Named: true}
}

// use takes a unit under one in uses of the limits, from the n-th on, and under one of keys
// keys.
func (b *bench) use(ids []headgate.PolicyID, n, uses, keys int) {
	b.t.Helper()
	var ops []headgate.Op
	var counts []int64
	for i, id := range ids {
		if (n+i)%uses == 0 {
			ops = append(ops, headgate.Op{Key: fmt.Sprint("k", (n+i)%keys), Policy: id, Cost: 1, Group: uint8(len(ops) % 2)})
			counts = append(counts, int64(n+i+1))
		}
	}
	if len(ops) == 0 {
		return
	}
	for i, d := range b.apply(ops...) {
		if d.Limit != counts[i] {
			b.t.Fatalf("the limit of %d decides under a limit of %d", counts[i], d.Limit)
		}
	}
}

func heapNow() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Fill names limits of a year until the store refuses more. A configuration of 4,096 other
// limits must still be accepted. After all limits have expired, the store must have capacity
// again.
func Fill(t *testing.T, newStore NewStore) {
	t.Helper()
	const reserve, year = 4096, 365 * 24 * time.Hour
	clock := NewClock()
	b := &bench{t: t, store: newStore(t, clock), clock: clock}
	ofYear := func(n int) headgate.Policy {
		return headgate.Policy{
			Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: int64(n + 1), Per: year}, Named: true,
		}
	}
	named := 1<<16 - 1 - reserve
	for n := 0; n < named; {
		ids := make([]headgate.PolicyID, min(churned, named-n))
		for i := range ids {
			ids[i] = b.prepare(ofYear(n + i))
		}
		b.use(ids, n, 1, named)
		for _, id := range ids {
			b.store.Release(id)
		}
		n += len(ids)
		clock.Advance(time.Second)
	}
	if _, err := b.store.Prepare(ofYear(named)); !errors.Is(err, headgate.ErrTooManyPolicies) {
		t.Errorf("a limit of a client above the reserve: %v, want %v", err, headgate.ErrTooManyPolicies)
	}
	for n := range reserve {
		p := ofYear(named + n)
		p.Named = false
		b.prepare(p)
	}
	configured := ofYear(2*named - 1)
	configured.Named = false
	if _, err := b.store.Prepare(configured); !errors.Is(err, headgate.ErrTooManyPolicies) {
		t.Errorf("a limit of a configuration above all: %v, want %v", err, headgate.ErrTooManyPolicies)
	}
	clock.Advance(2*year + 24*time.Hour) // A fixed window is kept one window longer, in case the clock steps back.
	for n := range named {
		b.store.Release(b.prepare(ofYear(2*named + n)))
	}
}
